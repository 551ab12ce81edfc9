/* reach.c - see reach.h. */
#include "egress/reach.h"

struct policy_verdict reach_address(const struct policy *p, const struct known_names *k,
				    uint32_t ip, uint16_t port)
{
	struct policy_verdict v = policy_address(p, ip), named;
	const char *name;

	if (policy_service_at(p, ip, port))
		v = (struct policy_verdict){ true, "a service" };
	for (size_t i = 0; i < REACH_NAMES_MAX && !v.yes && (name = known_names_of(k, ip, i));
	     i++) {
		named = policy_answer(p, name, ip);
		if (!named.yes || policy_service(p, name))
			continue;
		v.yes = true;
		snprintf(v.why, sizeof(v.why), "given for %.200s: %.90s", name, named.why);
	}
	return v;
}
