/* sandbox_record.c - what is recorded of a sandbox: metrics and logs. */
#include "base/clock.h"
#include "gateway/api/answer.h"
#include "gateway/api/sandbox_ask.h"
#include "gateway/parse/record_query.h"
#include "wire/rfc3339.h"

enum {
	RECORD_DEPTH_MAX = 16,
	LOGS_PARTS_MAX = 64, /* asked of node for one answer; then it is shorter */
	LATEST_S = 60,       /* a sandbox without a metric for so long has none */
};

struct record_job {
	struct api_job job;
	struct record_query q;
	struct node_request rq;
	json_t *found; /* an array of entries, or an object of metrics by id */
	unsigned int n_parts;
	struct buf ids;    /* that are still to be asked about */
	struct bytes rest; /* of them */
};

static struct record_job *job_of(const struct api_call *c)
{
	return CONTAINER_OF(c->job, struct record_job, job);
}

static void job_free(struct api_job *job)
{
	struct record_job *j = CONTAINER_OF(job, struct record_job, job);

	json_decref(j->found);
	buf_done(&j->ids);
	free(j);
}

/* The job of a call. Answered already when this fails. */
static struct record_job *begin(struct api_call *c, json_t *found)
{
	struct record_job *j = calloc(1, sizeof(*j));

	if (j) {
		j->job.free = job_free;
		c->job = &j->job;
	}
	if (!j || !found) {
		json_decref(found);
		api_fail(c, 503, "no memory");
		return NULL;
	}
	j->found = found;
	j->ids = BUF_MAX(RECORD_IDS_MAX * (NODE_ID_MAX + 1));
	return j;
}

