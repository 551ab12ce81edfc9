/* address_counts.h - how many of something each address has, for as long as it has any.
 *
 * An IPv6 client has a whole /64 to choose from, so that is what counts as its address.
 */
#pragma once

#include "net/addr.h"

enum { ADDRESS_BUCKETS = 1024 };

struct address_count { /* of one address */
	uint8_t key[ADDR_KEY];
	size_t n;
	uint64_t mark; /* the owner's, 0 at first */
	struct address_count *next, **prev;
};

struct address_counts { /* all zero: of nobody */
	uint64_t seed;
	struct address_count *buckets[ADDRESS_BUCKETS];
};

/* One more of `who`, until it is dropped. NULL: no memory. */
struct address_count *address_counts_add(struct address_counts *c, const struct addr *who);
void address_count_drop(struct address_count *a); /* NULL is fine */
