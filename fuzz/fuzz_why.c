/* fuzz_why.c - promises of why: what is read is a name or an address, and whatever is asked, the
 * answer is lines that say yes or no, why, and at most two who would have to change something. */
#include "egress/why.h"
#include "fuzz/must.h"

static void ground(struct policy_ground *g, uint8_t mode)
{
	struct err err;

	*g = (struct policy_ground){ .mode = mode % 3, .proxy_resolves = mode & 4 };
	MUST(policy_ground_allow(g, BYTES_LIT("a.com *.b.com 8.8.0.0/16"), &err) == 0);
	MUST(policy_ground_services(g, BYTES_LIT("db=10.1.2.3:5432"), &err) == 0);
}

static void must_be_told(const struct policy *p, const struct why_question *q)
{
	const struct known_names none = { 0 };
	struct policy_verdict v = why_decide(p, &none, q);
	struct dns_lines l = { 0 };

	why_tell(p, q, &v, &l);
	MUST(l.n >= 2 && l.n <= 4 && strcmp(l.line[0], v.yes ? "yes" : "no") == 0);
	MUST(v.yes ? l.n == 2 : l.line[1][0] != '\0');
	for (size_t i = 0; i < l.n; i++)
		MUST(strlen(l.line[i]) <= DNS_LINE_MAX);
}

/* The first byte chooses rules; the rest is a name, as it is and behind which the domain is put. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const rules[] = { "{}", "{\"allowInternetAccess\":false}",
					     "{\"services\":[\"db\"]}" };
	AUTO(policy_ground_done) struct policy_ground g;
	AUTO(policy_done) struct policy p = { 0 };
	AUTO(json_decrefp) json_t *v = NULL;
	char text[2 * DOMAIN_SIZE], name[DOMAIN_SIZE];
	struct why_question q;
	struct err err;

	if (size < 1 || size > DOMAIN_MAX)
		return 0;
	ground(&g, data[0]);
	MUST(policy_decode(bytes_str(rules[(data[0] >> 3) % COUNT(rules)]), &v, &err) == 0);
	MUST(policy_of(&p, &g, v, &err) == 0);
	snprintf(text, sizeof(text), "%.*s" WHY_DOMAIN, (int)(size - 1), (const char *)data + 1);
	if (!domain_normal(bytes_str(text), name) || !is_why(name))
		return 0;
	if (!why_read(name, &q))
		return 0;
	MUST(q.name[0] == '\0' ||
	     (domain_normal(bytes_str(q.name), text) && strcmp(text, q.name) == 0));
	must_be_told(&p, &q);
	return 0;
}
