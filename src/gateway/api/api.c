/* api.c - a request's way up to its handler; what handlers read, and whom they ask. */
#include "gateway/api/api.h"

#include "base/list.h"
#include "gateway/api/answer.h"
#include "gateway/api/auth.h"
#include "gateway/api/upload_routes.h"
#include "gateway/peers.h"

static_assert((int)KEY_CACHE_COUNTS == (int)PEERS_KEY_COUNTS, "two names for one size");

int api_open(struct gateway *g, struct store *s, struct err *err)
{
	struct api *a = calloc(1, sizeof(*a));
	struct key_cache *keys = calloc(1, sizeof(*keys));

	if (!a || !keys) {
		free(a);
		free(keys);
		return err_set(err, ERR_EXHAUSTED, 0, "no memory for the API");
	}
	if (g->peers)
		keys->shared = peers_key_counts(g->peers);
	*a = (struct api){ .g = g, .store = s, .keys = keys };
	g->api = a;
	return 0;
}

void api_close(struct api *a)
{
	if (!a)
		return;
	while (a->calls)
		api_call_free(a->calls);
	uploads_close(a);
	explicit_bzero(a->upload_key, sizeof(a->upload_key));
	store_forget(&a->used_call);
	free(a->keys);
	free(a);
}

/* 429: of all answers it is the one that each of the SDKs asks again after, when it says how long
 * to wait. What node has begun is given up, so that nothing is made twice. Who waits for the store
 * is left alone: it is a matter of moments, and whoever changes a key has to count it. */
void api_cut(struct api *a)
{
	list_each(struct api_call, c, a->calls)
		if (c->rq && !c->store.job && !http_responded(c->rq))
			api_fail(c, 429, "the gateway is being replaced: ask again");
}

void api_call_free(struct api_call *c)
{
	struct api *a = c->g->api;

	link_cancel(&c->node);
	store_forget(&c->store);
	if (c->job)
		c->job->free(c->job);
	a->body_bytes -= c->body.len;
	a->n_calls--;
	list_remove(c);
	buf_done(&c->body);
	buf_done(&c->out);
	explicit_bzero(c->key, sizeof(c->key));
	free(c);
}

static size_t body_max(const struct api_call *c)
{
	return c->route->large ? API_LARGE_MAX : API_BODY_MAX;
}

/* One that is larger than others takes one of a few places. */
static bool has_place(const struct api_call *c)
{
	size_t all = 0, team = 0;

	for (const struct api_call *o = c->g->api->calls; o; o = o->next) {
		bool large = o != c && o->body.len > API_BODY_MAX;

		all += large;
		team += large && strcmp(o->team.id, c->team.id) == 0;
	}
	return all < API_LARGE_ALL_MAX && team < API_LARGE_TEAM_MAX;
}

static void on_body(struct http_handler *h, struct bytes piece)
{
	struct api_call *c = CONTAINER_OF(h, struct api_call, handler);
	struct api *a = c->g->api;
	struct err err;

	if (c->body.len <= API_BODY_MAX && c->body.len + piece.len > API_BODY_MAX &&
	    c->route->large && !has_place(c)) {
		api_fail(c, 429, "too many large requests at once");
		return;
	}
	if (a->body_bytes + piece.len > API_BODIES_MAX) {
		api_fail(c, 503, "too many requests at once");
		return;
	}
	if (buf_add(&c->body, piece, &err) < 0) {
		api_fail(c, 413, "the body is larger than %zu bytes", body_max(c));
		return;
	}
	a->body_bytes += piece.len;
}

static void on_body_end(struct http_handler *h)
{
	struct api_call *c = CONTAINER_OF(h, struct api_call, handler);

	c->route->run(c);
}

static void on_drain(struct http_handler *h)
{
	struct api_call *c = CONTAINER_OF(h, struct api_call, handler);

	if (c->out_sent < c->out.len)
		api_send_more(c);
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	struct api_call *c = CONTAINER_OF(h, struct api_call, handler);

	(void)err;
	c->rq = NULL;
	if (!c->store.job && !c->outlives)
		api_call_free(c);
}

static struct api_call *call_new(struct gateway *g, struct http_request *rq)
{
	static const struct http_handler_ops ops = { on_body, on_body_end, on_drain, on_gone };
	struct api *a = g->api;
	struct api_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct api_call){
		.handler = { &ops }, .rq = rq, .g = g, .body = BUF_MAX(API_BODY_MAX)
	};
	list_add(&a->calls, c);
	a->n_calls++;
	return c;
}

static void note_team(const struct api_call *c)
{
	struct http_note *note = http_request_note(c->rq);

	(void)snprintf(note->whose, sizeof(note->whose), "%s name=%.40s", c->team.id, c->team.slug);
}

void api_proceed(struct api_call *c)
{
	if (c->rq && c->team.id[0])
		note_team(c);
	if (!c->rq) {
		api_call_free(c);
	} else if (c->route->has_body) {
		c->body.max = body_max(c);
		http_body_start(c->rq, c->body.max);
	} else {
		c->route->run(c);
	}
}

static void no_route(struct http_request *rq, const char *allow, const struct err *err)
{
	if (err->code)
		api_refuse(rq, 400, err->msg, NULL);
	else if (allow[0])
		api_refuse(rq, 405, "method not allowed", allow);
	else
		api_refuse(rq, 404, "no such route", NULL);
}

