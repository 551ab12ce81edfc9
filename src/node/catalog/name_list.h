/* name_list.h - names and tags as templates have them: lower-case letters, digits, - and _; a tag
 * may have dots. Pure. */
#pragma once

#include "base/bytes.h"
#include "node/protocol.h"
#include "wire/json.h"

bool template_name_ok(const char *name);
/* The member `tags` of a request, 1 to `max` of them (none: unless `need`), each once. */
struct name_list {
	char all[32][NODE_ID_MAX + 1];
	size_t n;
};
int name_list_take(const json_t *body, bool need, struct name_list *ret, struct err *err) NODISCARD;
