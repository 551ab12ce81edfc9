/* lost_routes.c - for operators: what is on a host's disk and in no row, as node tells it. */

#include "gateway/api/answer.h"
#include "gateway/api/sandbox_ask.h"

enum { LOST_PAGE = 200 }; /* as many as node tells at once */

static void on_list(struct api_call *c, struct node_answer *said)
{
	json_t *all = api_node_array(c, said, "list");
	char next[24];

	if (!all)
		return;
	snprintf(next, sizeof(next), "%zu", (size_t)c->seconds + json_array_size(all));
	api_answer_with(c, 200, all,
			&(struct http1_field){ BYTES_LIT("X-Next-Token"), bytes_str(next) },
			json_array_size(all) == LOST_PAGE);
}

static void admin_lost_list(struct api_call *c)
{
	AUTO(buf_done) struct buf text = BUF_MAX(24);
	struct node_request rq = { .verb = NODE_LOST_LIST };
	bool found = false;
	uint64_t from = 0;
	struct err err;

	if (target_find_param(c->query, "nextToken", &text, &found, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return;
	}
	if (found && (!bytes_to_u64(buf_view(&text), &from) || from > UINT32_MAX)) {
		api_fail(c, 400, "nextToken is not valid");
		return;
	}
	rq.count = (uint32_t)from;
	c->seconds = rq.count;
	api_ask_node(c, &rq, (struct bytes){ 0 }, API_NODE_MS, on_list);
}

static void ask(struct api_call *c, enum node_verb verb)
{
	struct node_request rq = { .verb = verb };

	if (!bytes_to_str(bytes_str(c->params[0]), rq.id, sizeof(rq.id))) {
		api_fail(c, 404, "nothing lost has this id");
		return;
	}
	api_ask_node(c, &rq, (struct bytes){ 0 }, API_NODE_MS, sandbox_on_no_content);
}

static void admin_lost_restore(struct api_call *c)
{
	ask(c, NODE_LOST_RESTORE);
}

static void admin_lost_drop(struct api_call *c)
{
	ask(c, NODE_LOST_DROP);
}

const struct route lost_routes[] = {
	{ "GET", "/admin/lost", AUTH_ADMIN, admin_lost_list },
	{ "POST", "/admin/lost/{id}/restore", AUTH_ADMIN, admin_lost_restore },
	{ "DELETE", "/admin/lost/{id}", AUTH_ADMIN, admin_lost_drop },
	{ 0 },
};
