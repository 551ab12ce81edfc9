/* template_routes.c - a team's templates: create, look, publish, delete; their tags and names. */
#include "gateway/api/answer.h"
#include "gateway/api/api.h"
#include "gateway/api/sandbox_ask.h"
#include "gateway/api/snapshot_routes.h"
#include "gateway/api/template_ask.h"
#include "gateway/api/template_json.h"
#include "gateway/parse/template_request.h"

enum { BUILDS_PAGE = 100, PARAM_MAX = 64 };

/* --- who is meant --------------------------------------------------------------------------- */

bool template_take(struct api_call *c, struct node_request *rq)
{
	struct template_ref ref;
	struct err err;

	snprintf(rq->team, sizeof(rq->team), "%s", c->team.id);
	if (template_ref_parse(bytes_str(c->params[0]), &ref, &err) < 0 ||
	    template_ref_check(&ref, c->team.slug, &err) < 0) {
		api_fail_err(c, &err);
		return false;
	}
	memcpy(rq->template_id, ref.name, sizeof(rq->template_id));
	memcpy(rq->template_tag, ref.tag, sizeof(rq->template_tag));
	return true;
}

void template_ask(struct api_call *c, const struct node_request *rq, const json_t *text,
		  api_node_fn *on_done)
{
	size_t max = rq->verb == NODE_BUILD_START ? NODE_FILE_TEXT_MAX : NODE_TEXT_MAX;
	AUTO(buf_done) struct buf out = BUF_SECRET(max);
	struct err err;

	if (text && json_encode(text, &out, &err) < 0)
		api_fail(c, 413, "the request is larger than %zu KiB", max / 1024);
	else
		api_ask_node(c, rq, buf_view(&out), API_NODE_MS, on_done);
}

/* --- create --------------------------------------------------------------------------------- */

/* {"templateID","buildID","public","names","tags","aliases"}: each is wanted. */
static void on_created(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *t = api_node_json(c, said, "template");
	const char *name;
	json_t *out;

	if (!t)
		return;
	name = template_text(t, "name");
	out = json_pack("{s:s, s:s, s:b, s:[o], s:o, s:[s]}", "templateID",
			template_text(t, "templateID"), "buildID", template_text(t, "buildID"),
			"public", json_is_true(json_object_get(t, "public")), "names",
			json_sprintf("%s/%s", c->team.slug, name), "tags",
			json_deep_copy(json_object_get(t, "tags")), "aliases", name);
	api_answer(c, 202, out);
}

/* The second version answers with the whole template. */
static void on_whole(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *t = api_node_json(c, said, "template");

	if (t)
		api_answer(c, 202, template_json(t));
}

static void on_created_v2(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *t = api_node_json(c, said, "template");
	struct node_request rq = { .verb = NODE_TEMPLATE_GET };

	if (!t)
		return;
	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	snprintf(rq.template_id, sizeof(rq.template_id), "%.*s", NODE_ID_MAX,
		 template_text(t, "templateID"));
	template_ask(c, &rq, NULL, on_whole);
}

void template_create(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_TEMPLATE_CREATE };
	struct template_request want;
	struct err err;

	if (template_create_parse(buf_view(&c->body), c->team.slug, &want, &err) < 0) {
		api_fail_err(c, &err);
		return;
	}
	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	memcpy(rq.template_id, want.name, sizeof(rq.template_id));
	template_ask(c, &rq, want.text, c->route->v2 ? on_created_v2 : on_created);
	template_request_done(&want);
}

/* What SDKs and CLIs before version 2 did: images were pushed to a registry of the server's. */
static void template_legacy(struct api_call *c)
{
	api_fail(c, 400,
		 "this way to build templates is not supported: use Template.build() of the e2b "
		 "packages 2.0 or newer, or `e2b template create` of the CLI 2.0 or newer");
}

/* --- look ----------------------------------------------------------------------------------- */

static bool find_param(struct api_call *c, const char *name, struct buf *out)
{
	struct err err;

	if (target_param(c->query, name, out, &err) == 0)
		return true;
	api_fail(c, 400, "%s", err.msg);
	return false;
}

/* A page begins behind the build that the last one ended with. */
static void on_got(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *t = api_node_json(c, said, "template");
	AUTO(buf_done) struct buf token = BUF_MAX(PARAM_MAX);
	const json_t *builds = json_object_get(t, "builds");
	struct http1_field next = { BYTES_LIT("X-Next-Token"), { 0 } };
	size_t n = json_array_size(builds), first = 0, shown;

	if (!t || !find_param(c, "nextToken", &token))
		return;
	while (token.len > 0 && first < n &&
	       !bytes_eq(buf_view(&token),
			 bytes_str(template_text(json_array_get(builds, first), "buildID"))))
		first++;
	if (token.len > 0 && first == n) {
		api_fail(c, 400, "Invalid next token");
		return;
	}
	first += token.len > 0;
	shown = n - first < c->seconds ? n - first : c->seconds;
	if (first + shown < n)
		next.value = bytes_str(
			template_text(json_array_get(builds, first + shown - 1), "buildID"));
	api_answer_with(c, 200, template_builds_json(t, first, shown), &next, first + shown < n);
}

