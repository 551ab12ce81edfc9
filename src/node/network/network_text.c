/* network_text.c - JSON in, JSON out; nothing of it is believed to have the right form. */
#include "node/network/network_text.h"

#include <errno.h>

#include "node/life/create_text.h"
#include "node/protocol.h"
#include "wire/rule_secrets.h"

static int no_memory(struct err *err)
{
	return err_set(err, ERR_EXHAUSTED, ENOMEM, "the rules of a network");
}

static int decode(const char *text, json_t **ret, struct err *err)
{
	if (json_decode(bytes_str(text ? text : "{}"), NETWORK_RULES_MAX, CREATE_TEXT_DEPTH, ret,
			err) < 0)
		return -1;
	return json_is_object(*ret) ? 0
				    : err_set(err, ERR_INVALID, 0, "a sandbox's text is an object");
}

/* Of `from` to `to`, if it is there. False: no memory. */
static bool copy_member(json_t *to, const json_t *from, const char *name)
{
	json_t *value = json_object_get(from, name);

	return !value || json_is_null(value) || json_object_set(to, name, value) == 0;
}

/* --- for egress --------------------------------------------------------------------------- */

static json_t *hosts_only(json_t *rules)
{
	json_t *hosts = json_object(), *value;
	const char *host;

	/* clang-format off */
	json_object_foreach(rules, host, value) {
		if (json_object_set_new(hosts, host, json_array()) < 0) {
			json_decref(hosts);
			return NULL;
		}
	}
	/* clang-format on */
	return hosts;
}

static int add_network(json_t *to, const json_t *network, struct err *err)
{
	json_t *rules = json_object_get(network, "rules");
	json_t *mine = json_object();

	if (json_object_set_new(to, "network", mine) < 0 ||
	    !copy_member(mine, network, "allowOut") || !copy_member(mine, network, "denyOut"))
		return no_memory(err);
	if (json_is_object(rules) && json_object_set_new(mine, "rules", hosts_only(rules)) < 0)
		return no_memory(err);
	return 0;
}

static int add_known(json_t *to, const char *known, struct err *err)
{
	json_t *pairs = NULL;

	if (!known)
		return 0;
	if (json_decode(bytes_str(known), NETWORK_RULES_MAX, CREATE_TEXT_DEPTH, &pairs, err) < 0)
		return err_wrap(err, "what it knew of names");
	return json_object_set_new(to, "known", pairs) < 0 ? no_memory(err) : 0;
}

int network_text_rules(const struct network_from *from, struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;
	AUTO(json_decrefp) json_t *rules = json_object();

	if (!rules)
		return no_memory(err);
	if (decode(from->text, &all, err) < 0)
		return -1;
	if (!copy_member(rules, all, "services") ||
	    !copy_member(rules, all, "allowInternetAccess") ||
	    !copy_member(rules, all, "refusalPages"))
		return no_memory(err);
	if (from->packages && json_object_set(rules, "packages", from->packages) < 0)
		return no_memory(err);
	if (add_network(rules, json_object_get(all, "network"), err) < 0 ||
	    add_known(rules, from->known, err) < 0)
		return -1;
	return json_encode(rules, out, err);
}

/* --- for the injector ----------------------------------------------------------------------- */

int network_text_opened(const char *text, bool pages, struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;
	AUTO(json_decrefp) json_t *opened = json_pack("{s:{}}", "rules");
	const json_t *network;

	if (!opened)
		return no_memory(err);
	if (!text)
		return 0;
	if (decode(text, &all, err) < 0)
		return -1;
	network = json_object_get(all, "network");
	pages = pages && json_is_true(json_object_get(all, "refusalPages"));
	if (json_object_size(json_object_get(network, "rules")) > 0) {
		if (!copy_member(opened, network, "rules") || !copy_member(opened, all, "sealed"))
			return no_memory(err);
	} else if (!pages) {
		return 0;
	}
	if (pages && json_object_set_new(opened, "refusalPages", json_true()) < 0)
		return no_memory(err);
	return json_encode(opened, out, err);
}

/* --- NODE_NETWORK ------------------------------------------------------------------------- */

/* What PUT speaks of; anything else in a network has another purpose. */
static void clear_outwards(json_t *network)
{
	static const char *const names[] = { "allowOut", "denyOut", "rules", "egressProxy" };

	for (size_t i = 0; i < COUNT(names); i++)
		(void)json_object_del(network, names[i]);
}

