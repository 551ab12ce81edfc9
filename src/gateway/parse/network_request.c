/* network_request.c - lists of whom a sandbox may reach, entry by entry. */
#include "gateway/parse/network_request.h"

#include "gateway/parse/network_rules.h"
#include "wire/domain.h"
#include "wire/ip.h"

static const char needs_deny[] = "When specifying allowed domains in allow out, you must include "
				 "'ALL_TRAFFIC' in deny out to block all other traffic.";

/* A list of strings, or none. */
static int take_list(const json_t *network, const char *name, json_t **ret, struct err *err)
{
	const json_t *entry;
	size_t i;

	if (json_may_array(network, name, ret, err) < 0)
		return -1;
	if (json_array_size(*ret) > NETWORK_LIST_MAX)
		return err_set(err, ERR_INVALID, 0, "%s can have at most %d entries", name,
			       NETWORK_LIST_MAX);
	json_array_foreach(*ret, i, entry)
	{
		if (!json_is_string(entry))
			return err_set(err, ERR_INVALID, 0, "%s must be an array of strings", name);
	}
	return 0;
}

static int refuse_entry(const char *what, const json_t *entry, struct err *err)
{
	return err_set(err, ERR_INVALID, 0, "%s %.*s", what, NETWORK_SHOWN_MAX,
		       json_string_value(entry));
}

static int check_deny(const json_t *deny, struct err *err)
{
	const json_t *entry;
	struct cidr range;
	size_t i;

	json_array_foreach(deny, i, entry)
	{
		if (!cidr_parse(json_bytes(entry), &range))
			return refuse_entry("invalid denied CIDR", entry, err);
	}
	return 0;
}

/* The very text: so E2B's server looks for it, too. */
static bool denies_all(const json_t *deny)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(deny, i, entry)
	{
		if (strcmp(json_string_value(entry), "0.0.0.0/0") == 0)
			return true;
	}
	return false;
}

static int check_allow(const json_t *allow, const json_t *deny, struct err *err)
{
	char name[DOMAIN_SIZE];
	bool names = false;
	const json_t *entry;
	struct cidr range;
	size_t i;

	json_array_foreach(allow, i, entry)
	{
		if (cidr_parse(json_bytes(entry), &range))
			continue;
		if (!domain_pattern(json_bytes(entry), name))
			return refuse_entry("invalid allowed address", entry, err);
		names = true;
	}
	if (names && !denies_all(deny))
		return err_set(err, ERR_INVALID, 0, "%s", needs_deny);
	return 0;
}

/* What would let a sandbox out by another way, or ask for one. */
static int check_absent(const json_t *network, const char *where, struct err *err)
{
	json_t *proxy = NULL, *servers = NULL;

	if (json_may_object(network, "egressProxy", &proxy, err) < 0 ||
	    json_may_array(network, "dnsServers", &servers, err) < 0)
		return -1;
	if (proxy)
		return err_set(err, ERR_DENIED, 0,
			       "Egress proxy (%segressProxy) is not enabled for this team.", where);
	if (json_array_size(servers) > 0)
		return err_set(err, ERR_INVALID, 0,
			       "%sdnsServers is not supported: names are resolved outside of the "
			       "sandbox",
			       where);
	return 0;
}

static int no_memory(struct err *err)
{
	return err_set(err, ERR_EXHAUSTED, 0, "no memory");
}

int network_request_take(const json_t *network, const char *where, json_t **ret, struct err *err)
{
	AUTO(json_decrefp) json_t *o = json_object(), *clean = NULL;
	json_t *allow = NULL, *deny = NULL, *rules = NULL;

	if (take_list(network, "allowOut", &allow, err) < 0 ||
	    take_list(network, "denyOut", &deny, err) < 0 ||
	    json_may_object(network, "rules", &rules, err) < 0 || check_deny(deny, err) < 0 ||
	    check_allow(allow, deny, err) < 0 ||
	    (rules && network_rules_take(rules, &clean, err) < 0) ||
	    check_absent(network, where, err) < 0)
		return -1;
	if (!o || (allow && json_object_set(o, "allowOut", allow) < 0) ||
	    (deny && json_object_set(o, "denyOut", deny) < 0) ||
	    (clean && json_object_set(o, "rules", clean) < 0))
		return no_memory(err);
	*ret = TAKE(o);
	return 0;
}

int network_request_internet(const json_t *body, json_t *to, struct err *err)
{
	bool if_no = false, if_yes = true;

	if (json_may_bool(body, "allowInternetAccess", &if_no, err) < 0 ||
	    json_may_bool(body, "allowInternetAccess", &if_yes, err) < 0)
		return -1;
	/* both defaults overwritten with the same: it was given */
	if (if_no == if_yes &&
	    json_object_set_new(to, "allowInternetAccess", json_boolean(if_no)) < 0)
		return no_memory(err);
	return 0;
}

int network_request_update(const json_t *body, json_t **ret, struct err *err)
{
	AUTO(json_decrefp) json_t *o = json_object(), *network = NULL;

	if (!json_is_object(body))
		return err_set(err, ERR_INVALID, 0, "the body must be an object");
	if (network_request_take(body, "", &network, err) < 0 ||
	    network_request_internet(body, o, err) < 0)
		return -1;
	if (!o || json_object_set(o, "network", network) < 0)
		return no_memory(err);
	*ret = TAKE(o);
	return 0;
}
