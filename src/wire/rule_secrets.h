/* rule_secrets.h - which secrets the rules of a network name, in the values of their headers. */
#pragma once

#include "wire/json.h"

/* Of {"network":{"rules":{HOST:[{"transform":{"headers":{}}}]}}}: the names, each once, as the keys
 * of an object. What has another form names none. NULL: no memory. */
json_t *rule_secrets(const json_t *text);
