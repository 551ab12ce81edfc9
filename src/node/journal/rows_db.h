/* rows_db.h - every row of a table, each read by itself; only the files of the journal's SQL
 * include it. */
#pragma once

#include "node/journal/statements_db.h"

struct rows_walk {
	const char *places; /* SELECT rowid, a number to sort by, id */
	sqlite3_stmt *row;  /* all columns of the one row whose rowid is bound; the caller's */
	/* `row` stands at one. Failure (-1): it is odd. */
	int (*take)(struct rows_walk *w, struct err *err);
	journal_odd_fn *odd;
	void *context; /* of `odd` */
};

/* Failure (-1): which rows there are cannot be read. */
int rows_db_each(struct journal_db *d, struct rows_walk *w, struct err *err) NODISCARD;
