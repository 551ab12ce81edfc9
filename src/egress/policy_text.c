/* policy_text.c - from the operator's settings and a sandbox's JSON to rules. */
#include <errno.h>

#include "egress/policy.h"

enum { DEPTH_MAX = 12 };

/* --- the operator's ----------------------------------------------------------------------- */

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

/* --- a sandbox's -------------------------------------------------------------------------- */

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
	if (read_list(rules, "packages", &p.packages, err) < 0 ||
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
