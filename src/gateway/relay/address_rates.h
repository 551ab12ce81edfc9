/* address_rates.h - how often each client may ask for something that costs: a bucket of tokens for
 * each address, in a table of fixed size.
 *
 * An IPv6 client has a whole /64 to choose from, so that is what counts as its address. When the
 * table is full, the fullest bucket of a few is forgotten: who asked little loses nothing.
 */
#pragma once

#include "net/addr.h"

enum { RATES_SETS = 512, RATES_WAYS = 4 };

struct address_rate {
	uint8_t key[ADDR_KEY];
	bool used;
	uint64_t at_ms; /* when `left` was true */
	uint64_t left;  /* in thousandths */
};

struct address_rates { /* embedded by the owner; all zero: nobody asked yet */
	uint64_t seed;
	struct address_rate at[RATES_SETS][RATES_WAYS];
};

struct rate {
	uint64_t per_second, burst;
};

/* Takes one, if there is one. `who` may be NULL: all of those share a bucket. */
bool address_rates_take(struct address_rates *r, const struct rate *rate, const struct addr *who,
			uint64_t now_ms) NODISCARD;
