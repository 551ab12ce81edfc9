/* table.h - an array of JSON objects as aligned text. */
#pragma once

#include <stdio.h>

#include "wire/json.h"

enum column_kind {
	COLUMN_PLAIN,
	COLUMN_BYTES,   /* a size: "1.5 GiB" */
	COLUMN_MIB,     /* the same, of MiB */
	COLUMN_WHEN,    /* a time: "5m 3s ago", "in 2h 4m" */
	COLUMN_PERCENT, /* "12.3%" */
};

struct column {
	const char *title, *member; /* "a.b": member b of a */
	size_t max; /* bytes: what is longer is cut, and ends with '~'; 0: as it is */
	enum column_kind kind;
};

/* Bytes that could steer a terminal become '?'. */
void table_clean(char *text);
/* A text as lines of at most `width` bytes, each behind `indent` spaces; cleaned. */
void table_wrap(FILE *out, const char *text, size_t indent, size_t width);
/* Objects without a member show "-". All is cleaned. */
void table_print(FILE *out, const json_t *rows, const struct column *columns, size_t n);

/* The cells of one row, each with two spaces behind it; no end of the line. */
void table_cells(FILE *out, const json_t *row, const struct column *columns, size_t n);
void table_line(FILE *out, const json_t *row, const char *member); /* of one column, no title */

struct cli;
struct cli_request;
/* As JSON or as a table: rows; one row; a list that is asked for first. Exit statuses. */
int cli_show_rows(const struct cli *c, const json_t *rows, const struct column *columns, size_t n);
int cli_show_one(const struct cli *c, const json_t *row, const struct column *columns, size_t n);
int cli_show(const struct cli *c, const struct cli_request *rq, const struct column *columns,
	     size_t n);
