/* ip_range.h - an address of either kind, and a range of such, as an operator lists them.
 *
 * As strict as ip.h. IPv4 is kept as ::ffff:a.b.c.d, which is the same address, however it was
 * written: a peer of a socket that speaks both looks like that, too.
 */
#pragma once

#include "base/bytes.h"

enum { IP_SIZE = 16 };

struct ip {
	uint8_t at[IP_SIZE];
};

struct ip_range {
	struct ip first;
	uint8_t bits; /* of 128 */
};

void ip_of_v4(const uint8_t v4[static 4], struct ip *ret);
bool ip_parse(struct bytes text, struct ip *ret); /* without brackets, port or zone */

/* "192.0.2.7", "192.0.2.0/24", "2001:db8::/32". Refused: a mask that cuts bits off, for it is a
 * typing error, and then nobody knows which half was meant. */
bool ip_range_parse(struct bytes text, struct ip_range *ret);
bool ip_range_has(const struct ip_range *r, const struct ip *ip);
