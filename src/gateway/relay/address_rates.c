/* address_rates.c - see address_rates.h. */
#include "gateway/relay/address_rates.h"

enum { THOUSANDTHS = 1000 };

static struct address_rate *set_of(struct address_rates *r, const uint8_t key[static ADDR_KEY])
{
	return r->at[addr_key_hash(key, &r->seed) % RATES_SETS];
}

static uint64_t level(const struct address_rate *b, const struct rate *rate, uint64_t now_ms)
{
	uint64_t full = rate->burst * THOUSANDTHS, since;

	if (!b->used)
		return full;
	since = now_ms > b->at_ms ? now_ms - b->at_ms : 0;
	if (since > full / rate->per_second)
		return full;
	since = b->left + since * rate->per_second; /* a thousandth of a second, and of a token */
	return since < full ? since : full;
}

static struct address_rate *find(struct address_rate *set, const struct rate *rate,
				 const uint8_t key[static ADDR_KEY], uint64_t now_ms)
{
	struct address_rate *fullest = set;

	for (size_t i = 0; i < RATES_WAYS; i++) {
		if (set[i].used && memcmp(set[i].key, key, ADDR_KEY) == 0)
			return &set[i];
		if (level(&set[i], rate, now_ms) > level(fullest, rate, now_ms))
			fullest = &set[i];
	}
	fullest->used = false;
	return fullest;
}

bool address_rates_take(struct address_rates *r, const struct rate *rate, const struct addr *who,
			uint64_t now_ms)
{
	uint8_t key[ADDR_KEY];
	struct address_rate *b;

	addr_key(who, key);
	b = find(set_of(r, key), rate, key, now_ms);
	b->left = level(b, rate, now_ms);
	b->at_ms = now_ms;
	b->used = true;
	memcpy(b->key, key, sizeof(b->key));
	if (b->left < THOUSANDTHS)
		return false;
	b->left -= THOUSANDTHS;
	return true;
}
