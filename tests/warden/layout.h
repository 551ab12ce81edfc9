/* layout.h - prints what a protocol.h defines as JSON: the Python clients are made of it. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/err.h"

struct layout_row { /* tools/protocol-rows makes them */
	const char *name;
	const char *type;  /* of a member, or the enum of a value */
	size_t at, number; /* a member's offset and size; or 0 and the value */
};

static inline void layout_print(const struct layout_row *rows, size_t n)
{
	printf("{\"rows\": {");
	for (size_t i = 0; i < n; i++)
		printf("%s\n\t\"%s\": [%zu, %zu, \"%s\"]", i ? "," : "", rows[i].name, rows[i].at,
		       rows[i].number, rows[i].type);
	printf("},\n\"errors\": [");
	for (int code = ERR_NONE; code < ERR_CODES; code++)
		printf("%s\"%s\"", code ? ", " : "", err_name((enum err_code)code));
	printf("]");
}
