/* admin_routes.c - teams, and how this host is; by the admin door only. */
#include "gateway/api/answer.h"
#include "gateway/api/api.h"
#include "gateway/api/key_routes.h"
#include "gateway/api/limits_json.h"
#include "gateway/api/template_ask.h"
#include "gateway/peers.h"

enum { HEALTH_MS = 3000, STATUS_DEPTH_MAX = 16 };

static json_t *team_json(const struct store_team *t)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "teamID", t->id, "name", t->name, "slug",
			 t->slug, "createdAt", api_time(t->created_ns), "limits",
			 limits_json(&t->limits));
}

static void on_teams(struct api_call *c, const struct store_result *ret)
{
	json_t *all;

	all = json_array();
	for (size_t i = 0; i < ret->n_teams; i++)
		json_array_append_new(all, team_json(&ret->teams[i]));
	api_answer(c, 200, all);
}

static void admin_team_list(struct api_call *c)
{
	const struct store_request rq = { .verb = STORE_TEAM_LIST };

	api_ask_store(c, &rq, on_teams);
}

static bool is_letter_or_digit(char ch)
{
	return (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

static bool team_name_ok(const char *name)
{
	for (size_t i = 0; name[i]; i++)
		if (!is_letter_or_digit(name[i]) && (i == 0 || !strchr("-_. ", name[i])))
			return false;
	return true;
}

/* "My Team_2" becomes "my-team-2". */
static void make_slug(const char *name, char ret[static STORE_NAME_SIZE])
{
	size_t n = 0;

	for (; *name; name++) {
		if (*name >= 'A' && *name <= 'Z')
			ret[n++] = (char)(*name - 'A' + 'a');
		else if (is_letter_or_digit(*name))
			ret[n++] = *name;
		else if (ret[n - 1] != '-') /* a name begins with a letter or digit */
			ret[n++] = '-';
	}
	ret[n] = '\0';
}

static void on_team_added(struct api_call *c, const struct store_result *ret)
{
	api_answer(c, 201, team_json(&ret->teams[0]));
}

static void admin_team_add(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct store_request rq = { .verb = STORE_TEAM_ADD };

	if (api_body(c, &body) < 0 || api_name(c, body, rq.team.name) < 0)
		return;
	if (!team_name_ok(rq.team.name)) {
		api_fail(c, 400,
			 "a team's name has letters, digits, '-', '_', '.' and spaces, and begins "
			 "with a letter or digit");
		return;
	}
	make_slug(rq.team.name, rq.team.slug);
	api_ask_store(c, &rq, on_team_added);
}

static void on_team(struct api_call *c, const struct store_result *ret)
{
	c->team = ret->teams[0];
	c->on_team(c);
}

/* The team named in the path, by its id or its name. */
static void find_team(struct api_call *c, void (*on_done)(struct api_call *c))
{
	struct store_request rq = { .verb = STORE_TEAM_FIND };
	struct bytes given = bytes_str(c->params[0]);
	bool is_id = given.len == STORE_ID_SIZE - 1 && given.ptr[8] == '-' && given.ptr[13] == '-';

	c->on_team = on_done;
	if (!bytes_to_str(given, is_id ? rq.team.id : rq.team.name,
			  is_id ? sizeof(rq.team.id) : sizeof(rq.team.name)))
		api_fail(c, 404, "no such team");
	else
		api_ask_store(c, &rq, on_team);
}

static void on_team_removed(struct api_call *c, const struct store_result *ret)
{
	(void)ret;
	key_cache_drop_team(c->g->api->keys, c->team.id);
	api_answer(c, 204, NULL);
}

static void on_team_templates(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *all = api_node_array(c, said, "templates");
	struct store_request rq = { .verb = STORE_TEAM_REMOVE, .team = c->team };

	if (!all)
		return;
	if (json_array_size(all) > 0)
		api_fail(c, 409,
			 "the team has templates: delete them first, see hotcell templates");
	else
		api_ask_store(c, &rq, on_team_removed);
}

static void on_team_sandboxes(struct api_call *c, struct node_answer *said)
{
	struct node_request rq = { .verb = NODE_TEMPLATE_LIST, .count = 1 };

	if (said->reply->count > 0) {
		api_fail(c, 409, "the team has sandboxes: kill them first");
		return;
	}
	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	api_ask_node(c, &rq, (struct bytes){ 0 }, API_NODE_MS, on_team_templates);
}

static void remove_team(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_LIST };

	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	api_ask_node(c, &rq, (struct bytes){ 0 }, API_NODE_MS, on_team_sandboxes);
}

static void admin_team_remove(struct api_call *c)
{
	find_team(c, remove_team);
}

/* In force from the next create on. */
static void on_team_limited(struct api_call *c, const struct store_result *ret)
{
	key_cache_drop_team(c->g->api->keys, c->team.id);
	api_answer(c, 200, team_json(&ret->teams[0]));
}

static void limit_team(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct store_request rq = { .verb = STORE_TEAM_LIMIT };
	struct err why;

	if (api_body(c, &body) < 0)
		return;
	rq.team = c->team;
	if (limits_read(body, &rq.team.limits, &why) < 0)
		api_fail(c, 400, "%s", why.msg);
	else
		api_ask_store(c, &rq, on_team_limited);
}

static void admin_team_limits(struct api_call *c)
{
	find_team(c, limit_team);
}

static void admin_key_list(struct api_call *c)
{
	find_team(c, key_list);
}

static void admin_key_add(struct api_call *c)
{
	find_team(c, key_add);
}

/* It has a build, which waits for what it is made of. */
static void admin_template_create(struct api_call *c)
{
	find_team(c, template_create);
}

/* Of all daemons: what node says of those it asks goes beside the gateway's own. */
static void add_versions(json_t *status, json_t *node, const struct link *l)
{
	json_t *versions = json_object(), *mismatches = json_array();
	struct err err;

	json_object_set_new(versions, "gateway", json_text(bytes_str(link_build)));
	json_object_set_new(versions, "node",
			    l->peer.build[0] ? json_text(bytes_str(l->peer.build)) : json_null());
	if (l->mismatch) {
		link_why(l, &err);
		json_array_append_new(mismatches, json_text(bytes_str(err.msg)));
	}
	json_object_update(versions, json_object_get(node, "versions"));
	json_array_extend(mismatches, json_object_get(node, "mismatches"));
	json_object_del(node, "versions");
	json_object_del(node, "mismatches");
	json_object_set_new(status, "versions", versions);
	json_object_set_new(status, "mismatches", mismatches);
}

/* All that share the data folder, this one among them. */
static json_t *gateways_json(const struct gateway *g)
{
	json_t *all = json_array();
	struct peer peers[PEERS_MAX];
	size_t n = g->peers ? peers_list(g->peers, peers) : 0;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			all, json_pack("{s:I, s:s, s:I}", "pid", (json_int_t)peers[i].pid, "state",
				       peers[i].state == PEER_DRAINS ? "drains" : "accepts",
				       "connections", (json_int_t)peers[i].connections));
	return all;
}

