/* policy.c - from the operator's settings and a sandbox's JSON to rules, and the decisions. */
#include "egress/policy.h"

#include <stdarg.h>

#include "egress/fake_ip.h"

enum { DEPTH_MAX = 12 };

/* --- the operator's ground, read from settings -------------------------------------------- */

int policy_ground_allow(struct policy_ground *g, struct bytes text, struct err *err)
{
	struct bytes word;

	while (bytes_next(&text, ' ', &word)) {
		if (word.len == 0)
			continue;
		if (bytes_eq(word, BYTES_LIT("packages")))
			g->packages = true;
		else if (rule_list_add(&g->allow, word, err) < 0)
			return err_wrap(err, "allow");
	}
	return 0;
}

/* db=10.1.2.3:5432 */
static bool read_service(struct bytes word, struct policy_service *ret)
{
	struct bytes name, ip;
	char normal[DOMAIN_SIZE];
	uint64_t port;

	if (!bytes_cut(&word, '=', &name) || !bytes_cut(&word, ':', &ip) ||
	    !domain_normal(name, normal) || strchr(normal, '.') ||
	    strlen(normal) > POLICY_SERVICE_NAME_MAX)
		return false;
	memcpy(ret->name, normal, strlen(normal) + 1);
	if (!ip4_parse(ip, &ret->ip) || !bytes_to_u64(word, &port) || port < 1 || port > 65535)
		return false;
	ret->port = (uint16_t)port;
	return true;
}

int policy_ground_services(struct policy_ground *g, struct bytes text, struct err *err)
{
	struct bytes word;

	while (bytes_next(&text, ' ', &word)) {
		if (word.len == 0)
			continue;
		if (g->n_services == POLICY_SERVICES_MAX)
			return err_set(err, ERR_INVALID, 0, "more than %d services",
				       POLICY_SERVICES_MAX);
		if (!read_service(word, &g->services[g->n_services]))
			return err_set(err, ERR_INVALID, 0,
				       "services: '%.*s' is not like db=10.1.2.3:5432",
				       (int)bytes_head(word, 64).len, (const char *)word.ptr);
		g->n_services++;
	}
	return 0;
}

/* Of a name that a proxy resolves nobody here sees the address: where every name is allowed, one
 * that leads inside is. */
int policy_ground_check(const struct policy_ground *g, struct err *err)
{
	const char *all = NULL;

	if (g->mode == POLICY_OPEN)
		all = "network = open";
	for (size_t i = 0; g->mode == POLICY_ALLOWLIST && i < g->allow.n; i++)
		if (strcmp(g->allow.all[i].text, "*") == 0)
			all = "allow = *";
	if (!g->proxy_resolves || !all)
		return 0;
	return err_set(err, ERR_INVALID, 0,
		       "proxy_resolves = yes with %s: sandboxes would reach your own network by "
		       "name; set proxy_resolves = no, or network = allowlist with single names",
		       all);
}

void policy_ground_done(struct policy_ground *g)
{
	rule_list_done(&g->allow);
}

/* --- a sandbox's rules, read from JSON ---------------------------------------------------- */

static int add_all(struct rule_list *l, const json_t *array, const char *name, struct err *err)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *entry = json_array_get(array, i);

		if (!json_is_string(entry))
			return err_set(err, ERR_INVALID, 0, "%s: not a string", name);
		if (rule_list_add(l, json_bytes(entry), err) < 0)
			return err_wrap(err, "%s", name);
	}
	return 0;
}

static int read_list(const json_t *from, const char *name, struct rule_list *ret, struct err *err)
{
	json_t *array = NULL;

	if (json_may_array(from, name, &array, err) < 0)
		return -1;
	return add_all(ret, array, name, err);
}

static int read_rules(struct policy *p, const json_t *network, struct err *err)
{
	json_t *rules = NULL, *value;
	const char *host;

	if (json_may_object(network, "rules", &rules, err) < 0)
		return -1;
	json_object_foreach(rules, host,
			    value) if (rule_list_add(&p->opened, bytes_str(host), err) <
				       0) return err_wrap(err, "rules");
	return 0;
}

static int read_services(struct policy *p, const json_t *v, struct err *err)
{
	json_t *array = NULL;

	if (json_may_array(v, "services", &array, err) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *name = json_string_value(json_array_get(array, i));

		for (size_t k = 0; name && k < p->ground->n_services; k++)
			if (strcmp(p->ground->services[k].name, name) == 0)
				p->services |= UINT64_C(1) << k;
	}
	return 0;
}

