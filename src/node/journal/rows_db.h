/* rows_db.h - rows as SQLite has them: all columns of one, and every row of a table, each read by
 * itself. Only the files of the journal's SQL include it. */
#pragma once

#include "node/journal/statements_db.h"

/* A statement that writes a row; and what it is given. */
int rows_db_prepare_put(struct journal_db *d, const struct row_kind *k, sqlite3_stmt **ret,
			struct err *err) NODISCARD;
void rows_db_give(sqlite3_stmt *s, const struct row_kind *k, const char *row);

struct rows_walk {
	const struct row_kind *kind;
	const char *order; /* the column to sort by */
	/* `row` stands at one. Failure (-1): it is odd. */
	int (*take)(struct rows_walk *w, struct err *err);
	journal_odd_fn *odd;
	void *context;     /* of `odd` */
	sqlite3_stmt *row; /* made by rows_db_each() */
};

/* The row that `row` stands at. Long texts are borrowed from it until it goes on. */
int rows_db_take(const struct rows_walk *w, char *ret, struct err *err) NODISCARD;

/* Failure (-1): which rows there are cannot be read. */
int rows_db_each(struct journal_db *d, struct rows_walk *w, struct err *err) NODISCARD;
