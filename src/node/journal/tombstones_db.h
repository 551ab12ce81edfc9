/* tombstones_db.h - the table of those that ended: who, when, why. Blocks. */
#pragma once

#include "node/journal/journal_db.h"

/* For journal_db.c. */
int tombstones_db_open(struct journal_db *d, struct err *err) NODISCARD;
void tombstones_db_close(struct journal_db *d);

/* In place of the row; the oldest beyond TOMBSTONES_MAX are dropped. */
int journal_db_bury(struct journal_db *d, const struct node_tombstone *t,
		    struct err *err) NODISCARD;
struct tombstones { /* room for `max`, and `n` that were found */
	struct node_tombstone *all;
	size_t max, n;
};
/* The one of about->id, of about->team ("": any). */
int journal_db_find_ended(struct journal_db *d, const struct node_tombstone *about,
			  struct tombstones *ret, struct err *err) NODISCARD;
/* Those that ended after about->ended_ns and about->id, the earliest first. */
int journal_db_list_ended(struct journal_db *d, const struct node_tombstone *about,
			  struct tombstones *ret, struct err *err) NODISCARD;
/* Drops up to `max` that ended before. *ret_n: how many. */
int journal_db_prune(struct journal_db *d, uint64_t before_ns, size_t max, size_t *ret_n,
		     struct err *err) NODISCARD;