static int read_network(struct policy *p, const json_t *v, struct err *err)
{
	json_t *network = NULL;
	bool internet = true;

	if (json_may_object(v, "network", &network, err) < 0 ||
	    json_may_bool(v, "allowInternetAccess", &internet, err) < 0)
		return -1;
	if (!internet && rule_list_add(&p->deny, BYTES_LIT("0.0.0.0/0"), err) < 0)
		return -1;
	if (!network)
		return 0;
	if (read_list(network, "allowOut", &p->allow, err) < 0 ||
	    read_list(network, "denyOut", &p->deny, err) < 0)
		return -1;
	return read_rules(p, network, err);
}

int policy_decode(struct bytes text, json_t **ret, struct err *err)
{
	if (json_decode(text, POLICY_TEXT_MAX, DEPTH_MAX, ret, err) < 0)
		return err_wrap(err, "the rules of a sandbox's network");
	return 0;
}

int policy_of(struct policy *ret, const struct policy_ground *g, const json_t *rules,
	      struct err *err)
{
	AUTO(policy_done) struct policy p = { .ground = g };

	if (!json_is_object(rules))
		return err_set(err, ERR_INVALID, 0, "the rules of a network are an object");
	if (json_may_bool(rules, "refusalPages", &p.pages, err) < 0 ||
	    read_list(rules, "packages", &p.packages, err) < 0 ||
	    read_services(&p, rules, err) < 0 || read_network(&p, rules, err) < 0)
		return -1;
	*ret = p;
	p = (struct policy){ .ground = g };
	return 0;
}

void policy_done(struct policy *p)
{
	rule_list_done(&p->packages);
	rule_list_done(&p->allow);
	rule_list_done(&p->deny);
	rule_list_done(&p->opened);
}

/* --- decisions ---------------------------------------------------------------------------- */

static struct policy_verdict yes(const char *fmt, ...) PRINTF(1, 2);
static struct policy_verdict no(enum policy_cause cause, const char *fmt, ...) PRINTF(2, 3);

static struct policy_verdict yes(const char *fmt, ...)
{
	struct policy_verdict v = { .yes = true };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(v.why, sizeof(v.why), fmt, ap);
	va_end(ap);
	return v;
}

static struct policy_verdict no(enum policy_cause cause, const char *fmt, ...)
{
	struct policy_verdict v = { .cause = cause };
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
		return yes("operator: open");
	case POLICY_ALLOWLIST:
		r = ground_rule(p, name, ip);
		return r ? yes("operator: %s", r->text)
			 : no(POLICY_NOT_LISTED, "operator: not listed");
	case POLICY_NONE:
	default:
		return no(POLICY_NO_NETWORK, "operator: no network");
	}
}

/* --- the sandbox's own rules -------------------------------------------------------------- */

static struct policy_verdict own_address(const struct policy *p, uint32_t ip,
					 struct policy_verdict ground)
{
	const struct rule *r = rule_list_ip(&p->allow, ip);

	if (r)
		return yes("allowOut %s", r->text);
	r = rule_list_ip(&p->deny, ip);
	return r ? no(POLICY_DENIED, "denyOut %s", r->text) : ground;
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
		return policy_service(p, name) ? yes("service %s", name)
					       : no(POLICY_NO_SERVICE, "no service of that name");
	ground = on_ground(p, name, 0);
	if (!ground.yes)
		return ground;
	r = rule_list_name(&p->allow, name);
	if (r)
		return yes("allowOut %s", r->text);
	/* with everything denied a name must be allowed by name: asking for it tells somebody */
	return rule_list_has_all(&p->deny) ? no(POLICY_DENIED, "denyOut 0.0.0.0/0") : ground;
}

struct policy_verdict policy_answer(const struct policy *p, const char *name, uint32_t ip)
{
	const struct policy_service *s = policy_service(p, name);
	struct policy_verdict v = policy_name(p, name);
	enum ip4_kind kind = kind_of(p, ip);

	if (!v.yes || (s && s->ip == ip) || (p->ground->proxy_resolves && is_fake_ip(ip)))
		return v;
	if (kind != IP4_PUBLIC)
		return no(POLICY_NOT_PUBLIC, "the address is %s", ip4_kind_name(kind));
	return rule_list_name(&p->allow, name) ? v : own_address(p, ip, v);
}

struct policy_verdict policy_address(const struct policy *p, uint32_t ip)
{
	enum ip4_kind kind = kind_of(p, ip);
	struct policy_verdict v;

	if (kind != IP4_PUBLIC)
		return no(POLICY_NOT_PUBLIC, "the address is %s", ip4_kind_name(kind));
	v = on_ground(p, NULL, ip);
	return v.yes ? own_address(p, ip, v) : v;
}

bool policy_denies(const struct policy *p, const char *name, uint32_t ip)
{
	if (name)
		return rule_list_has_all(&p->deny) && !rule_list_name(&p->allow, name);
	return rule_list_ip(&p->deny, ip) && !rule_list_ip(&p->allow, ip);
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
