/* policy.c - the decisions. */
#include "egress/policy.h"

#include <stdarg.h>

#include "egress/stand_in.h"

static struct policy_verdict say(bool yes, const char *fmt, ...) PRINTF(2, 3);

static struct policy_verdict say(bool yes, const char *fmt, ...)
{
	struct policy_verdict v = { .yes = yes };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(v.why, sizeof(v.why), fmt, ap);
	va_end(ap);
	return v;
}

/* --- the operator's ground ---------------------------------------------------------------- */

static const struct rule *ground_rule(const struct policy *p, const char *name, uint32_t ip)
{
	const struct policy_ground *g = p->ground;
	const struct rule *r = name ? rule_list_name(&g->allow, name) : rule_list_ip(&g->allow, ip);

	if (!r && g->packages && name)
		r = rule_list_name(&p->packages, name);
	return r;
}

/* `name` or, without one, `ip`. */
static struct policy_verdict on_ground(const struct policy *p, const char *name, uint32_t ip)
{
	const struct rule *r;

	switch (p->ground->mode) {
	case POLICY_OPEN:
		return say(true, "operator: open");
	case POLICY_ALLOWLIST:
		r = ground_rule(p, name, ip);
		return r ? say(true, "operator: %s", r->text) : say(false, "operator: not listed");
	case POLICY_NONE:
	default:
		return say(false, "operator: no network");
	}
}

/* --- the sandbox's own rules -------------------------------------------------------------- */

static struct policy_verdict own_address(const struct policy *p, uint32_t ip,
					 struct policy_verdict ground)
{
	const struct rule *r = rule_list_ip(&p->allow, ip);

	if (r)
		return say(true, "allowOut %s", r->text);
	r = rule_list_ip(&p->deny, ip);
	return r ? say(false, "denyOut %s", r->text) : ground;
}

static enum ip4_kind kind_of(const struct policy *p, uint32_t ip)
{
	for (size_t i = 0; i < p->ground->n_host; i++)
		if (p->ground->host[i] == ip)
			return IP4_THIS_HOST;
	if (ip != 0 && ip == p->ground->proxy) /* a guest reads this: not that it is */
		return IP4_PRIVATE;
	return ip4_kind(ip);
}

static const char *service_suffix(const char *name)
{
	size_t all = strlen(name), n = strlen(POLICY_SERVICE_DOMAIN);

	return all > n && strcmp(name + all - n, POLICY_SERVICE_DOMAIN) == 0 ? name + all - n
									     : NULL;
}

struct policy_verdict policy_name(const struct policy *p, const char *name)
{
	struct policy_verdict ground;
	const struct rule *r;

	if (service_suffix(name))
		return policy_service(p, name) ? say(true, "service %s", name)
					       : say(false, "no service of that name");
	ground = on_ground(p, name, 0);
	if (!ground.yes)
		return ground;
	r = rule_list_name(&p->allow, name);
	if (r)
		return say(true, "allowOut %s", r->text);
	/* with everything denied a name must be allowed by name: asking for it tells somebody */
	return rule_list_has_all(&p->deny) ? say(false, "denyOut 0.0.0.0/0") : ground;
}

struct policy_verdict policy_answer(const struct policy *p, const char *name, uint32_t ip)
{
	const struct policy_service *s = policy_service(p, name);
	struct policy_verdict v = policy_name(p, name);
	enum ip4_kind kind = kind_of(p, ip);

	if (!v.yes || (s && s->ip == ip) || (p->ground->proxy_resolves && is_stand_in(ip)))
		return v;
	if (kind != IP4_PUBLIC)
		return say(false, "the address is %s", ip4_kind_name(kind));
	return rule_list_name(&p->allow, name) ? v : own_address(p, ip, v);
}

struct policy_verdict policy_address(const struct policy *p, uint32_t ip)
{
	enum ip4_kind kind = kind_of(p, ip);
	struct policy_verdict v;

	if (kind != IP4_PUBLIC)
		return say(false, "the address is %s", ip4_kind_name(kind));
	v = on_ground(p, NULL, ip);
	return v.yes ? own_address(p, ip, v) : v;
}

/* --- services, opened hosts --------------------------------------------------------------- */

static const struct policy_service *if_allowed(const struct policy *p, size_t i)
{
	return p->services >> i & 1 ? &p->ground->services[i] : NULL;
}

const struct policy_service *policy_service(const struct policy *p, const char *name)
{
	const char *end = service_suffix(name);

	for (size_t i = 0; end && i < p->ground->n_services; i++) {
		const char *s = p->ground->services[i].name;

		if (strlen(s) == (size_t)(end - name) && strncmp(s, name, strlen(s)) == 0)
			return if_allowed(p, i);
	}
	return NULL;
}

const struct policy_service *policy_service_at(const struct policy *p, uint32_t ip, uint16_t port)
{
	for (size_t i = 0; i < p->ground->n_services; i++) {
		const struct policy_service *s = &p->ground->services[i];

		if (s->ip == ip && s->port == port && if_allowed(p, i))
			return s;
	}
	return NULL;
}

bool policy_minds_names(const struct policy *p)
{
	return p->ground->mode != POLICY_OPEN || rule_list_has_all(&p->deny);
}

bool policy_opens(const struct policy *p, const char *name)
{
	return rule_list_name(&p->opened, name);
}
