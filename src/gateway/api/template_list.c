/* template_list.c - all templates of a team, and the host's: asked of node in pages. */
#include "gateway/api/answer.h"
#include "gateway/api/api.h"
#include "gateway/api/snapshot_routes.h"
#include "gateway/api/template_json.h"

enum { LIST_MAX = 100, PARAM_MAX = 64, PAGES_MAX = 64 /* of node's */ };

struct list_job {
	struct api_job job;
	json_t *all; /* as node says it, or as clients want it */
	bool paged;  /* the client wants pages */
	size_t limit, pages;
	char after[NODE_ID_MAX + 1]; /* the templateID that the last page ended with; or empty */
};

static struct list_job *job_of(const struct api_call *c)
{
	return CONTAINER_OF(c->job, struct list_job, job);
}

static void job_free(struct api_job *job)
{
	struct list_job *j = CONTAINER_OF(job, struct list_job, job);

	json_decref(j->all);
	free(j);
}

/* Those behind j->after. */
static size_t first_of(const struct list_job *j)
{
	size_t i;
	json_t *t;

	json_array_foreach(j->all, i, t)
	{
		if (j->after[0] && strcmp(template_text(t, "templateID"), j->after) == 0)
			return i + 1;
	}
	return j->after[0] ? json_array_size(j->all) : 0;
}

static void answer_page(struct api_call *c)
{
	const struct list_job *j = job_of(c);
	size_t n = json_array_size(j->all), first = first_of(j);
	size_t shown = n - first < j->limit ? n - first : j->limit;
	struct http1_field next = { BYTES_LIT("X-Next-Token"), { 0 } };
	json_t *out = json_array();

	for (size_t i = first; i < first + shown; i++)
		(void)json_array_append(out, json_array_get(j->all, i));
	if (first + shown < n)
		next.value = bytes_str(
			template_text(json_array_get(j->all, first + shown - 1), "templateID"));
	api_answer_with(c, 200, out, &next, first + shown < n);
}

static void answer_all(struct api_call *c)
{
	if (job_of(c)->paged)
		answer_page(c);
	else
		api_answer(c, 200, TAKE(job_of(c)->all));
}

static json_t *show(const struct api_call *c, json_t *t)
{
	return api_is_admin(c) ? json_incref(t) : template_json(t);
}

static void on_page(struct api_call *c, struct node_answer *said);

static void ask_page(struct api_call *c, const json_t *last)
{
	struct node_request rq = { .verb = NODE_TEMPLATE_LIST };

	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	if (!bytes_to_u64(bytes_str(template_text(last, "createdNs")), &rq.after_ns))
		rq.after_ns = 0;
	api_ask_node(c, &rq, (struct bytes){ 0 }, API_NODE_MS, on_page);
}

static void on_page(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *page = api_node_array(c, said, "templates");
	struct list_job *j = job_of(c);
	size_t i, n = json_array_size(page);
	json_t *t;

	if (!page)
		return;
	json_array_foreach(page, i, t)
	{
		if (json_array_append_new(j->all, show(c, t)) < 0) {
			api_fail(c, 500, "node's templates cannot be read");
			return;
		}
	}
	if (n > 0 && ++j->pages < PAGES_MAX)
		ask_page(c, json_array_get(page, n - 1));
	else
		answer_all(c);
}

/* Those without an alias are damaged or gone: of interest to operators alone. */
static void on_host(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *host = api_node_array(c, said, "templates");
	struct list_job *j = job_of(c);
	json_t *t;
	size_t i;

	if (!host)
		return;
	json_array_foreach(host, i, t)
	{
		json_t *shown = api_is_admin(c) ? json_incref(t) : template_json_host(t);

		if (!api_is_admin(c) && !template_text(t, "alias")[0])
			json_decref(shown);
		else if (json_array_append_new(j->all, shown) < 0) {
			api_fail(c, 500, "node's templates cannot be read");
			return;
		}
	}
	ask_page(c, NULL);
}

/* Answered already when this fails. */
static bool begin(struct api_call *c, struct list_job *j)
{
	if (!j || !(j->all = json_array())) {
		free(j);
		api_fail(c, 503, "no memory");
		return false;
	}
	j->job.free = job_free;
	c->job = &j->job;
	return true;
}

static void ask_host(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_TEMPLATES };

	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	api_ask_node(c, &rq, (struct bytes){ 0 }, API_NODE_MS, on_host);
}

static void template_list(struct api_call *c)
{
	if (begin(c, calloc(1, sizeof(struct list_job))))
		ask_host(c);
}

static bool take_page(struct api_call *c, struct list_job *j)
{
	AUTO(buf_done) struct buf limit = BUF_MAX(PARAM_MAX);
	AUTO(buf_done) struct buf token = BUF_MAX(PARAM_MAX);
	uint64_t n = LIST_MAX;
	struct err err;

	if (target_param(c->query, "limit", &limit, &err) < 0 ||
	    target_param(c->query, "nextToken", &token, &err) < 0 ||
	    (limit.len > 0 && (!bytes_to_u64(buf_view(&limit), &n) || n < 1 || n > LIST_MAX)) ||
	    !bytes_to_str(buf_view(&token), j->after, sizeof(j->after))) {
		api_fail(c, 400, "Invalid next token or limit");
		return false;
	}
	j->limit = (size_t)n;
	j->paged = true;
	return true;
}

static void template_pages(struct api_call *c)
{
	if (begin(c, calloc(1, sizeof(struct list_job))) && take_page(c, job_of(c)))
		ask_host(c);
}

const struct route template_list_routes[] = {
	{ "GET", "/templates", AUTH_KEY, template_list },
	{ "GET", "/v2/templates", AUTH_KEY, template_pages },
	{ "GET", "/admin/templates", AUTH_ADMIN, template_list },
	{ "DELETE", "/admin/templates/{templateID}", AUTH_ADMIN, snapshot_delete },
	{ 0 },
};
