/* columns.h - which members of a row are kept: once for the journal's tables and for the file that
 * lies beside what is saved. */
#pragma once

#include <stddef.h>

enum column_kind { COL_TEXT, COL_U32, COL_U64 };

struct column { /* a member of struct journal_row or struct journal_snapshot */
	const char *name;
	enum column_kind kind;
	size_t at, size;
};

struct columns { /* all but the long texts, which each reader names itself */
	const struct column *all;
	size_t n;
};
