/* build_routes.c - builds of templates: begin, look, cancel.
 *
 * A build with credentials for a registry begins in two steps: the key of the images daemon from
 * node -> sealed -> the build. Node is given what is sealed, and cannot open it.
 */
#include "base/wipe.h"
#include "gateway/api/answer.h"
#include "gateway/api/api.h"
#include "gateway/api/sandbox_ask.h"
#include "gateway/api/template_ask.h"
#include "gateway/api/template_json.h"
#include "gateway/parse/build_query.h"
#include "gateway/parse/build_request.h"
#include "images/protocol.h"
#include "tls/seal.h"

enum { KEY_DEPTH_MAX = 2 };

/* The build that the path names: of a template of the team's, or of an operator's by itself. */
static bool take_build(struct api_call *c, struct node_request *rq)
{
	const char *id = c->params[api_is_admin(c) ? 0 : 1];

	if (!bytes_to_str(bytes_str(id), rq->id, sizeof(rq->id))) {
		api_fail(c, 404, "build '%.64s' not found", id);
		return false;
	}
	return api_is_admin(c) || template_take(c, rq);
}

/* --- begin ---------------------------------------------------------------------------------- */

/* 202 without a body, and with a length: the SDKs read it otherwise. */
static void on_begun(struct api_call *c, struct node_answer *said)
{
	(void)said;
	api_answer(c, 202, NULL);
}

struct build_job { /* of a call that begins one */
	struct api_job job;
	struct node_request rq;
	struct build_request want;
};

static void job_free(struct api_job *job)
{
	struct build_job *j = CONTAINER_OF(job, struct build_job, job);

	build_request_done(&j->want);
	free(j);
}

/* The label: what one team has sealed is of no use to another. */
static int seal_credentials(struct api_call *c, struct build_job *j, struct bytes key,
			    struct err *err)
{
	AUTO(buf_done) struct buf sealed = BUF_MAX(SEAL_TEXT_MAX + 1);
	char label[STORE_ID_SIZE + sizeof(IMAGES_SEAL_LABEL)];

	snprintf(label, sizeof(label), "%s" IMAGES_SEAL_LABEL, c->team.id);
	loop_forget(c->g->loop);
	if (seal(key, bytes_str(label), buf_view(&j->want.credentials), &sealed, err) < 0)
		return -1;
	buf_done(&j->want.credentials);
	return json_object_set_new(j->want.text, "sealed", json_text(buf_view(&sealed))) < 0
		       ? err_set(err, ERR_INTERNAL, 0, "no memory")
		       : 0;
}

static void on_seal_key(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *text = api_node_json(c, said, "key");
	struct build_job *j;
	struct bytes key;
	struct err err;

	if (!text)
		return;
	j = CONTAINER_OF(c->job, struct build_job, job);
	if (json_want_string(text, "sealKey", &key, &err) < 0 ||
	    seal_credentials(c, j, key, &err) < 0) {
		err.code = ERR_INTERNAL; /* nothing of it is the client's fault */
		api_fail_err(c, &err);
	} else {
		template_ask(c, &j->rq, j->want.text, on_begun);
	}
}

static void ask_seal_key(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_SEAL_KEY, .flags = NODE_FOR_IMAGES };

	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	template_ask(c, &rq, NULL, on_seal_key);
}

/* Answered already when this is NULL. The password is nowhere else afterwards. */
static struct build_job *take_job(struct api_call *c)
{
	struct build_job *j = calloc(1, sizeof(*j));
	struct err err;
	int rc;

	if (!j) {
		api_fail(c, 503, "no memory");
		return NULL;
	}
	j->job.free = job_free;
	c->job = &j->job;
	rc = build_request_parse(buf_view(&c->body), c->team.slug, &j->want, &err);
	wipe(c->body.ptr, c->body.len);
	if (rc == 0)
		return j;
	api_fail_err(c, &err);
	return NULL;
}

static void build_start(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_BUILD_START };
	struct build_job *j;

	if (!take_build(c, &rq))
		return;
	j = take_job(c);
	if (!j)
		return;
	j->rq = rq;
	if (j->want.credentials.len > 0)
		ask_seal_key(c);
	else
		template_ask(c, &j->rq, j->want.text, on_begun);
}

/* --- look ----------------------------------------------------------------------------------- */

static void ask_lines(struct api_call *c, const struct build_query *q, api_node_fn *on_done)
{
	AUTO(json_decrefp) json_t *text = json_pack("{s:s}", "level", q->level);
	struct node_request rq = { .verb = NODE_BUILD_STATUS,
				   .after_ns = q->offset,
				   .until_ns = q->after_ms * 1000000,
				   .flags = q->newest ? NODE_NEWEST : 0,
				   .count = q->limit };

	c->seconds = q->limit;
	if (take_build(c, &rq))
		template_ask(c, &rq, text, on_done);
}

/* To node no limit is the largest. */
static void drop_lines(const struct api_call *c, json_t *b)
{
	if (c->seconds == 0)
		(void)json_array_clear(json_object_get(b, "logEntries"));
}

static void on_status(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *b = api_node_json(c, said, "build");

	if (!b)
		return;
	drop_lines(c, b);
	api_answer(c, 200, api_is_admin(c) ? TAKE(b) : template_build_json(b));
}

static void build_status(struct api_call *c)
{
	struct build_query q;
	struct err err;

	if (build_query_status(c->query, &q, &err) < 0)
		api_fail_err(c, &err);
	else
		ask_lines(c, &q, on_status);
}

static void on_logs(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *b = api_node_json(c, said, "build");

	if (!b)
		return;
	drop_lines(c, b);
	api_answer(c, 200, json_pack("{s:O}", "logs", json_object_get(b, "logEntries")));
}

static void build_logs(struct api_call *c)
{
	struct build_query q;
	struct err err;

	if (build_query_logs(c->query, &q, &err) < 0)
		api_fail_err(c, &err);
	else
		ask_lines(c, &q, on_logs);
}

/* --- cancel: ours, E2B has none ------------------------------------------------------------- */

static void build_cancel(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_BUILD_CANCEL };

	if (take_build(c, &rq))
		template_ask(c, &rq, NULL, sandbox_on_no_content);
}

const struct route build_routes[] = {
	{ "POST", "/v2/templates/{templateID}/builds/{buildID}", AUTH_KEY, build_start, true,
	  .secret = true, .large = true },
	{ "GET", "/templates/{templateID}/builds/{buildID}/status", AUTH_KEY, build_status },
	{ "GET", "/templates/{templateID}/builds/{buildID}/logs", AUTH_KEY, build_logs },
	{ "DELETE", "/templates/{templateID}/builds/{buildID}", AUTH_KEY, build_cancel },
	{ "GET", "/admin/builds/{buildID}", AUTH_ADMIN, build_status },
	{ "DELETE", "/admin/builds/{buildID}", AUTH_ADMIN, build_cancel },
	{ 0 },
};
