/* ip.h - addresses and ranges of addresses as rules write them, and which of them are nobody's.
 *
 * Strict: four decimal numbers without leading zeros. What a libc would read besides (one number,
 * octal, hexadecimal) is no address here, and no name either (domain.h).
 */
#pragma once

#include "base/bytes.h"

enum { IP4_TEXT_MAX = 16 };

/* Four octets as a number: 10.0.0.1 is 0x0a000001. */
bool ip4_parse(struct bytes text, uint32_t *ret);
void ip4_text(uint32_t ip, char ret[static IP4_TEXT_MAX]);

struct cidr {
	bool v6;        /* legal, and matches nothing: no packet of that kind leaves */
	uint8_t bits;   /* of its mask */
	uint32_t first; /* of IPv4: what is below the mask is cleared */
};

/* An address or a range, of IPv4 or IPv6; ::ffff:a.b.c.d is that IPv4 address. Refused, as with
 * E2B: the unspecified address, with or without a mask, but for 0.0.0.0/0. */
bool cidr_parse(struct bytes text, struct cidr *ret);
bool cidr_has(const struct cidr *c, uint32_t ip);
bool cidr_is_all(const struct cidr *c); /* 0.0.0.0/0 */

/* Why an address is not one of the internet's. */
enum ip4_kind {
	IP4_PUBLIC,
	IP4_THIS_HOST,
	IP4_PRIVATE,
	IP4_SHARED, /* between a provider and its customers */
	IP4_LOOPBACK,
	IP4_LINK_LOCAL, /* where clouds keep their metadata */
	IP4_METADATA,   /* the same, at an address that looks public */
	IP4_SPECIAL,    /* for protocols, documents and measurements */
	IP4_MULTICAST,
	IP4_RESERVED,
	IP4_KINDS,
};

enum ip4_kind ip4_kind(uint32_t ip);
bool ip4_special(size_t at, struct cidr *ret); /* the ranges that are not public, from 0 */
int ip4_special_put(struct buf *out, struct err *err) NODISCARD; /* "0.0.0.0/8, 10.0.0.0/8, ..." */
const char *ip4_kind_name(enum ip4_kind kind);
