/* why.c - see why.h. */
#include "egress/why.h"

#define CONF  "/etc/hotcell/egress.conf"
#define AGAIN ", then: systemctl restart hotcell-egress"

bool is_why(const char *name)
{
	size_t all = strlen(name), end = strlen(WHY_DOMAIN);

	return all > end && strcmp(name + all - end, WHY_DOMAIN) == 0;
}

/* "_443.": no host has a name that begins like that, but records about one do. */
static bool take_port(struct bytes *text, uint16_t *ret)
{
	struct bytes rest = *text, label;
	uint64_t n;

	if (!bytes_starts(rest, BYTES_LIT("_")))
		return true;
	if (!bytes_cut(&rest, '.', &label) || !bytes_to_u64(bytes_tail(label, 1), &n) || n < 1 ||
	    n > UINT16_MAX)
		return false;
	*ret = (uint16_t)n;
	*text = rest;
	return true;
}

bool why_read(const char *name, struct why_question *ret)
{
	struct bytes text = bytes_str(name);

	*ret = (struct why_question){ 0 };
	text.len -= strlen(WHY_DOMAIN);
	return take_port(&text, &ret->port) &&
	       (ip4_parse(text, &ret->ip) || domain_normal(text, ret->name));
}

struct policy_verdict why_decide(const struct policy *p, const struct known_names *k,
				 const struct why_question *q)
{
	const struct policy_service *s;
	struct policy_verdict v;

	if (!q->name[0])
		return reach_address(p, k, q->ip, q->port);
	s = policy_service(p, q->name);
	v = policy_name(p, q->name);
	if (s && q->port && s->port != q->port) {
		v.yes = false;
		snprintf(v.why, sizeof(v.why), "the service is at port %u", s->port);
	}
	return v;
}

static const char *shown(const char *host)
{
	return host[0] && strlen(host) <= WHY_SHOWN_MAX ? host : "it";
}

static void service_fix(const char *host, char *ret)
{
	struct bytes rest = bytes_str(host), name = { 0 };

	(void)bytes_cut(&rest, '.', &name);
	snprintf(ret, DNS_LINE_MAX + 1,
		 "the operator publishes it (services in " CONF ") and lets the key of this "
		 "sandbox use it: hotcell keys services KEY %.*s",
		 (int)bytes_head(name, POLICY_SERVICE_NAME_MAX).len, (const char *)name.ptr);
}

bool why_fix(enum policy_cause cause, const char *host, char ret[static DNS_LINE_MAX + 1])
{
	static const char *const by_operator = "the operator adds %s to allow in " CONF AGAIN;
	static const char *const by_owner =
		"whoever made the sandbox adds %s to allowOut, at create or by updateNetwork; its "
		"own rules (denyOut, or no internet access) say no";

	switch (cause) {
	case POLICY_NO_NETWORK:
		snprintf(
			ret, DNS_LINE_MAX + 1,
			"the operator sets network = allowlist and adds %s to allow in " CONF AGAIN,
			shown(host));
		return true;
	case POLICY_NOT_LISTED:
		snprintf(ret, DNS_LINE_MAX + 1, by_operator, shown(host));
		return true;
	case POLICY_DENIED:
		snprintf(ret, DNS_LINE_MAX + 1, by_owner, shown(host));
		return true;
	case POLICY_NO_SERVICE:
		service_fix(host, ret);
		return true;
	case POLICY_NOT_PUBLIC:
		snprintf(ret, DNS_LINE_MAX + 1,
			 "no rule allows such an address; the operator can publish one as a "
			 "service: services = NAME=ADDRESS:PORT in " CONF AGAIN);
		return true;
	case POLICY_NO_CAUSE:
	default:
		return false;
	}
}

void why_tell(const struct policy *p, const struct why_question *q, const struct policy_verdict *v,
	      struct dns_lines *ret)
{
	bool ground = v->cause == POLICY_NO_NETWORK || v->cause == POLICY_NOT_LISTED;
	char host[DOMAIN_SIZE], fix[DNS_LINE_MAX + 1];

	if (q->name[0])
		memcpy(host, q->name, sizeof(host));
	else
		ip4_text(q->ip, host);
	dns_lines_add(ret, "%s", v->yes ? "yes" : "no");
	dns_lines_add(ret, "%s", v->why);
	if (v->yes)
		return;
	if (why_fix(v->cause, host, fix))
		dns_lines_add(ret, "%s", fix);
	/* the next who would say no */
	if (ground && policy_denies(p, q->name[0] ? q->name : NULL, q->ip) &&
	    why_fix(POLICY_DENIED, host, fix))
		dns_lines_add(ret, "%s", fix);
}
