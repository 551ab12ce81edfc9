/* peers.h - the gateways of one data folder: who accepts, who drains, and that keys have changed.
 *
 * They share a page of memory, the file `gateways` in the folder. Nobody is asked and nobody waits:
 * each writes its own line once in a while, and whoever changed a key counts that before it
 * answers. A line that was not written for PEERS_STALE_MS is of a process that is gone.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	PEERS_MAX = 8,
	PEERS_BEAT_MS = 1000, /* how often to write the own line */
	PEERS_STALE_MS = 5000,
	PEERS_KEY_COUNTS = 1024, /* teams that meet in one are taken for one */
};

enum peer_state { PEER_ACCEPTS, PEER_DRAINS };

struct peer { /* one of them, as it says of itself */
	uint64_t pid;
	enum peer_state state;
	uint64_t connections;
	bool is_self;
};

struct peers_page;
struct peers { /* all zero: closed */
	struct peers_page *page;
	uint64_t owner; /* of our line: a number drawn at random */
	size_t line;    /* PEERS_MAX: there was none left */
};

/* Opens or makes the file. A second gateway beyond PEERS_MAX works, and nobody sees it. */
int peers_open(struct peers *p, const char *dir, struct err *err) NODISCARD;
void peers_close(struct peers *p); /* its line is free at once */

/* At least every PEERS_BEAT_MS. */
void peers_say(struct peers *p, enum peer_state state, uint64_t connections);
bool peers_accept(const struct peers *p); /* another one does */
size_t peers_list(const struct peers *p, struct peer ret[static PEERS_MAX]);

/* How often keys have changed: of any team first, then of the teams in PEERS_KEY_COUNTS groups.
 * key_cache.h says how they are used. */
_Atomic uint64_t *peers_key_counts(const struct peers *p);