static void begin(struct gateway *g, struct http_request *rq, bool admin)
{
	const struct http1_head *head = http_request_head(rq);
	struct api_call *c = call_new(g, rq);
	struct err err = { 0 };
	struct target target;
	struct route_search search = { .method = head->method, .admin = admin };

	if (!c) {
		api_refuse(rq, 503, "no memory", NULL);
		return;
	}
	search.params = c->params;
	if (target_split(head->target, &target, &err) == 0) {
		search.path = target.path;
		c->query = target.query;
		c->route = route_find(&search, &err);
	}
	if (!c->route) {
		api_call_free(c);
		no_route(rq, search.allow, &err);
		return;
	}
	figures_route(rq, c->route->method, c->route->path);
	http_request_take(rq, &c->handler);
	if (c->route->secret) {
		c->body.secret = true;
		http_request_secret(rq);
	}
	auth_start(c);
}

void api_request(struct gateway *g, struct http_request *rq)
{
	if (bytes_eq(http_request_head(rq)->method, BYTES_LIT("OPTIONS")))
		api_preflight(rq);
	else
		begin(g, rq, false);
}

void admin_request(struct gateway *g, struct http_request *rq)
{
	begin(g, rq, true);
}

int api_body(struct api_call *c, json_t **ret)
{
	struct bytes body = c->body.len > 0 ? buf_view(&c->body) : BYTES_LIT("{}");
	struct err err;

	if (json_decode(body, API_BODY_MAX, API_DEPTH_MAX, ret, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return -1;
	}
	if (!json_is_object(*ret)) {
		json_decref(*ret);
		*ret = NULL;
		api_fail(c, 400, "the body must be a JSON object");
		return -1;
	}
	return 0;
}

json_t *api_node_json(struct api_call *c, const struct node_answer *said, const char *what)
{
	json_t *v = NULL;
	struct err why;

	if (json_decode(said->after, NODE_MESSAGE_MAX, API_DEPTH_MAX, &v, &why) == 0)
		return v;
	api_fail(c, 500, "node's %s cannot be read: %s", what, why.msg);
	return NULL;
}

json_t *api_node_array(struct api_call *c, const struct node_answer *said, const char *what)
{
	json_t *v = api_node_json(c, said, what);

	if (!v || json_is_array(v))
		return v;
	json_decref(v);
	api_fail(c, 500, "node's %s cannot be read", what);
	return NULL;
}

int api_name(struct api_call *c, const json_t *body, char ret[static STORE_NAME_SIZE])
{
	struct bytes name;
	struct err err;
	bool ok;

	if (json_want_string(body, "name", &name, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return -1;
	}
	ok = name.len > 0 && bytes_to_str(name, ret, STORE_NAME_SIZE);
	for (size_t i = 0; ok && i < name.len; i++)
		ok = name.ptr[i] >= ' ' && name.ptr[i] != 127;
	if (!ok) {
		api_fail(c, 400, "name must be 1 to %d bytes of text", STORE_NAME_SIZE - 1);
		return -1;
	}
	return 0;
}

static void on_store(struct store_call *call, const struct store_result *ret, const struct err *err)
{
	struct api_call *c = CONTAINER_OF(call, struct api_call, store);

	if (err)
		api_fail_err(c, err);
	else
		c->on_store(c, ret);
}

void api_ask_store(struct api_call *c, const struct store_request *rq, api_store_fn *on_done)
{
	struct err err;

	c->on_store = on_done;
	if (store_ask(c->g->api->store, &c->store, rq, on_store, &err) < 0)
		api_fail(c, 503, "%s", err.msg);
}

void api_on_store_any(struct store_call *call, const struct store_result *ret,
		      const struct err *err)
{
	struct api_call *c = CONTAINER_OF(call, struct api_call, store);

	c->on_store_any(c, ret, err);
}

void api_ask_store_any(struct api_call *c, const struct store_request *rq,
		       api_store_any_fn *on_done)
{
	struct err err;

	c->on_store_any = on_done;
	if (store_ask(c->g->api->store, &c->store, rq, api_on_store_any, &err) < 0)
		api_fail(c, 503, "%s", err.msg);
}

void api_on_node(struct link_call *call, const struct link_reply *r)
{
	struct api_call *c = CONTAINER_OF(call, struct api_call, node);
	struct node_answer said = { node_reply_of(r), r->after, r->err };

	if (r->err && c->on_refused)
		c->on_refused(c, &said);
	else
		c->on_node(c, &said);
}

void api_ask_node_or(struct api_call *c, const struct node_request *rq, struct bytes text,
		     uint64_t deadline_ms, api_node_fn *on_done)
{
	struct node_request named = *rq;
	struct err err;

	c->on_node = on_done;
	if (c->rq)
		snprintf(named.request, sizeof(named.request), "%s", http_request_note(c->rq)->id);
	if (node_link_call(c->g->node, &c->node, &named, text, deadline_ms, api_on_node, &err) < 0)
		api_fail_err(c, &err);
}

void api_ask_node(struct api_call *c, const struct node_request *rq, struct bytes text,
		  uint64_t deadline_ms, api_node_fn *on_done)
{
	c->on_refused = api_fail_reply;
	api_ask_node_or(c, rq, text, deadline_ms, on_done);
}
