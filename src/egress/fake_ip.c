/* fake_ip.c - see fake_ip.h. */
#include "egress/fake_ip.h"

bool is_fake_ip(uint32_t ip)
{
	return ip >= FAKE_IP_FIRST && ip <= FAKE_IP_LAST;
}

static uint32_t after(uint32_t ip)
{
	return is_fake_ip(ip) && ip < FAKE_IP_LAST ? ip + 1 : FAKE_IP_FIRST;
}

/* There are many more than names that are known: one is free. */
static uint32_t free_one(const struct known_names *k)
{
	uint32_t ip = after(k->n > 0 ? k->all[k->n - 1].ip : 0);

	while (known_names_of(k, ip, 0))
		ip = after(ip);
	return ip;
}

static uint32_t find(const struct known_names *k, const char *name)
{
	for (size_t i = k->n; i > 0; i--)
		if (is_fake_ip(k->all[i - 1].ip) && strcmp(k->all[i - 1].name, name) == 0)
			return k->all[i - 1].ip;
	return 0;
}

uint32_t fake_ip_for(struct known_names *k, const char *name)
{
	uint32_t ip = find(k, name);
	const struct dns_addresses one = { { ip ? ip : free_one(k) }, 1, FAKE_IP_TTL_S };

	known_names_add(k, name, &one);
	return find(k, name);
}
