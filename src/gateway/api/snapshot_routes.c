/* snapshot_routes.c - snapshots: take, list, delete; and forks of a running sandbox.
 *
 * To a client a snapshot is a template: `<id>:default`, or `<team>/<name>:<tag>` when it has a
 * name.
 */
#include "gateway/api/snapshot_routes.h"

#include "gateway/api/answer.h"
#include "gateway/api/sandbox_ask.h"
#include "gateway/api/sandbox_json.h"
#include "gateway/node_reply.h"
#include "gateway/parse/create_request.h"
#include "gateway/parse/template_ref.h"

enum {
	SNAPSHOTS_LIMIT_MAX = 100,
	SNAPSHOT_NAME_MAX = 2 * (NODE_ID_MAX + 1) + STORE_NAME_SIZE,
	FORK_DEFAULT_S = 15,
	ADMIN_FORK_S = 300,
};

static const char *text_of(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));

	return s ? s : "";
}

/* As E2B's clients want it. */
static json_t *info_json(const struct api_call *c, const json_t *s)
{
	const char *name = text_of(s, "name"), *tag = text_of(s, "tag");

	if (!name[0])
		return json_pack("{s:o, s:[]}", "snapshotID",
				 json_sprintf("%s:%s", text_of(s, "snapshotID"), tag), "names");
	return json_pack("{s:o, s:[o]}", "snapshotID",
			 json_sprintf("%s/%s:%s", c->team.slug, name, tag), "names",
			 json_sprintf("%s/%s", c->team.slug, name));
}

/* --- take --------------------------------------------------------------------------------- */

static void on_taken(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *s = api_node_json(c, said, "snapshots");

	if (s)
		api_answer(c, 201, info_json(c, s));
}

/* A reference of the caller's own team. Answered already when this fails. */
static bool take_ref(struct api_call *c, struct bytes in, struct node_request *rq)
{
	struct template_ref ref;
	struct err err;

	if (template_ref_parse(in, &ref, &err) < 0 ||
	    template_ref_check(&ref, c->team.slug, &err) < 0) {
		api_fail_err(c, &err);
		return false;
	}
	memcpy(rq->template_id, ref.name, sizeof(rq->template_id));
	memcpy(rq->template_tag, ref.tag, sizeof(rq->template_tag));
	return true;
}

/* What clients know as "not offered": they offer a whole one instead. */
static void refuse_disk_alone(struct api_call *c)
{
	api_answer(c, 400,
		   json_pack("{s:i, s:s, s:s}", "code", 400, "message",
			     "snapshots of the file system alone are not there yet", "error_code",
			     "snapshot_filesystem_only_disabled"));
}

/* Ours, not E2B's: a paused one may be copied, too. */
static int take_paused(const json_t *body, bool unless, uint32_t *ret_flags, struct err *err)
{
	bool may = unless;

	if (json_may_bool(body, "allowPaused", &may, err) < 0)
		return -1;
	*ret_flags = may ? NODE_ALSO_PAUSED : 0;
	return 0;
}