/* What was spoken with clients, since the start. */
static json_t *http_json(const struct http_server *sv)
{
	static const char *const names[HTTP_VERSIONS] = { [HTTP_1_1] = "1.1", [HTTP_2] = "2" };
	json_t *all = json_object();

	for (size_t i = 0; i < HTTP_VERSIONS && sv; i++)
		json_object_set_new(all, names[i],
				    json_pack("{s:I, s:I}", "connections",
					      (json_int_t)sv->counts[i].connections, "requests",
					      (json_int_t)sv->counts[i].requests));
	return all;
}

/* Of the signer, where TLS is spoken: the same, out of what is said of TLS. */
static void add_signer(json_t *status, json_t *tls)
{
	json_t *mismatch = json_object_get(tls, "mismatch");

	if (!json_is_object(tls))
		return;
	json_object_set(json_object_get(status, "versions"), "signer",
			json_object_get(tls, "build"));
	if (json_is_string(mismatch))
		json_array_append(json_object_get(status, "mismatches"), mismatch);
	json_object_del(tls, "build");
	json_object_del(tls, "mismatch");
}

/* `node` is taken; NULL: it says nothing. */
static void answer_status(struct api_call *c, json_t *node)
{
	const struct api *a = c->g->api;
	const char *domain = c->g->domain[0] ? c->g->domain : NULL;
	json_t *status =
		json_pack("{s:{s:I, s:I, s:s?, s:o}, s:o, s:o}", "gateway", "connections",
			  (json_int_t)(a->public ? a->public->n_conns : 0), "calls",
			  (json_int_t)a->n_calls, "domain", domain, "http", http_json(a->public),
			  "gateways", gateways_json(c->g), "node", node ?: json_null());

	json_object_set_new(status, "tls",
			    c->g->arrivals ? c->g->arrivals_status(c->g->arrivals) : json_null());
	add_versions(status, json_object_get(status, "node"), node_link_state(c->g->node));
	add_signer(status, json_object_get(status, "tls"));
	api_answer(c, 200, status);
}

