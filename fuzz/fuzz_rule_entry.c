/* fuzz_rule_entry.c - promises of ip and domain: nothing is both an address and a name, what is
 * normal stays as it is, and a range has its own first address. */
#include "fuzz/must.h"
#include "wire/domain.h"
#include "wire/ip.h"

static void check_name(struct bytes in)
{
	char name[DOMAIN_SIZE], again[DOMAIN_SIZE], below[DOMAIN_SIZE + 2];
	struct cidr c;

	if (!domain_normal(in, name))
		return;
	MUST(strlen(name) > 0 && strlen(name) <= DOMAIN_MAX);
	MUST(domain_normal(bytes_str(name), again) && strcmp(name, again) == 0);
	MUST(!cidr_parse(in, &c));
	MUST(domain_match(name, name) && domain_match("*", name));
	snprintf(below, sizeof(below), "*.%s", name);
	MUST(!domain_match(below, name));
}

static void check_pattern(struct bytes in)
{
	char pattern[DOMAIN_SIZE], again[DOMAIN_SIZE];

	if (!domain_pattern(in, pattern))
		return;
	MUST(domain_pattern(bytes_str(pattern), again) && strcmp(pattern, again) == 0);
	MUST(!domain_is_closer(pattern, pattern));
}

static void check_range(struct bytes in)
{
	char text[IP4_TEXT_MAX];
	struct cidr c;
	uint32_t ip;

	if (ip4_parse(in, &ip)) {
		ip4_text(ip, text);
		MUST(bytes_eq(bytes_str(text), in));
		MUST(ip4_kind_name(ip4_kind(ip)));
	}
	if (!cidr_parse(in, &c))
		return;
	MUST(c.v6 ? c.bits <= 128 : c.bits <= 32);
	MUST(c.v6 || cidr_has(&c, c.first));
	MUST(!cidr_is_all(&c) || cidr_has(&c, UINT32_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };

	check_name(in);
	check_pattern(in);
	check_range(in);
	return 0;
}