static void template_get(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_TEMPLATE_GET };
	AUTO(buf_done) struct buf limit = BUF_MAX(PARAM_MAX);
	uint64_t n = BUILDS_PAGE;

	if (!template_take(c, &rq) || !find_param(c, "limit", &limit))
		return;
	if (limit.len > 0 && (!bytes_to_u64(buf_view(&limit), &n) || n < 1 || n > BUILDS_PAGE)) {
		api_fail(c, 400, "limit is not valid");
		return;
	}
	c->seconds = (uint32_t)n; /* of a page */
	template_ask(c, &rq, NULL, on_got);
}

static void on_alias(struct api_call *c, struct node_answer *said)
{
	json_t *t = api_node_json(c, said, "template");

	if (t)
		api_answer(c, 200, t);
}

/* Of any team, by its id: as node says it. */
static void template_show(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_TEMPLATE_GET };

	if (template_take(c, &rq))
		template_ask(c, &rq, NULL, on_alias);
}

static void template_alias(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_TEMPLATE_ALIAS };
	struct template_ref ref;
	struct err err;

	if (template_ref_parse(bytes_str(c->params[0]), &ref, &err) < 0 ||
	    template_ref_name(&ref, c->team.slug, rq.template_id, &err) < 0) {
		api_fail_err(c, &err);
		return;
	}
	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	memcpy(rq.template_tag, ref.tag, sizeof(rq.template_tag));
	template_ask(c, &rq, NULL, on_alias);
}

/* --- change --------------------------------------------------------------------------------- */

static void on_changed(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *t = api_node_json(c, said, "template");

	if (t)
		api_answer(c, 200,
			   c->route->v2 ? json_pack("{s:o}", "names", template_names(t))
					: json_object());
}

static void template_change(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL, *text = json_object();
	struct node_request rq = { .verb = NODE_TEMPLATE_PUBLIC };
	bool public = false;
	struct err err;

	if (!template_take(c, &rq) || api_body(c, &body) < 0)
		return;
	if (json_may_bool(body, "public", &public, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return;
	}
	if (json_is_boolean(json_object_get(body, "public")))
		(void)json_object_set_new(text, "public", json_boolean(public));
	template_ask(c, &rq, text, on_changed);
}

/* --- tags ----------------------------------------------------------------------------------- */

static void on_assigned(struct api_call *c, struct node_answer *said)
{
	json_t *v = api_node_json(c, said, "tags");

	if (v)
		api_answer(c, 201, v);
}

static void change_tags(struct api_call *c, bool removes)
{
	struct node_request rq = { .verb = removes ? NODE_TAGS_REMOVE : NODE_TAGS_ASSIGN };
	struct template_request want;
	struct err err;

	if (template_tags_parse(buf_view(&c->body), removes, c->team.slug, &want, &err) < 0) {
		api_fail_err(c, &err);
		return;
	}
	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	memcpy(rq.template_id, want.name, sizeof(rq.template_id));
	memcpy(rq.template_tag, want.tag, sizeof(rq.template_tag));
	template_ask(c, &rq, want.text, removes ? sandbox_on_no_content : on_assigned);
	template_request_done(&want);
}

static void tags_assign(struct api_call *c)
{
	change_tags(c, false);
}

static void tags_remove(struct api_call *c)
{
	change_tags(c, true);
}

static void on_tags(struct api_call *c, struct node_answer *said)
{
	json_t *v = api_node_array(c, said, "tags");

	if (v)
		api_answer(c, 200, v);
}

static void tags_list(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_TAGS_LIST };

	if (template_take(c, &rq))
		template_ask(c, &rq, NULL, on_tags);
}

const struct route template_routes[] = {
	{ "GET", "/templates/aliases/{alias}", AUTH_KEY, template_alias },
	{ "POST", "/v3/templates", AUTH_KEY, template_create, true },
	{ "POST", "/v2/templates", AUTH_KEY, template_create, true, .v2 = true },
	{ "POST", "/templates", AUTH_KEY, template_legacy },
	{ "POST", "/templates/tags", AUTH_KEY, tags_assign, true },
	{ "DELETE", "/templates/tags", AUTH_KEY, tags_remove, true },
	{ "GET", "/templates/{templateID}", AUTH_KEY, template_get },
	{ "POST", "/templates/{templateID}", AUTH_KEY, template_legacy },
	{ "DELETE", "/templates/{templateID}", AUTH_KEY, snapshot_delete },
	{ "PATCH", "/templates/{templateID}", AUTH_KEY, template_change, true },
	{ "PATCH", "/v2/templates/{templateID}", AUTH_KEY, template_change, true, .v2 = true },
	{ "PATCH", "/admin/templates/{templateID}", AUTH_ADMIN, template_change, true },
	{ "GET", "/templates/{templateID}/tags", AUTH_KEY, tags_list },
	{ "POST", "/templates/{templateID}/builds/{buildID}", AUTH_KEY, template_legacy },
	{ "GET", "/admin/templates/{templateID}", AUTH_ADMIN, template_show },
	{ 0 },
};
