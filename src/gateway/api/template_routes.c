/* template_routes.c - which templates there are. They belong to the host and are for all teams. */
#include "gateway/api/answer.h"
#include "gateway/api/api.h"
#include "gateway/api/sandbox_json.h"
#include "gateway/api/snapshot_routes.h"
#include "gateway/parse/template_ref.h"
#include "wire/rfc3339.h"

/* Templates have one build, which E2B's clients want a UUID of. */
#define NO_BUILD "00000000-0000-0000-0000-000000000000"

static void ask_templates(struct api_call *c, api_node_fn *on_done)
{
	const struct node_request rq = { .verb = NODE_TEMPLATES };

	api_ask_node(c, &rq, (struct bytes){ 0 }, API_NODE_MS, on_done);
}

static const char *text_of(const json_t *t, const char *name)
{
	const char *s = json_string_value(json_object_get(t, name));

	return s ? s : "";
}

static json_t *number_of(const json_t *t, const char *name)
{
	return json_integer(json_integer_value(json_object_get(t, name)));
}

static json_t *names_of(const json_t *t)
{
	const char *alias = text_of(t, "alias");

	return alias[0] ? json_pack("[s]", alias) : json_array();
}

static json_t *time_of(const json_t *t)
{
	const char *given = text_of(t, "createdAt");
	char text[RFC3339_SIZE];

	if (given[0])
		return json_string(given);
	rfc3339_put(0, 0, text);
	return json_string(text);
}

/* Those without an alias are damaged or gone: of interest to operators alone. */
static json_t *template_json(const json_t *t)
{
	const char *status = text_of(t, "buildStatus");

	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:n, s:n, s:i, s:i, "
			 "s:s, s:s}",
			 "templateID", text_of(t, "templateID"), "buildID", NO_BUILD, "cpuCount",
			 number_of(t, "cpuCount"), "memoryMB", number_of(t, "memoryMB"),
			 "diskSizeMB", number_of(t, "diskSizeMB"), "public", 1, "aliases",
			 names_of(t), "names", names_of(t), "createdAt", time_of(t), "updatedAt",
			 time_of(t), "createdBy", "lastSpawnedAt", "spawnCount", 0, "buildCount", 1,
			 "envdVersion", SANDBOX_ENVD_VERSION, "buildStatus",
			 status[0] ? status : "ready");
}

static void on_list(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *all = api_node_array(c, said, "templates");
	json_t *out, *t;
	size_t i;

	if (!all)
		return;
	if (api_is_admin(c)) {
		api_answer(c, 200, TAKE(all));
		return;
	}
	out = json_array();
	json_array_foreach(all, i, t)
	{
		if (!text_of(t, "alias")[0])
			continue;
		if (json_array_append_new(out, template_json(t)) < 0) {
			json_decref(out);
			api_fail(c, 500, "node's templates cannot be read");
			return;
		}
	}
	api_answer(c, 200, out);
}

static void template_list(struct api_call *c)
{
	ask_templates(c, on_list);
}

static void on_alias(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *all = api_node_array(c, said, "templates");
	json_t *t;
	size_t i;

	if (!all)
		return;
	json_array_foreach(all, i, t)
	{
		if (!text_of(t, "alias")[0] ||
		    (strcmp(text_of(t, "alias"), c->params[0]) != 0 &&
		     strcmp(text_of(t, "templateID"), c->params[0]) != 0))
			continue;
		api_answer(c, 200,
			   json_pack("{s:s, s:b}", "templateID", text_of(t, "templateID"), "public",
				     1));
		return;
	}
	api_fail(c, 404, "template '%s' not found", c->params[0]);
}

static void template_alias(struct api_call *c)
{
	struct template_ref ref;
	struct err err;

	if (template_ref_parse(bytes_str(c->params[0]), &ref, &err) < 0 ||
	    template_ref_check(&ref, c->team.slug, &err) < 0) {
		api_fail_err(c, &err);
		return;
	}
	if (ref.tag[0] && strcmp(ref.tag, "default") != 0) { /* they have one build */
		api_fail(c, 404, "tag '%s' does not exist for template '%s'", ref.tag, ref.name);
		return;
	}
	memcpy(c->params[0], ref.name, sizeof(ref.name));
	ask_templates(c, on_alias);
}

const struct route template_routes[] = {
	{ "GET", "/templates", AUTH_KEY, template_list },
	{ "GET", "/templates/aliases/{alias}", AUTH_KEY, template_alias },
	{ "POST", "/v3/templates", AUTH_KEY, api_not_built },
	{ "GET", "/v2/templates", AUTH_KEY, api_not_built },
	{ "POST", "/templates/tags", AUTH_KEY, api_not_built },
	{ "DELETE", "/templates/tags", AUTH_KEY, api_not_built },
	{ "GET", "/templates/{templateID}", AUTH_KEY, api_not_built },
	{ "DELETE", "/templates/{templateID}", AUTH_KEY, snapshot_delete },
	{ "PATCH", "/templates/{templateID}", AUTH_KEY, api_not_built },
	{ "PATCH", "/v2/templates/{templateID}", AUTH_KEY, api_not_built },
	{ "GET", "/templates/{templateID}/tags", AUTH_KEY, api_not_built },
	{ "GET", "/templates/{templateID}/files/{hash}", AUTH_KEY, api_not_built },
	{ "POST", "/v2/templates/{templateID}/builds/{buildID}", AUTH_KEY, api_not_built },
	{ "GET", "/templates/{templateID}/builds/{buildID}/status", AUTH_KEY, api_not_built },
	{ "GET", "/templates/{templateID}/builds/{buildID}/logs", AUTH_KEY, api_not_built },
	{ "GET", "/admin/templates", AUTH_ADMIN, template_list },
	{ 0 },
};
