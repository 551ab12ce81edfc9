/* ended_list.c - the sandboxes that ended lately, for an operator: the newest first. */
#include "gateway/api/answer.h"
#include "gateway/api/api.h"
#include "gateway/api/sandbox_json.h"
#include "gateway/node_reply.h"

enum { ENDED_MAX = 10000 }; /* of an answer; the oldest are left out */

struct ended_job {
	struct api_job job;
	struct node_request rq; /* of the next part */
	json_t *all;            /* the oldest first, as they come */
};

static struct ended_job *job_of(const struct api_call *c)
{
	return CONTAINER_OF(c->job, struct ended_job, job);
}

static void job_free(struct api_job *job)
{
	struct ended_job *j = CONTAINER_OF(job, struct ended_job, job);

	json_decref(j->all);
	free(j);
}

static void answer(struct api_call *c)
{
	const json_t *all = job_of(c)->all;
	size_t n = json_array_size(all), most = n < ENDED_MAX ? n : ENDED_MAX;
	json_t *out = json_array();

	for (size_t i = 0; i < most; i++)
		if (json_array_append(out, json_array_get(all, n - 1 - i)) < 0) {
			json_decref(out);
			api_fail(c, 503, "no memory for the list");
			return;
		}
	api_answer(c, 200, out);
}

/* Twice as many as are shown: then half of them go at once. */
static int keep(struct ended_job *j, const struct node_tombstone *t)
{
	json_t *fewer;

	if (json_array_append_new(j->all, sandbox_tombstone_json(t)) < 0)
		return -1;
	if (json_array_size(j->all) < 2 * (size_t)ENDED_MAX)
		return 0;
	fewer = json_array();
	for (size_t i = ENDED_MAX; i < json_array_size(j->all); i++)
		if (json_array_append(fewer, json_array_get(j->all, i)) < 0) {
			json_decref(fewer);
			return -1;
		}
	json_decref(j->all);
	j->all = fewer;
	return 0;
}

static void on_part(struct api_call *c, struct node_answer *said)
{
	struct ended_job *j = job_of(c);
	struct node_tombstone t;
	bool any = false;

	for (; node_tombstone_next(&said->after, &t); any = true) {
		if (keep(j, &t) < 0) {
			api_fail(c, 503, "no memory for the list");
			return;
		}
		j->rq.after_ns = t.ended_ns;
		memcpy(j->rq.id, t.id, sizeof(j->rq.id));
	}
	if (any)
		api_ask_node(c, &j->rq, (struct bytes){ 0 }, API_NODE_MS, on_part);
	else
		answer(c);
}

static void admin_ended_list(struct api_call *c)
{
	struct ended_job *j = calloc(1, sizeof(*j));

	if (j) {
		*j = (struct ended_job){ .job = { job_free }, .all = json_array() };
		c->job = &j->job;
	}
	if (!j || !j->all) {
		api_fail(c, 503, "no memory for the list");
		return;
	}
	j->rq.verb = NODE_ENDED;
	api_ask_node(c, &j->rq, (struct bytes){ 0 }, API_NODE_MS, on_part);
}

const struct route ended_routes[] = {
	{ "GET", "/admin/ended", AUTH_ADMIN, admin_ended_list },
	{ 0 },
};
