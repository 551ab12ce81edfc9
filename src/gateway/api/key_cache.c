/* key_cache.c - buckets of four. */
#include "gateway/api/key_cache.h"

#include "base/hash.h"

static struct key_entry *bucket_of(struct key_cache *c, const uint8_t *hash)
{
	return c->entries[(hash[0] << 8 | hash[1]) % KEY_CACHE_BUCKETS];
}

static _Atomic uint64_t *counts_of(struct key_cache *c)
{
	return c->shared ? c->shared : c->own;
}

uint64_t key_cache_count(struct key_cache *c)
{
	return atomic_load(counts_of(c));
}

static _Atomic uint64_t *team_count(struct key_cache *c, const char *team_id)
{
	return counts_of(c) + 1 + hash_text(HASH_START, team_id) % KEY_CACHE_COUNTS;
}

/* Also one that is of no use any more. */
static struct key_entry *entry_of(struct key_cache *c, const uint8_t *hash)
{
	struct key_entry *bucket = bucket_of(c, hash);

	for (size_t i = 0; i < KEY_CACHE_WAYS; i++)
		if (bucket[i].used && memcmp(bucket[i].hash, hash, SHA256_SIZE) == 0)
			return &bucket[i];
	return NULL;
}

struct key_entry *key_cache_find(struct key_cache *c, const uint8_t hash[static SHA256_SIZE])
{
	struct key_entry *e = entry_of(c, hash);

	return e && e->count == atomic_load(team_count(c, e->team.id)) ? e : NULL;
}

bool key_entry_fresh(const struct key_entry *e, uint64_t now_ms)
{
	return now_ms - e->checked_ms < KEY_CACHE_MS;
}

static struct key_entry *make_room(struct key_cache *c, const uint8_t *hash)
{
	struct key_entry *bucket = bucket_of(c, hash), *oldest = bucket;

	for (size_t i = 0; i < KEY_CACHE_WAYS; i++) {
		if (!bucket[i].used)
			return &bucket[i];
		if (bucket[i].checked_ms < oldest->checked_ms)
			oldest = &bucket[i];
	}
	return oldest;
}

struct key_entry *key_cache_put(struct key_cache *c, const uint8_t hash[static SHA256_SIZE],
				const struct store_key *key, const struct store_team *team,
				uint64_t count, uint64_t now_ms)
{
	struct key_entry *e = entry_of(c, hash);
	uint64_t told_ms = e ? e->told_ms : 0;
	/* in this order, which is not that of key_cache_drop_team() */
	uint64_t now = atomic_load(team_count(c, team->id));
	bool changed = atomic_load(counts_of(c)) != count;

	if (!e)
		e = make_room(c, hash);
	*e = (struct key_entry){ .used = true,
				 .limits = key->limits,
				 .team = *team,
				 .checked_ms = now_ms,
				 .count = changed ? now - 1 : now, /* for this once */
				 .told_ms = told_ms };
	memcpy(e->hash, hash, SHA256_SIZE);
	memcpy(e->key_id, key->id, sizeof(e->key_id));
	memcpy(e->family, key->family, sizeof(e->family));
	memcpy(e->services, key->services, sizeof(e->services));
	return e;
}

void key_cache_drop(struct key_cache *c, const uint8_t hash[static SHA256_SIZE])
{
	struct key_entry *e = entry_of(c, hash);

	if (e)
		e->used = false;
}

void key_cache_drop_team(struct key_cache *c, const char *team_id)
{
	atomic_fetch_add(counts_of(c), 1);
	atomic_fetch_add(team_count(c, team_id), 1);
}
