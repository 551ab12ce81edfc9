/* sandbox_list.c - lists: node tells all there is, oldest first; one page of it is kept. */
#include "gateway/api/answer.h"
#include "gateway/api/api.h"
#include "gateway/api/sandbox_json.h"
#include "gateway/node_reply.h"
#include "gateway/parse/list_query.h"

enum {
	LIST_ALL_MAX = 1000,             /* where pages are not asked for */
	LIST_TEXT_MAX = 4 * 1024 * 1024, /* metadata of one page; then the page is shorter */
};

struct kept {
	struct node_sandbox sandbox;
	struct buf text;
};

struct list_job {
	struct api_job job;
	struct list_query q;
	struct node_request rq; /* of the next part */
	struct kept *ring;      /* q.limit of them */
	size_t first, n, bytes;
	bool more; /* matches beyond those kept */
	uint64_t running;
};

static struct list_job *job_of(const struct api_call *c)
{
	return CONTAINER_OF(c->job, struct list_job, job);
}

static void job_free(struct api_job *job)
{
	struct list_job *j = CONTAINER_OF(job, struct list_job, job);

	for (size_t i = 0; j->ring && i < j->q.limit; i++)
		buf_done(&j->ring[i].text);
	free(j->ring);
	list_query_done(&j->q);
	free(j);
}

static struct kept *kept_at(struct list_job *j, size_t i)
{
	return &j->ring[(j->first + i) % j->q.limit];
}

static void drop_first(struct list_job *j)
{
	struct kept *k = kept_at(j, 0);

	j->bytes -= k->text.len;
	buf_done(&k->text);
	j->first = (j->first + 1) % j->q.limit;
	j->n--;
	j->more = true;
}

static bool has_room(const struct list_job *j, size_t len)
{
	return j->n < j->q.limit && (j->n == 0 || j->bytes + len <= LIST_TEXT_MAX);
}

/* Of the newest first, the last are kept; of the oldest first, the first. */
static int keep(struct list_job *j, const struct node_sandbox *s, struct bytes text,
		struct err *err)
{
	struct kept *k;

	if (j->q.ascending && (j->more || !has_room(j, text.len))) {
		j->more = true;
		return 0;
	}
	while (!has_room(j, text.len))
		drop_first(j);
	k = kept_at(j, j->n);
	*k = (struct kept){ *s, BUF_MAX(NODE_TEXT_MAX) };
	if (buf_add(&k->text, text, err) < 0)
		return -1;
	j->bytes += text.len;
	j->n++;
	return 0;
}

static int look_at(struct list_job *j, const struct node_sandbox *s, struct bytes text,
		   struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	if (j->q.n_pairs > 0)
		v = sandbox_text(text);
	if (!list_query_matches(&j->q, s, json_object_get(v, "metadata")))
		return 0;
	j->running += s->state == NODE_RUNNING;
	return list_query_follows(&j->q, s) ? keep(j, s, text, err) : 0;
}

static json_t *entry_json(const struct kept *k, bool admin, bool usage)
{
	AUTO(json_decrefp) json_t *text = sandbox_text(buf_view(&k->text));
	json_t *o = sandbox_listed_json(&k->sandbox, usage ? NULL : text);

	if ((admin && json_object_set_new(o, "teamID", json_string(k->sandbox.team)) < 0) ||
	    (usage && text && json_object_set(o, "usage", text) < 0)) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* The page, and in `last` the entry after which the next one begins. */
static json_t *page_json(struct list_job *j, bool admin, const struct node_sandbox **last)
{
	json_t *page = json_array();

	for (size_t i = 0; i < j->n; i++) {
		struct kept *k = kept_at(j, j->q.ascending ? i : j->n - 1 - i);

		if (json_array_append_new(page, entry_json(k, admin, j->q.usage)) < 0) {
			json_decref(page);
			return NULL;
		}
		*last = &k->sandbox;
	}
	return page;
}

static void answer(struct api_call *c)
{
	AUTO(buf_done) struct buf token = BUF_MAX(LIST_TOKEN_MAX), total = BUF_MAX(32);
	struct list_job *j = job_of(c);
	const struct node_sandbox *last = NULL;
	json_t *page = page_json(j, api_is_admin(c), &last);
	struct http1_field extra[2];
	size_t n = 0;
	struct err err;

	if (!page || buf_printf(&total, &err, "%llu", (unsigned long long)j->running) < 0 ||
	    (j->more && last && list_token_put(&token, last, j->q.ascending, &err) < 0)) {
		json_decref(page);
		api_fail(c, 500, "no memory for the list");
		return;
	}
	if (j->q.running)
		extra[n++] = (struct http1_field){ BYTES_LIT("X-Total-Running"), buf_view(&total) };
	if (token.len > 0)
		extra[n++] = (struct http1_field){ BYTES_LIT("X-Next-Token"), buf_view(&token) };
	api_answer_with(c, 200, page, extra, n);
}

static void ask_part(struct api_call *c);

static void on_part(struct api_call *c, struct node_answer *said)
{
	struct list_job *j = job_of(c);
	struct node_sandbox s;
	struct bytes text;
	struct err why;
	bool any = false;

	for (; node_entry_next(&said->after, &s, &text); any = true) {
		if (look_at(j, &s, text, &why) < 0) {
			api_fail_err(c, &why);
			return;
		}
		j->rq.after_ns = s.started_ns;
		memcpy(j->rq.id, s.id, sizeof(j->rq.id));
	}
	if (any)
		ask_part(c);
	else
		answer(c);
}

static void ask_part(struct api_call *c)
{
	api_ask_node(c, &job_of(c)->rq, (struct bytes){ 0 }, API_NODE_MS, on_part);
}

/* The first version has all that run; an operator is told of all. */
static void sandbox_list(struct api_call *c)
{
	bool only_running = !c->route->v2 && !api_is_admin(c);
	struct list_job *j = calloc(1, sizeof(*j));
	struct err err;

	if (!j) {
		api_fail(c, 503, "no memory for the list");
		return;
	}
	j->job.free = job_free;
	c->job = &j->job;
	if (list_query_parse(c->query, c->route->v2 ? LIST_LIMIT_MAX : LIST_ALL_MAX, &j->q, &err) <
	    0) {
		api_fail_err(c, &err);
		return;
	}
	if (j->q.usage && (!api_is_admin(c) || j->q.n_pairs > 0)) {
		api_fail(c, 400, "usage is an operator's, and cannot be joined with metadata");
		return;
	}
	j->q.paused &= !only_running;
	j->q.running |= only_running;
	j->ring = calloc(j->q.limit, sizeof(*j->ring));
	if (!j->ring) {
		api_fail(c, 503, "no memory for the list");
		return;
	}
	j->rq = (struct node_request){ .verb = NODE_LIST,
				       .after_ns = j->q.started_after_ns,
				       .flags = j->q.usage ? NODE_USAGE : 0 };
	snprintf(j->rq.team, sizeof(j->rq.team), "%s", c->team.id);
	ask_part(c);
}

const struct route sandbox_list_routes[] = {
	{ "GET", "/sandboxes", AUTH_KEY, sandbox_list },
	{ "GET", "/v2/sandboxes", AUTH_KEY, sandbox_list, .v2 = true },
	{ "GET", "/admin/sandboxes", AUTH_ADMIN, sandbox_list },
	{ 0 },
};
