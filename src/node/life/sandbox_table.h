/* sandbox_table.h - every sandbox by its id, those of a team in the order they were started.
 *
 * A look-up costs the same whether there are ten or a thousand.
 */
#pragma once

#include "node/life/sandbox.h"

enum {
	TABLE_BUCKETS = 4096,
	TABLE_TEAM_BUCKETS = 256,
	TABLE_PLACES = 64, /* teams that are counted each by itself, see in_place */
};
#define TABLE_EVERYONE "" /* the team that has every other team's */

struct sandbox_table {
	struct sandbox *by_id[TABLE_BUCKETS];
	struct sandbox *all; /* for whoever must look at each: once a minute, never per request */
	struct team *teams[TABLE_TEAM_BUCKETS];
	size_t n, in_state[SANDBOX_STATES];
	/* Of the sandboxes in lists of teams: a team has a place from its first sandbox to its
	 * last. Those that found none are counted together, in the last. */
	char places[TABLE_PLACES][NODE_ID_MAX + 1]; /* "": free */
	size_t in_place[TABLE_PLACES + 1][SANDBOX_STATES];
	uint64_t guest_mib; /* memory of the guests that have a VM, or are on the way to one */
};

/* The only writer of a sandbox's state. An illegal step is a bug and aborts. */
void sandbox_enter(struct sandbox_table *t, struct sandbox *s, enum sandbox_state next);
const char *sandbox_state_name(enum sandbox_state s);

uint32_t table_hash(const char *id); /* for whoever keeps a table of ids, too */
void table_add(struct sandbox_table *t, struct sandbox *s);    /* in state NOTED; no such id yet */
void table_remove(struct sandbox_table *t, struct sandbox *s); /* from the lists too */
struct sandbox *table_find(const struct sandbox_table *t, const char *id);

/* Into the list of info.team, and of everyone, by (started_ns, id). */
int table_own(struct sandbox_table *t, struct sandbox *s, struct err *err) NODISCARD;
void table_disown(struct sandbox_table *t, struct sandbox *s); /* fine when it is in none */
/* It is in the lists, and begins anew. */
void table_restarted(struct sandbox_table *t, struct sandbox *s, uint64_t started_ns);

/* Those of `team` after (after_ns, id): *ret_n of them, borrowed until the table changes. */
struct sandbox *const *table_after(const struct sandbox_table *t, const char *team,
				   uint64_t after_ns, const char *id, size_t *ret_n);
