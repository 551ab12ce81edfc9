/* key_cache.c - buckets of four. */
#include "gateway/api/key_cache.h"

static struct key_entry *bucket_of(struct key_cache *c, const uint8_t *hash)
{
	return c->entries[(hash[0] << 8 | hash[1]) % KEY_CACHE_BUCKETS];
}

struct key_entry *key_cache_find(struct key_cache *c, const uint8_t hash[static SHA256_SIZE])
{
	struct key_entry *bucket = bucket_of(c, hash);

	for (size_t i = 0; i < KEY_CACHE_WAYS; i++)
		if (bucket[i].used && memcmp(bucket[i].hash, hash, SHA256_SIZE) == 0)
			return &bucket[i];
	return NULL;
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
				uint64_t now_ms)
{
	struct key_entry *e = key_cache_find(c, hash);
	uint64_t told_ms = e ? e->told_ms : 0;

	if (!e)
		e = make_room(c, hash);
	*e = (struct key_entry){ .used = true,
				 .limits = key->limits,
				 .team = *team,
				 .checked_ms = now_ms,
				 .told_ms = told_ms };
	memcpy(e->hash, hash, SHA256_SIZE);
	memcpy(e->key_id, key->id, sizeof(e->key_id));
	memcpy(e->family, key->family, sizeof(e->family));
	memcpy(e->services, key->services, sizeof(e->services));
	return e;
}

void key_cache_drop(struct key_cache *c, const uint8_t hash[static SHA256_SIZE])
{
	struct key_entry *e = key_cache_find(c, hash);

	if (e)
		e->used = false;
}

void key_cache_drop_team(struct key_cache *c, const char *team_id)
{
	for (size_t b = 0; b < KEY_CACHE_BUCKETS; b++)
		for (size_t i = 0; i < KEY_CACHE_WAYS; i++)
			if (strcmp(c->entries[b][i].team.id, team_id) == 0)
				c->entries[b][i].used = false;
}
