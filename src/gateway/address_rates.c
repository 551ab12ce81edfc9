/* address_rates.c - see address_rates.h. */
#include "gateway/address_rates.h"

#include <netinet/in.h>

#include "base/random.h"

enum { THOUSANDTHS = 1000, PREFIX_BYTES = 8, V4_AT = 12 };

/* An IPv4 address in its IPv6 clothes, or a /64. */
static void key_of(const struct addr *who, uint8_t ret[static RATES_KEY])
{
	static const uint8_t mapped[V4_AT] = { [10] = 0xff, [11] = 0xff };

	memset(ret, 0, RATES_KEY);
	if (!who)
		return;
	/* SAFETY: sockaddr_storage is made to be seen as the address of its family */
	if (who->at.ss_family == AF_INET) {
		memcpy(ret, mapped, sizeof(mapped));
		memcpy(ret + V4_AT, &((const struct sockaddr_in *)&who->at)->sin_addr, 4);
	} else if (who->at.ss_family == AF_INET6) {
		const uint8_t *a = ((const struct sockaddr_in6 *)&who->at)->sin6_addr.s6_addr;

		memcpy(ret, a, memcmp(a, mapped, sizeof(mapped)) == 0 ? RATES_KEY : PREFIX_BYTES);
	}
}

static struct address_rate *set_of(struct address_rates *r, const uint8_t key[static RATES_KEY])
{
	uint64_t h;

	while (r->seed == 0)
		random_fill(&r->seed, sizeof(r->seed));
	h = r->seed;
	for (size_t i = 0; i < RATES_KEY; i++) {
		h = (h ^ key[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return r->at[h % RATES_SETS];
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
				 const uint8_t key[static RATES_KEY], uint64_t now_ms)
{
	struct address_rate *fullest = set;

	for (size_t i = 0; i < RATES_WAYS; i++) {
		if (set[i].used && memcmp(set[i].key, key, RATES_KEY) == 0)
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
	uint8_t key[RATES_KEY];
	struct address_rate *b;

	key_of(who, key);
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
