/* key_routes.c - a team and its keys, seen by whoever holds one of them. */
#include "gateway/api/key_routes.h"

#include "base/random.h"
#include "gateway/api/answer.h"
#include "gateway/api/api.h"
#include "gateway/api/limits_json.h"
#include "gateway/parse/key_services.h"

enum { HEAD_SHOWN = 2, TAIL_SHOWN = 4, PUBLISHED_MS = 3000 };

/* The team of the key, which is all that a key can know. */
static void team_list(struct api_call *c)
{
	api_answer(c, 200,
		   json_pack("[{s:s, s:s, s:s, s:b}]", "teamID", c->team.id, "name", c->team.name,
			     "apiKey", c->key, "isDefault", 1));
}

/* `key` is NULL but at its birth. Who made it is shown to the operator. */
static json_t *key_json(const struct api_call *c, const struct store_key *k, const char *key)
{
	json_t *mask =
		json_pack("{s:s, s:i, s:s, s:s}", "prefix", "e2b_", "valueLength", API_KEY_DIGITS,
			  "maskedValuePrefix", k->head, "maskedValueSuffix", k->tail);
	json_t *o = json_pack("{s:s, s:o, s:o, s:o, s:n, s:o}", "id", k->id, "name",
			      json_text(bytes_str(k->name)), "mask", mask, "createdAt",
			      api_time(k->created_ns), "createdBy", "lastUsed",
			      k->used_ns ? api_time(k->used_ns) : json_null());

	if (o && (json_object_set_new(o, "limits", limits_json(&k->limits)) < 0 ||
		  json_object_set_new(o, "services", key_services_json(k->services)) < 0 ||
		  (api_is_admin(c) &&
		   json_object_set_new(o, "maker",
				       k->maker[0] ? json_string(k->maker) : json_null()) < 0) ||
		  (key && json_object_set_new(o, "key", json_string(key)) < 0))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static void on_keys(struct api_call *c, const struct store_result *ret)
{
	json_t *all;

	all = json_array();
	for (size_t i = 0; i < ret->n_keys; i++)
		json_array_append_new(all, key_json(c, &ret->keys[i], NULL));
	api_answer(c, 200, all);
}

void key_list(struct api_call *c)
{
	struct store_request rq = { .verb = STORE_KEY_LIST };

	memcpy(rq.key.team_id, c->team.id, sizeof(rq.key.team_id));
	api_ask_store(c, &rq, on_keys);
}

static void on_key_added(struct api_call *c, const struct store_result *ret)
{
	api_answer(c, 201, key_json(c, &ret->keys[0], c->key));
}

/* A new key in c->key, and what is kept of it. */
static void make_key(struct api_call *c, struct store_key *ret)
{
	char digits[API_KEY_DIGITS + 1];

	random_hex(digits, API_KEY_DIGITS / 2);
	snprintf(c->key, sizeof(c->key), "e2b_%s", digits);
	sha256_hex_of(bytes_str(c->key), ret->hash);
	snprintf(ret->head, sizeof(ret->head), "%.*s", HEAD_SHOWN, digits);
	snprintf(ret->tail, sizeof(ret->tail), "%s", digits + API_KEY_DIGITS - TAIL_SHOWN);
	explicit_bzero(digits, sizeof(digits));
}

/* Its maker is the key that asks; the admin door has none. */
void key_add(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct store_request rq = { .verb = STORE_KEY_ADD };

	if (api_body(c, &body) < 0 || api_name(c, body, rq.key.name) < 0)
		return;
	make_key(c, &rq.key);
	memcpy(rq.key.team_id, c->team.id, sizeof(rq.key.team_id));
	memcpy(rq.key.maker, c->key_id, sizeof(rq.key.maker));
	api_ask_store(c, &rq, on_key_added);
}

static void on_renamed(struct api_call *c, const struct store_result *ret)
{
	(void)ret;
	api_answer(c, 200, NULL);
}

/* The key named in the path. False: no such key can exist, and it was answered so. */
static bool take_key_id(struct api_call *c, struct store_request *rq)
{
	if (!bytes_to_str(bytes_str(c->params[0]), rq->key.id, sizeof(rq->key.id))) {
		api_fail(c, 404, "no such key");
		return false;
	}
	memcpy(rq->key.team_id, c->team.id, sizeof(rq->key.team_id));
	return true;
}

static void key_rename(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct store_request rq = { .verb = STORE_KEY_RENAME };

	if (api_body(c, &body) < 0 || api_name(c, body, rq.key.name) < 0 || !take_key_id(c, &rq))
		return;
	api_ask_store(c, &rq, on_renamed);
}

/* Forgotten here before the answer leaves: whoever reads it knows that the key is dead. The keys
 * that it made are among its team's. */
static void on_removed(struct api_call *c, const struct store_result *ret)
{
	key_cache_drop_team(c->g->api->keys, ret->keys[0].team_id);
	api_answer(c, 204, NULL);
}

/* By the admin door, which has no team, a key of any. */
static void key_remove(struct api_call *c)
{
	struct store_request rq = { .verb = STORE_KEY_REMOVE };

	if (take_key_id(c, &rq))
		api_ask_store(c, &rq, on_removed);
}

static void on_rotated(struct api_call *c, const struct store_result *ret)
{
	key_cache_drop_team(c->g->api->keys, ret->keys[0].team_id);
	api_answer(c, 201, key_json(c, &ret->keys[0], c->key));
}

static void admin_key_rotate(struct api_call *c)
{
	struct store_request rq = { .verb = STORE_KEY_ROTATE };

	if (!take_key_id(c, &rq))
		return;
	make_key(c, &rq.key);
	api_ask_store(c, &rq, on_rotated);
}

/* --- limits and services -------------------------------------------------------------------- */

static void on_shown(struct api_call *c, const struct store_result *ret)
{
	api_answer(c, 200, key_json(c, &ret->keys[0], NULL));
}

static void show_key(struct api_call *c)
{
	struct store_request rq = { .verb = STORE_KEY_GET };

	if (take_key_id(c, &rq))
		api_ask_store(c, &rq, on_shown);
}

/* In force from the next create on, by any key that has the same limits. */
static void on_changed(struct api_call *c, const struct store_result *ret)
{
	key_cache_drop_team(c->g->api->keys, ret->keys[0].team_id);
	on_shown(c, ret);
}

static void on_to_limit(struct api_call *c, const struct store_result *ret)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct store_request rq = { .verb = STORE_KEY_LIMIT };
	struct err why;

	rq.key = ret->keys[0];
	if (api_body(c, &body) < 0)
		return;
	if (limits_read(body, &rq.key.limits, &why) < 0)
		api_fail(c, 400, "%s", why.msg);
	else
		api_ask_store(c, &rq, on_changed);
}

static void admin_key_limits(struct api_call *c)
{
	struct store_request rq = { .verb = STORE_KEY_GET };

	if (take_key_id(c, &rq))
		api_ask_store(c, &rq, on_to_limit);
}

/* What was typed, or -1: answered already. *ret is false when services are as they were. */
static int take_services(struct api_call *c, struct store_request *rq, bool *ret)
{
	AUTO(json_decrefp) json_t *body = NULL;
	json_t *names = NULL;
	struct err err;

	if (api_body(c, &body) < 0)
		return -1;
	if (json_may_array(body, "services", &names, &err) < 0 ||
	    key_services_read(names, rq->key.services, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return -1;
	}
	*ret = names != NULL;
	return 0;
}

static void set_services(struct api_call *c)
{
	struct store_request rq = { .verb = STORE_KEY_SERVICES };
	bool given;

	if (take_services(c, &rq, &given) == 0 && take_key_id(c, &rq))
		api_ask_store(c, &rq, on_changed);
}

/* They may be published later. Where node, or egress, does not say which are, nothing is said. */
static void on_published(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *told = NULL;
	struct store_request rq = { 0 };
	struct bytes rest, name;
	struct err err;
	bool given;

	if (!said->err)
		(void)!json_decode(said->after, NODE_TEXT_MAX, API_DEPTH_MAX, &told, &err);
	if (take_services(c, &rq, &given) < 0)
		return;
	rest = bytes_str(rq.key.services);
	while (bytes_next(&rest, ' ', &name))
		if (name.len > 0 && !key_services_has(json_object_get(told, "published"), name))
			api_warn(c,
				 "no service %.*s is published: services in "
				 "/etc/hotcell/egress.conf",
				 (int)name.len, (const char *)name.ptr);
	set_services(c);
}

/* In force for the next create and the next change of a network. Absent: as they were. */
static void admin_key_services(struct api_call *c)
{
	const struct node_request ask = { .verb = NODE_EXPLAIN };
	struct store_request rq = { 0 };
	struct err err;
	bool given;

	if (take_services(c, &rq, &given) < 0)
		return;
	c->on_node = on_published;
	c->on_refused = NULL;
	if (!given)
		show_key(c);
	else if (!rq.key.services[0] || node_link_call(c->g->node, &c->node, &ask, BYTES_LIT("{}"),
						       PUBLISHED_MS, api_on_node, &err) < 0)
		set_services(c);
}

const struct route key_routes[] = {
	{ "GET", "/teams", AUTH_EITHER, team_list },
	{ "GET", "/teams/{teamID}/metrics", AUTH_KEY, api_not_built },
	{ "GET", "/teams/{teamID}/metrics/max", AUTH_KEY, api_not_built },
	{ "GET", "/api-keys", AUTH_KEY, key_list },
	{ "POST", "/api-keys", AUTH_KEY, key_add, true },
	{ "PATCH", "/api-keys/{apiKeyID}", AUTH_KEY, key_rename, true },
	{ "DELETE", "/api-keys/{apiKeyID}", AUTH_KEY, key_remove },
	{ "DELETE", "/admin/keys/{apiKeyID}", AUTH_ADMIN, key_remove },
	{ "PATCH", "/admin/keys/{apiKeyID}/limits", AUTH_ADMIN, admin_key_limits, true },
	{ "POST", "/admin/keys/{apiKeyID}/rotate", AUTH_ADMIN, admin_key_rotate },
	{ "PATCH", "/admin/keys/{apiKeyID}/services", AUTH_ADMIN, admin_key_services, true },
	{ 0 },
};
