/* key_cache.h - which team a key belongs to, remembered for a while, in bounded memory.
 *
 * A table of small buckets chosen by the key's hash, which nobody can aim at: the oldest entry of
 * a full bucket makes room.
 *
 * What other gateways change counts too. Each change of a key is counted in memory that they share
 * (gateway/peers.h), before it is answered: first for all teams, then for its own. An entry is of
 * no use once its team's count is another than when it was made. And it is not made at all if any
 * team's keys changed while the store was asked: what the store said may be of before.
 */
#pragma once

#include <stdatomic.h>

#include "store/store.h"
#include "wire/sha256.h"

enum {
	KEY_CACHE_BUCKETS = 1024,
	KEY_CACHE_WAYS = 4,
	KEY_CACHE_MS = 60 * 1000, /* then the store is asked again */
	KEY_CACHE_COUNTS = 1024,  /* besides the one for all; a team's is found by its hash */
};

struct key_entry {
	bool used;
	uint8_t hash[SHA256_SIZE];
	char key_id[STORE_ID_SIZE], family[STORE_ID_SIZE];
	struct store_limits limits; /* of the family */
	char services[STORE_SERVICES_SIZE];
	struct store_team team;
	uint64_t checked_ms; /* when the store said so */
	uint64_t count;      /* of its team, then */
	uint64_t told_ms;    /* when the store was told that the key is in use; 0: never */
};

struct key_cache { /* all zero: empty, and of a gateway that is alone */
	struct key_entry entries[KEY_CACHE_BUCKETS][KEY_CACHE_WAYS];
	_Atomic uint64_t *shared; /* 1 + KEY_CACHE_COUNTS; NULL: own */
	_Atomic uint64_t own[1 + KEY_CACHE_COUNTS];
};

/* Before the store is asked: for key_cache_put(). */
uint64_t key_cache_count(struct key_cache *c);

/* NULL: unknown. Borrowed until the next call that changes the cache. */
struct key_entry *key_cache_find(struct key_cache *c, const uint8_t hash[static SHA256_SIZE]);
bool key_entry_fresh(const struct key_entry *e, uint64_t now_ms);
/* `count`: key_cache_count() of before the store was asked. */
struct key_entry *key_cache_put(struct key_cache *c, const uint8_t hash[static SHA256_SIZE],
				const struct store_key *key, const struct store_team *team,
				uint64_t count, uint64_t now_ms);
void key_cache_drop(struct key_cache *c, const uint8_t hash[static SHA256_SIZE]);
/* Of every gateway. */
void key_cache_drop_team(struct key_cache *c, const char *team_id);
