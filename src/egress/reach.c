/* reach.c - see reach.h. */
#include "egress/reach.h"

const char *reach_name(const struct policy *p, const struct known_names *k, uint32_t ip,
		       struct policy_verdict *ret)
{
	const char *name;

	for (size_t i = 0; i < REACH_NAMES_MAX && (name = known_names_of(k, ip, i)); i++) {
		*ret = policy_answer(p, name, ip);
		if (ret->yes && !policy_service(p, name))
			return name;
	}
	return NULL;
}

struct policy_verdict reach_address(const struct policy *p, const struct known_names *k,
				    uint32_t ip, uint16_t port)
{
	struct policy_verdict v = policy_address(p, ip), named;
	const char *name;

	if (policy_service_at(p, ip, port))
		v = (struct policy_verdict){ true, "a service" };
	if (v.yes)
		return v;
	name = reach_name(p, k, ip, &named);
	if (!name)
		return v;
	v.yes = true;
	snprintf(v.why, sizeof(v.why), "given for %.200s: %.90s", name, named.why);
	return v;
}
