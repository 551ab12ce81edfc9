/* statements.h - what each request does to the database; inside store/ only. */
#pragma once

#include "store/database.h"
#include "store/store.h"

struct store_rows {
	struct store_team *teams;
	struct store_key *keys;
	struct store_secret *secrets;
	size_t n_teams, n_keys, n_secrets;
};

void store_rows_done(struct store_rows *r);

/* Room for one more than `n` rows of `size` each: where the array is now, or NULL. */
void *store_rows_grow(void *rows, size_t n, size_t size, struct err *err) NODISCARD;

/* In the same order everywhere; `t` is teams. */
#define SQL_LIMITS(table)                                                         \
	table ".max_sandboxes, " table ".max_vcpus, " table ".max_memory, " table \
	      ".max_disk, " table ".max_paused"
#define SQL_SET_LIMITS                                                         \
	"max_sandboxes = $1, max_vcpus = $2, max_memory = $3, max_disk = $4, " \
	"max_paused = $5"
#define SQL_TEAM_COLUMNS "t.id, t.name, t.slug, t.created, " SQL_LIMITS("t")
void sql_bind_limits(struct sql *q, const struct store_limits *l);
void sql_read_limits(struct sql *q, struct store_limits *ret);

struct row_kind {
	const char *name; /* in errors */
	/* Add the row that q stands at. */
	int (*read)(struct sql *q, struct store_rows *ret, struct err *err);
};
int sql_read_team(struct sql *q, struct store_rows *ret, struct err *err) NODISCARD;

/* All rows of a statement; one that must be there; a change of what must be there. */
int sql_read_all(struct sql *q, const struct row_kind *k, struct store_rows *ret,
		 struct err *err) NODISCARD;
int sql_read_one(struct sql *q, const struct row_kind *k, struct store_rows *ret,
		 struct err *err) NODISCARD;
int sql_change_one(struct sql *q, const struct row_kind *k, struct err *err) NODISCARD;

/* A statement that counts, with one value or none (NULL). */
int sql_count(struct database *d, const char *text, const char *value, uint64_t *ret,
	      struct err *err) NODISCARD;

/* What a request does. On the thread; waits. Nothing has happened when it fails. */
typedef int statement_fn(struct database *d, const struct store_request *rq, struct store_rows *ret,
			 struct err *err) NODISCARD;
statement_fn statements_run;
