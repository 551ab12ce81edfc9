/* database.h - one connection to the database; inside store/ only. */
#pragma once

#include <sqlite3.h>

#include "base/bytes.h"

enum { DATABASE_BUSY_MS = 5000 }; /* another process holds the lock: so long is waited */

struct database {
	sqlite3 *handle;
};

int database_open(struct database *d, const char *path, struct err *err) NODISCARD;
void database_close(struct database *d);

/* One statement, prepared, its parameters bound in order, stepped, finalized by sql_done(). */
struct sql {
	struct database *db;
	sqlite3_stmt *stmt;
	int n_bound, n_read;
	bool failed; /* binding or preparing did: told by sql_next() */
};

void sql_begin(struct sql *q, struct database *d, const char *text);
void sql_bind_text(struct sql *q, const char *value); /* NULL is fine */
void sql_bind_u64(struct sql *q, uint64_t value);

/* 1: there is a row, 0: no more rows, -1: failed. ERR_EXISTS: not unique; ERR_NOT_FOUND: refers to
 * what does not exist; ERR_EXHAUSTED: no space; ERR_UNAVAILABLE: locked or unreadable. */
int sql_next(struct sql *q, struct err *err) NODISCARD;

/* The columns of the row, in order. Text that does not fit is cut. */
void sql_read_text(struct sql *q, char *ret, size_t size);
char *sql_read_copy(struct sql *q); /* the caller's; NULL: no memory */
uint64_t sql_read_u64(struct sql *q);
void sql_done(struct sql *q);
int database_changed(const struct database *d); /* rows, by the last statement */

/* Between them all or nothing. */
int database_begin(struct database *d, struct err *err) NODISCARD;
int database_commit(struct database *d, struct err *err) NODISCARD;
void database_rollback(struct database *d); /* fine when nothing was begun */