/* The same for a list of one sandbox's records. */
static struct record_job *begin_one(struct api_call *c, enum node_verb verb,
				    int (*parse)(struct bytes, struct record_query *, struct err *))
{
	struct record_job *j;
	struct err err;

	if (!sandbox_take_id(c))
		return NULL;
	j = begin(c, json_array());
	if (!j)
		return NULL;
	if (parse(c->query, &j->q, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return NULL;
	}
	j->rq = (struct node_request){ .verb = verb,
				       .after_ns = j->q.after_ns,
				       .until_ns = j->q.until_ns,
				       .count = j->q.limit,
				       .flags = j->q.newest ? NODE_NEWEST : 0 };
	return j;
}

/* Node's array, or NULL. */
static json_t *array_of(struct bytes text)
{
	json_t *v = NULL;
	struct err err;

	if (json_decode(text, NODE_MESSAGE_MAX, RECORD_DEPTH_MAX, &v, &err) < 0)
		return NULL;
	if (!json_is_array(v)) {
		json_decref(v);
		return NULL;
	}
	return v;
}

static void on_metrics(struct api_call *c, struct node_answer *said)
{
	json_t *points = api_node_array(c, said, "metrics");

	if (points)
		api_answer(c, 200, points);
}

static void sandbox_metrics(struct api_call *c)
{
	const struct record_job *j = begin_one(c, NODE_METRICS, record_query_metrics);

	if (j)
		sandbox_ask(c, &j->rq, API_NODE_MS, on_metrics);
}

/* --- the newest metric of several ---------------------------------------------------------- */

static void ask_next(struct api_call *c);

static void on_latest(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *points = NULL;
	size_t n;

	if (said->err && said->err->code != ERR_NOT_FOUND) {
		sandbox_fail(c, said);
		return;
	}
	points = said->err ? NULL : array_of(said->after);
	n = json_array_size(points);
	if (n > 0 &&
	    json_object_set(job_of(c)->found, c->params[0], json_array_get(points, n - 1)) < 0)
		api_fail(c, 503, "no memory");
	else
		ask_next(c);
}

static void ask_next(struct api_call *c)
{
	struct record_job *j = job_of(c);
	struct bytes one;

	if (!bytes_next(&j->rest, ',', &one)) {
		api_answer(c, 200, json_pack("{s:O}", "sandboxes", j->found));
		return;
	}
	c->on_refused = NULL; /* one that is gone is left out */
	if (++j->n_parts > RECORD_IDS_MAX)
		api_fail(c, 400, "at most %d sandboxes at once", RECORD_IDS_MAX);
	else if (!bytes_to_str(one, c->params[0], sizeof(c->params[0])))
		api_fail(c, 400, "Invalid sandbox ID");
	else if (sandbox_take_id(c))
		sandbox_ask_or(c, &j->rq, API_NODE_MS, on_latest);
}

static void sandboxes_metrics(struct api_call *c)
{
	struct record_job *j = begin(c, json_object());
	struct err err;

	if (!j)
		return;
	if (record_query_ids(c->query, &j->ids, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return;
	}
	j->rest = buf_view(&j->ids);
	j->rq.verb = NODE_METRICS;
	j->rq.after_ns = clock_wall_ns() - LATEST_S * NSEC_PER_SEC;
	ask_next(c);
}

/* --- logs ---------------------------------------------------------------------------------- */

/* The CLI reads `line` as JSON with these three. */
static json_t *line_of(const json_t *entry)
{
	AUTO(buf_done) struct buf text = BUF_MAX(NODE_TEXT_MAX);
	AUTO(json_decrefp) json_t *line = json_deep_copy(json_object_get(entry, "fields"));
	json_t *level = json_object_get(entry, "level"),
	       *time = json_object_get(entry, "timestamp");
	json_t *message = json_object_get(entry, "message");
	struct err err;

	if (!line)
		line = json_object();
	if (json_object_set_new(line, "logger", json_string("hotcell")) < 0 ||
	    json_object_set(line, "level", level) < 0 ||
	    json_object_set(line, "message", message) < 0 || json_encode(line, &text, &err) < 0)
		return NULL;
	return json_pack("{s:O, s:o}", "timestamp", time, "line", json_text(buf_view(&text)));
}

static json_t *v1_json(json_t *entries)
{
	AUTO(json_decrefp) json_t *lines = json_array();
	json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry)
	{
		if (json_array_append_new(lines, line_of(entry)) < 0)
			return NULL;
	}
	return json_pack("{s:O, s:O}", "logs", lines, "logEntries", entries);
}

static void answer_logs(struct api_call *c)
{
	json_t *found = job_of(c)->found;
	json_t *body = c->route->v2 ? json_pack("{s:O}", "logs", found) : v1_json(found);

	if (body)
		api_answer(c, 200, body);
	else
		api_fail(c, 500, "node's logs cannot be read");
}

/* Where the next part begins: behind this entry. */
static int pass(struct record_job *j, const json_t *entry, struct err *err)
{
	const json_t *time = json_object_get(entry, "timestamp");
	uint64_t ns = 0;

	if (!json_is_string(time) || rfc3339_parse(json_bytes(time), &ns, err) < 0)
		return err_set(err, ERR_INTERNAL, 0, "node's logs cannot be read");
	*(j->q.newest ? &j->rq.until_ns : &j->rq.after_ns) = ns;
	return 0;
}

static int add_logs(struct record_job *j, const json_t *part, struct err *err)
{
	json_t *entry;
	size_t i;

	json_array_foreach(part, i, entry)
	{
		if (pass(j, entry, err) < 0)
			return -1;
		if (json_array_size(j->found) < j->q.limit && record_query_matches(&j->q, entry) &&
		    json_array_append(j->found, entry) < 0)
			return err_set(err, ERR_EXHAUSTED, 0, "no memory");
	}
	return 0;
}

static void on_logs(struct api_call *c, struct node_answer *said)
{
	struct record_job *j = job_of(c);
	AUTO(json_decrefp) json_t *part = api_node_array(c, said, "logs");
	struct err why;

	if (!part)
		return;
	if (add_logs(j, part, &why) < 0)
		api_fail_err(c, &why);
	else if (json_array_size(part) == 0 || json_array_size(j->found) >= j->q.limit ||
		 ++j->n_parts >= LOGS_PARTS_MAX)
		answer_logs(c);
	else
		sandbox_ask(c, &j->rq, API_NODE_MS, on_logs);
}

static void sandbox_logs(struct api_call *c)
{
	const struct record_job *j =
		begin_one(c, NODE_LOGS, c->route->v2 ? record_query_logs_v2 : record_query_logs_v1);

	if (j)
		sandbox_ask(c, &j->rq, API_NODE_MS, on_logs);
}

const struct route sandbox_record_routes[] = {
	{ "GET", "/sandboxes/metrics", AUTH_KEY, sandboxes_metrics },
	{ "GET", "/sandboxes/{sandboxID}/metrics", AUTH_KEY, sandbox_metrics },
	{ "GET", "/sandboxes/{sandboxID}/logs", AUTH_KEY, sandbox_logs },
	{ "GET", "/v2/sandboxes/{sandboxID}/logs", AUTH_KEY, sandbox_logs, .v2 = true },
	{ "GET", "/admin/sandboxes/{sandboxID}/logs", AUTH_ADMIN, sandbox_logs, .v2 = true },
	{ 0 },
};
