/* columns.h - which members of a row are kept: once for the journal's tables and for the file that
 * lies beside what is saved. */
#pragma once

#include <stddef.h>

enum column_kind {
	COL_TEXT,
	COL_U32,
	COL_U64,
	COL_LONG, /* a char *, which may be NULL */
};

struct column { /* a member of struct journal_row or struct journal_snapshot */
	const char *name;
	enum column_kind kind;
	size_t at, size;
};

struct row_kind {
	const char *name; /* of its table, and in its description */
	const struct column *columns;
	size_t n, size; /* of columns; of the struct */
};
