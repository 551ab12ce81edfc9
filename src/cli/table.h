/* table.h - an array of JSON objects as aligned text. */
#pragma once

#include <stdio.h>

#include "wire/json.h"

struct column {
	const char *title, *member; /* "a.b": member b of a */
};

/* Objects without a member show "-". Bytes that could steer a terminal come out as '?'. */
void table_print(FILE *out, const json_t *rows, const struct column *columns, size_t n);

struct cli;
/* Asks for a list and shows it: an exit status. */
int cli_show(const struct cli *c, const char *target, const struct column *columns, size_t n);
