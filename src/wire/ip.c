/* ip.c - see ip.h. */
#include "wire/ip.h"

#include <arpa/inet.h>
#include <stdio.h>

/* --- addresses ---------------------------------------------------------------------------- */

static bool octet(struct bytes text, uint32_t *ret)
{
	uint64_t v;

	if (text.len > 3 || (text.len > 1 && text.ptr[0] == '0') || !bytes_to_u64(text, &v) ||
	    v > 255)
		return false;
	*ret = *ret << 8 | (uint32_t)v;
	return true;
}

bool ip4_parse(struct bytes text, uint32_t *ret)
{
	struct bytes part;
	uint32_t ip = 0;

	for (int i = 0; i < 3; i++)
		if (!bytes_cut(&text, '.', &part) || !octet(part, &ip))
			return false;
	if (!octet(text, &ip))
		return false;
	*ret = ip;
	return true;
}

void ip4_text(uint32_t ip, char ret[static IP4_TEXT_MAX])
{
	snprintf(ret, IP4_TEXT_MAX, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255,
		 ip & 255);
}

/* --- ranges ------------------------------------------------------------------------------- */

static uint32_t mask(unsigned int bits)
{
	return bits == 0 ? 0 : UINT32_MAX << (32 - bits);
}

static bool mask_bits(struct bytes text, unsigned int most, uint8_t *ret)
{
	uint64_t v;

	if (text.len > 3 || (text.len > 1 && text.ptr[0] == '0') || !bytes_to_u64(text, &v) ||
	    v > most)
		return false;
	*ret = (uint8_t)v;
	return true;
}

static bool parse_v6(struct bytes text, bool masked, struct bytes bits, struct cidr *ret)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char copy[INET6_ADDRSTRLEN];
	uint8_t ip[16], none[16] = { 0 };

	ret->v6 = true;
	ret->bits = 128;
	if (!bytes_to_str(text, copy, sizeof(copy)) || inet_pton(AF_INET6, copy, ip) != 1 ||
	    (masked && !mask_bits(bits, 128, &ret->bits)))
		return false;
	if (memcmp(ip, none, sizeof(ip)) == 0)
		return false;
	if (memcmp(ip, mapped, sizeof(mapped)) != 0 || ret->bits < 96)
		return true;
	ret->v6 = false;
	ret->bits = (uint8_t)(ret->bits - 96);
	ret->first =
		(uint32_t)ip[12] << 24 | (uint32_t)ip[13] << 16 | (uint32_t)ip[14] << 8 | ip[15];
	return ret->first != 0;
}

bool cidr_parse(struct bytes text, struct cidr *ret)
{
	struct bytes ip = text;
	bool masked = bytes_cut(&text, '/', &ip);
	struct cidr c = { .bits = 32 };

	if (ip4_parse(ip, &c.first)) {
		if (masked && !mask_bits(text, 32, &c.bits))
			return false;
		if (c.first == 0 && !(masked && c.bits == 0))
			return false;
	} else if (!parse_v6(ip, masked, text, &c)) {
		return false;
	}
	if (!c.v6)
		c.first &= mask(c.bits);
	*ret = c;
	return true;
}

bool cidr_has(const struct cidr *c, uint32_t ip)
{
	return !c->v6 && (ip & mask(c->bits)) == c->first;
}

bool cidr_is_all(const struct cidr *c)
{
	return !c->v6 && c->bits == 0;
}

/* --- kinds -------------------------------------------------------------------------------- */

/* The registry of special addresses (RFC 6890 and its followers), and what clouds made of some. */
static const struct {
	uint32_t first;
	uint8_t bits;
	enum ip4_kind kind;
} special[] = {
	{ 0x00000000, 8, IP4_THIS_HOST }, { 0x0a000000, 8, IP4_PRIVATE },
	{ 0x64400000, 10, IP4_SHARED },   { 0x7f000000, 8, IP4_LOOPBACK },
	{ 0xa83f8110, 32, IP4_METADATA }, { 0xa9fe0000, 16, IP4_LINK_LOCAL },
	{ 0xac100000, 12, IP4_PRIVATE },  { 0xc0000000, 24, IP4_SPECIAL },
	{ 0xc0000200, 24, IP4_SPECIAL },  { 0xc01fc400, 24, IP4_SPECIAL },
	{ 0xc034c100, 24, IP4_SPECIAL },  { 0xc0586300, 24, IP4_SPECIAL },
	{ 0xc0a80000, 16, IP4_PRIVATE },  { 0xc0af3000, 24, IP4_SPECIAL },
	{ 0xc6120000, 15, IP4_SPECIAL },  { 0xc6336400, 24, IP4_SPECIAL },
	{ 0xcb007100, 24, IP4_SPECIAL },  { 0xe0000000, 4, IP4_MULTICAST },
	{ 0xf0000000, 4, IP4_RESERVED },
};

bool ip4_special(size_t at, struct cidr *ret)
{
	if (at >= COUNT(special))
		return false;
	*ret = (struct cidr){ .bits = special[at].bits, .first = special[at].first };
	return true;
}

int ip4_special_put(struct buf *out, struct err *err)
{
	char ip[IP4_TEXT_MAX];
	struct cidr c;

	for (size_t i = 0; ip4_special(i, &c); i++) {
		ip4_text(c.first, ip);
		if (buf_printf(out, err, "%s%s/%u", i > 0 ? ", " : "", ip, c.bits) < 0)
			return -1;
	}
	return 0;
}

enum ip4_kind ip4_kind(uint32_t ip)
{
	for (size_t i = 0; i < COUNT(special); i++)
		if ((ip & mask(special[i].bits)) == special[i].first)
			return special[i].kind;
	return IP4_PUBLIC;
}

const char *ip4_kind_name(enum ip4_kind kind)
{
	static const char *const names[IP4_KINDS] = {
		[IP4_PUBLIC] = "public",       [IP4_THIS_HOST] = "this host",
		[IP4_PRIVATE] = "private",     [IP4_SHARED] = "shared",
		[IP4_LOOPBACK] = "loopback",   [IP4_LINK_LOCAL] = "link-local",
		[IP4_METADATA] = "metadata",   [IP4_SPECIAL] = "special purpose",
		[IP4_MULTICAST] = "multicast", [IP4_RESERVED] = "reserved",
	};

	return names[kind];
}