static void snapshot_take(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct node_request rq = { .verb = NODE_SNAPSHOT };
	struct bytes name = { 0 };
	bool memory = true;
	struct err err;

	if (!sandbox_take_id(c) || api_body(c, &body) < 0)
		return;
	if (json_may_string(body, "name", &name, &err) < 0 ||
	    json_may_bool(body, "memory", &memory, &err) < 0 ||
	    take_paused(body, false, &rq.flags, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return;
	}
	if (!memory) {
		refuse_disk_alone(c);
		return;
	}
	if (name.len == 0 || take_ref(c, name, &rq))
		sandbox_ask(c, &rq, API_PAUSE_MS, on_taken);
}

/* --- list --------------------------------------------------------------------------------- */

static bool find_param(struct api_call *c, const char *name, struct buf *out)
{
	struct err err;

	if (target_param(c->query, name, out, &err) == 0)
		return true;
	api_fail(c, 400, "%s", err.msg);
	return false;
}

/* From 1 on. */
static bool take_number(struct api_call *c, const char *name, uint64_t most, uint64_t *ret)
{
	AUTO(buf_done) struct buf text = BUF_MAX(SNAPSHOT_NAME_MAX);

	if (!find_param(c, name, &text))
		return false;
	if (text.len == 0 || (bytes_to_u64(buf_view(&text), ret) && *ret >= 1 && *ret <= most))
		return true;
	api_fail(c, 400, "%s is not valid", name);
	return false;
}

static bool take_filters(struct api_call *c, struct node_request *rq)
{
	AUTO(buf_done) struct buf id = BUF_MAX(SNAPSHOT_NAME_MAX);
	AUTO(buf_done) struct buf name = BUF_MAX(SNAPSHOT_NAME_MAX);
	uint64_t limit = SNAPSHOTS_LIMIT_MAX;

	if (!find_param(c, "sandboxID", &id) || !find_param(c, "name", &name) ||
	    !take_number(c, "limit", SNAPSHOTS_LIMIT_MAX, &limit) ||
	    !take_number(c, "nextToken", UINT64_MAX, &rq->after_ns))
		return false;
	if (id.len > 0 && !bytes_to_str(buf_view(&id), rq->id, sizeof(rq->id))) {
		api_fail(c, 400, "Invalid sandbox ID");
		return false;
	}
	rq->count = (uint32_t)limit;
	return name.len == 0 || take_ref(c, buf_view(&name), rq);
}

/* An operator wants to know why each is kept, and sees it as node has it. */
static json_t *show(const struct api_call *c, const json_t *s)
{
	return api_is_admin(c) ? json_deep_copy(s) : info_json(c, s);
}

/* One more was asked for than is shown: then there is another page. */
static void answer_page(struct api_call *c, const json_t *all)
{
	size_t n = json_array_size(all), shown = n < c->seconds ? n : c->seconds;
	const json_t *last = json_array_get(all, shown ? shown - 1 : 0);
	const struct http1_field next = { BYTES_LIT("X-Next-Token"),
					  bytes_str(text_of(last, "createdNs")) };
	json_t *out = json_array();

	for (size_t i = 0; i < shown; i++)
		if (json_array_append_new(out, show(c, json_array_get(all, i))) < 0) {
			json_decref(out);
			out = NULL;
			break;
		}
	api_answer_with(c, 200, out, &next, n > shown);
}

static void on_list(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *all = api_node_json(c, said, "snapshots");

	if (all)
		answer_page(c, all);
}

static void snapshot_list(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_SNAPSHOTS };

	if (!take_filters(c, &rq))
		return;
	c->seconds = rq.count++; /* of a page */
	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	c->on_refused = sandbox_fail;
	api_ask_node_or(c, &rq, (struct bytes){ 0 }, API_NODE_MS, on_list);
}

/* --- delete ------------------------------------------------------------------------------- */

/* Also a template; at the admin door by its id, of any team. */
void snapshot_delete(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_SNAPSHOT_DELETE };

	if (!take_ref(c, bytes_str(c->params[0]), &rq))
		return;
	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	api_ask_node(c, &rq, (struct bytes){ 0 }, API_NODE_MS, sandbox_on_no_content);
}

/* --- fork --------------------------------------------------------------------------------- */

static json_t *forked_json(struct api_call *c, const struct node_forked *f)
{
	if (f->code == ERR_NONE)
		return json_pack("{s:o}", "sandbox", sandbox_json(&f->sandbox, api_domain(c)));
	return json_pack("{s:{s:i, s:o}}", "error", "code",
			 (int)api_status_of((enum err_code)f->code), "message",
			 json_text(bytes_str(f->msg)));
}

static void on_forked(struct api_call *c, struct node_answer *said)
{
	struct node_forked f;
	json_t *all;

	all = json_array();
	while (node_forked_next(&said->after, &f))
		if (json_array_append_new(all, forked_json(c, &f)) < 0) {
			json_decref(all);
			all = NULL;
			break;
		}
	explicit_bzero(&f, sizeof(f));
	api_answer(c, 201, all);
}

static void sandbox_fork(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct node_request rq = { .verb = NODE_FORK };
	int64_t count = 1, seconds = api_is_admin(c) ? ADMIN_FORK_S : FORK_DEFAULT_S;
	struct err err;

	if (!sandbox_take_id(c) || api_body(c, &body) < 0)
		return;
	if (timeout_take(body, "timeout", &seconds, &err) < 0 ||
	    json_may_int(body, "count", INT64_MIN, INT64_MAX, &count, &err) < 0 ||
	    take_paused(body, api_is_admin(c), &rq.flags, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return;
	}
	if (count < 1 || count > NODE_FORK_MAX) {
		api_fail(c, 400, "count must be between 1 and %d", NODE_FORK_MAX);
		return;
	}
	if (timeout_check(seconds, 0, &rq.timeout_s, &err) < 0) {
		api_fail_err(c, &err);
		return;
	}
	rq.count = (uint32_t)count;
	sandbox_limit(c, &rq);
	sandbox_ask(c, &rq, API_PAUSE_MS, on_forked);
}

const struct route snapshot_routes[] = {
	{ "POST", "/sandboxes/{sandboxID}/fork", AUTH_KEY, sandbox_fork, true },
	{ "POST", "/sandboxes/{sandboxID}/snapshots", AUTH_KEY, snapshot_take, true },
	{ "GET", "/snapshots", AUTH_KEY, snapshot_list },
	{ "POST", "/admin/sandboxes/{sandboxID}/fork", AUTH_ADMIN, sandbox_fork, true },
	{ "GET", "/admin/snapshots", AUTH_ADMIN, snapshot_list },
	{ 0 },
};