static void on_status(struct api_call *c, struct node_answer *said)
{
	json_t *node = NULL;
	struct err why;

	if (said->err || json_decode(said->after, NODE_TEXT_MAX, STATUS_DEPTH_MAX, &node, &why) < 0)
		node = NULL;
	answer_status(c, node);
}

static void admin_status(struct api_call *c)
{
	const struct node_request rq = { .verb = NODE_STATUS };
	struct err err;

	c->on_node = on_status;
	c->on_refused = NULL;
	if (node_link_call(c->g->node, &c->node, &rq, (struct bytes){ 0 }, HEALTH_MS, api_on_node,
			   &err) < 0)
		answer_status(c, NULL);
}

static void on_lost(struct api_call *c, struct node_answer *said)
{
	api_answer(c, 200, json_pack("{s:I}", "sandboxes", (json_int_t)said->reply->count));
}

static void admin_confirm_lost(struct api_call *c)
{
	const struct node_request rq = { .verb = NODE_CONFIRM_LOST };

	api_ask_node(c, &rq, (struct bytes){ 0 }, API_NODE_MS, on_lost);
}

static void on_health_store(struct api_call *c, const struct store_result *ret,
			    const struct err *err)
{
	bool node = c->params[0][0] == 'u', store = !err;

	(void)ret;
	api_answer(c, node && store ? 200 : 503,
		   json_pack("{s:s, s:s, s:s}", "status", node && store ? "ok" : "degraded", "node",
			     node ? "up" : "down", "store", store ? "up" : "down"));
}

static void ask_health_store(struct api_call *c, bool node)
{
	const struct store_request rq = { .verb = STORE_TEAM_LIST };

	snprintf(c->params[0], sizeof(c->params[0]), "%s", node ? "up" : "down");
	api_ask_store_any(c, &rq, on_health_store);
}

static void on_health_node(struct api_call *c, struct node_answer *said)
{
	ask_health_store(c, !said->err);
}

static void admin_health(struct api_call *c)
{
	const struct node_request rq = { .verb = NODE_STATUS };
	struct err err;

	c->on_node = on_health_node;
	c->on_refused = NULL;
	if (node_link_call(c->g->node, &c->node, &rq, (struct bytes){ 0 }, HEALTH_MS, api_on_node,
			   &err) < 0)
		ask_health_store(c, false);
}

const struct route admin_routes[] = {
	{ "GET", "/admin/teams", AUTH_ADMIN, admin_team_list },
	{ "POST", "/admin/teams", AUTH_ADMIN, admin_team_add, true },
	{ "DELETE", "/admin/teams/{team}", AUTH_ADMIN, admin_team_remove },
	{ "PATCH", "/admin/teams/{team}/limits", AUTH_ADMIN, admin_team_limits, true },
	{ "GET", "/admin/teams/{team}/keys", AUTH_ADMIN, admin_key_list },
	{ "POST", "/admin/teams/{team}/keys", AUTH_ADMIN, admin_key_add, true },
	{ "POST", "/admin/teams/{team}/templates", AUTH_ADMIN, admin_template_create, true },
	{ "POST", "/admin/confirm-lost", AUTH_ADMIN, admin_confirm_lost },
	{ "GET", "/admin/status", AUTH_ADMIN, admin_status },
	{ "GET", "/admin/health", AUTH_ADMIN, admin_health },
	{ 0 },
};