static int merge(json_t *all, const json_t *put, struct err *err)
{
	json_t *network = json_object_get(all, "network"), *wanted = NULL;

	if (json_may_object(put, "network", &wanted, err) < 0)
		return -1;
	if (!json_is_object(network)) {
		network = json_object();
		if (json_object_set_new(all, "network", network) < 0)
			return no_memory(err);
	}
	clear_outwards(network);
	if (wanted && json_object_update(network, wanted) < 0)
		return no_memory(err);
	(void)json_object_del(all, "allowInternetAccess");
	(void)json_object_del(all, "sealed"); /* of rules that are gone */
	if (!copy_member(all, put, "allowInternetAccess") || !copy_member(all, put, "sealed") ||
	    !copy_member(all, put, "services"))
		return no_memory(err);
	return 0;
}

int network_text_put(const char *text, struct bytes put, size_t max, char **ret, struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;
	AUTO(json_decrefp) json_t *wanted = NULL;

	if (json_decode(put.len ? put : BYTES_LIT("{}"), max, CREATE_TEXT_DEPTH, &wanted, err) < 0)
		return err_wrap(err, "the network of a sandbox");
	if (!json_is_object(wanted))
		return err_set(err, ERR_INVALID, 0, "the network of a sandbox is an object");
	if (decode(text, &all, err) < 0 || merge(all, wanted, err) < 0)
		return -1;
	if (create_text_put(all, max, ret, err) == 0)
		return 0;
	if (err->code == ERR_EXHAUSTED && err->sys != ENOMEM)
		err_set(err, ERR_INVALID, 0,
			"what is said about a sandbox has more than %zu bytes with this network",
			max);
	return -1;
}

/* --- NODE_SECRET -------------------------------------------------------------------------- */

/* A name may be in the rules before there is such a secret, or after it was deleted. */
static bool may_have(const json_t *all, const char *name)
{
	AUTO(json_decrefp) json_t *names = rule_secrets(all);

	return json_is_object(json_object_get(all, "sealed")) && json_object_get(names, name);
}

int network_text_secret(const char *text, const char *name, json_t *sealed, char **ret,
			struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;
	json_t *values, *value;

	*ret = NULL;
	if (!text || !strstr(text, "\"sealed\"")) /* most have none: they need not be read */
		return 0;
	if (decode(text, &all, err) < 0)
		return -1;
	values = json_object_get(all, "sealed");
	value = json_object_get(values, name);
	if (sealed ? json_equal(value, sealed) || !may_have(all, name) : !value)
		return 0;
	if (sealed ? json_object_set(values, name, sealed) < 0 : json_object_del(values, name) < 0)
		return no_memory(err);
	return create_text_put(all, NODE_TEXT_MAX, ret, err);
}

void network_text_missing(const char *text, char *ret, size_t size)
{
	AUTO(json_decrefp) json_t *all = NULL, *names = NULL;
	const char *name;
	json_t *unused;
	struct err err;
	size_t n = 0;

	ret[0] = '\0';
	if (!text || !strstr(text, "\"sealed\"") || decode(text, &all, &err) < 0)
		return;
	names = rule_secrets(all);
	json_object_foreach(names, name, unused)
	{
		if (json_object_get(json_object_get(all, "sealed"), name))
			continue;
		n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? ", " : "", name);
		if (n >= size)
			return;
	}
}

/* --- EGRESS_KNOWN ------------------------------------------------------------------------- */

static bool is_pair(const json_t *v)
{
	return json_array_size(v) == 2 && json_is_string(json_array_get(v, 0)) &&
	       json_is_string(json_array_get(v, 1));
}

int network_text_known(struct bytes said, char **ret, struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;

	*ret = NULL;
	if (json_decode(said, NETWORK_RULES_MAX, CREATE_TEXT_DEPTH, &all, err) < 0)
		return err_wrap(err, "what egress knows of names");
	for (size_t i = 0; i < json_array_size(all); i++)
		if (!is_pair(json_array_get(all, i)))
			return err_set(err, ERR_INVALID, 0, "egress knows names of another form");
	while (json_array_size(all) > NETWORK_KNOWN_MAX)
		(void)json_array_remove(all, 0);
	if (json_array_size(all) == 0)
		return 0;
	return create_text_put(all, NETWORK_RULES_MAX, ret, err);
}
