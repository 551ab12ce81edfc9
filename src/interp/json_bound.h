/* json_bound.h - how much memory a text may become while it is read.
 *
 * Three bytes of JSON can be an empty array of 120 bytes. So what jansson takes is counted, and
 * where it is too much it is told that there is no more.
 */
#pragma once

#include "wire/json.h"

enum { JSON_BOUND_MAX = 288 * 1024 * 1024 }; /* bytes: one string of a whole message, as it grows */

void json_bound_init(void); /* before the first value */
/* As json_loadb(), within that. */
json_t *json_bound_load(struct bytes in, size_t flags, json_error_t *why) NODISCARD;
