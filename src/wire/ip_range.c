/* ip_range.c - see ip_range.h. */
#include "wire/ip_range.h"

#include <arpa/inet.h>

#include "wire/ip.h"

enum { V4_BEGINS = 12, V4_BITS = 32, ALL_BITS = 128 };

void ip_of_v4(const uint8_t v4[static 4], struct ip *ret)
{
	*ret = (struct ip){ .at = { [10] = 0xff, [11] = 0xff } };
	memcpy(ret->at + V4_BEGINS, v4, 4);
}

static bool parse_v4(struct bytes text, struct ip *ret)
{
	uint32_t ip;
	uint8_t octets[4];

	if (!ip4_parse(text, &ip))
		return false;
	for (size_t i = 0; i < sizeof(octets); i++)
		octets[i] = (uint8_t)(ip >> (24 - 8 * i));
	ip_of_v4(octets, ret);
	return true;
}

bool ip_parse(struct bytes text, struct ip *ret)
{
	char copy[INET6_ADDRSTRLEN];

	return parse_v4(text, ret) ||
	       (bytes_to_str(text, copy, sizeof(copy)) && inet_pton(AF_INET6, copy, ret->at) == 1);
}

static bool parse_bits(struct bytes text, uint64_t most, uint64_t *ret)
{
	return text.len <= 3 && (text.len == 1 || (text.len > 1 && text.ptr[0] != '0')) &&
	       bytes_to_u64(text, ret) && *ret <= most;
}

static uint8_t mask(unsigned int bits, size_t at)
{
	if (bits >= 8 * (at + 1))
		return 0xff;
	return bits <= 8 * at ? 0 : (uint8_t)(0xff << (8 * (at + 1) - bits));
}

bool ip_range_parse(struct bytes text, struct ip_range *ret)
{
	struct bytes bits = text, ip = text;
	bool masked = bytes_cut(&bits, '/', &ip);
	uint64_t most, n;

	if (!ip_parse(ip, &ret->first))
		return false;
	most = memchr(ip.ptr, ':', ip.len) ? ALL_BITS : V4_BITS;
	n = most;
	if (masked && !parse_bits(bits, most, &n))
		return false;
	ret->bits = (uint8_t)(n + (ALL_BITS - most));
	for (size_t i = 0; i < IP_SIZE; i++)
		if (ret->first.at[i] & ~mask(ret->bits, i))
			return false;
	return true;
}

bool ip_range_has(const struct ip_range *r, const struct ip *ip)
{
	for (size_t i = 0; i < IP_SIZE; i++)
		if ((ip->at[i] & mask(r->bits, i)) != r->first.at[i])
			return false;
	return true;
}
