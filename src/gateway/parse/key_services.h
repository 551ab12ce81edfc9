/* key_services.h - the operator's services that sandboxes of a key may reach, by name. Pure. */
#pragma once

#include "store/store.h"
#include "wire/json.h"

/* ["db","cache"] to "db cache". ERR_INVALID: a name that is none, or too many of them. */
int key_services_read(const json_t *names, char ret[static STORE_SERVICES_SIZE],
		      struct err *err) NODISCARD;
json_t *key_services_json(const char *services) NODISCARD; /* and back; NULL: no memory */
/* Is `name` in `published`, a list? True where there is none: nobody knows. */
bool key_services_has(const json_t *published, struct bytes name);
/* As `services` to what node is told of a sandbox. */
int key_services_add(const char *services, json_t *text, struct err *err) NODISCARD;
