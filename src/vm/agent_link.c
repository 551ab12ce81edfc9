/* agent_link.c - control questions over one kept connection. */
#include "vm/agent_link.h"

#include <assert.h>

#include "base/clock.h"

enum { JSON_LEVELS = 4 };

int agent_link_open(struct agent_link *l, struct stream *s, struct err *err)
{
	struct http_limits limits = HTTP_LIMITS;

	*l = (struct agent_link){ 0 };
	limits.idle_ms = 0; /* the owner decides how long it is kept */
	if (http_client_open(s, &limits, &l->client, err) < 0)
		return err_wrap(err, "agent");
	return 0;
}

void agent_link_close(struct agent_link *l)
{
	if (!l->client)
		return;
	http_call_cancel(&l->call);
	http_client_close(TAKE(l->client));
	explicit_bzero(l->control_token, sizeof(l->control_token));
}

int agent_refusal(const char *asking, const struct http_call_result *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	struct bytes why = ret->body;
	struct err unused;

	if (json_decode(ret->body, AGENT_ANSWER_MAX, JSON_LEVELS, &v, &unused) == 0)
		(void)!json_may_string(v, "message", &why, &unused);
	why = bytes_head(why, AGENT_WHY_MAX);
	return err_set(err, ERR_INTERNAL, 0, "agent: %s: status %u: %.*s", asking,
		       ret->head->status, (int)why.len, (const char *)why.ptr);
}

static int read_clock(struct bytes body, struct agent_answer *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	if (json_decode(body, AGENT_ANSWER_MAX, JSON_LEVELS, &v, err) < 0 ||
	    json_want_int(v, "monotonicNs", 0, INT64_MAX, &ret->monotonic_ns, err) < 0)
		return -1;
	return json_want_int(v, "realtimeNs", INT64_MIN, INT64_MAX, &ret->realtime_ns, err);
}

static int read_answer(struct agent_link *l, const struct http_call_result *ret,
		       struct agent_answer *answer, struct err *err)
{
	unsigned int want = l->wants_clock ? 200 : 204;

	if (ret->head->status != want)
		return agent_refusal(l->asking, ret, err);
	if (l->wants_clock && read_clock(ret->body, answer, err) < 0) {
		err->code = ERR_INTERNAL;
		return err_wrap(err, "agent: %s", l->asking);
	}
	return 0;
}

static void on_answer(struct http_call *c, const struct http_call_result *ret,
		      const struct err *failed)
{
	struct agent_link *l = CONTAINER_OF(c, struct agent_link, call);
	struct agent_answer answer = { .sent_wall_ns = l->sent_wall_ns,
				       .got_wall_ns = clock_wall_ns() };
	struct err err;

	if (failed) {
		err = *failed;
		err_wrap(&err, "agent: %s", l->asking);
		l->on_done(l, NULL, &err);
	} else if (read_answer(l, ret, &answer, &err) < 0) {
		l->on_done(l, NULL, &err);
	} else {
		l->on_done(l, &answer, NULL);
	}
}

struct question {
	const char *name, *method, *path;
	struct bytes body;
	bool wants_clock;
};

static int ask(struct agent_link *l, const struct question *q, uint64_t ms, agent_done_fn *on_done,
	       struct err *err)
{
	const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/json") },
		{ BYTES_LIT("x-hotcell-control"), bytes_str(l->control_token) },
	};
	const struct http_ask a = {
		.method = bytes_str(q->method),
		.target = bytes_str(q->path),
		.host = BYTES_LIT("agent"),
		.fields = fields,
		.n_fields = l->control_token[0] ? 2 : 1,
		.body = q->body,
		.deadline_ms = ms,
		.max_answer = AGENT_ANSWER_MAX,
	};

	assert(l->client && !l->call.exchange);
	l->asking = q->name;
	l->wants_clock = q->wants_clock;
	l->on_done = on_done;
	l->sent_wall_ns = clock_wall_ns();
	if (http_call_start(&l->call, l->client, &a, on_answer, err) < 0)
		return err_wrap(err, "agent: %s", q->name);
	return 0;
}

int agent_link_ask(struct agent_link *l, enum agent_question what, uint64_t ms,
		   agent_done_fn *on_done, struct err *err)
{
	static const struct question questions[] = {
		[AGENT_HEALTH] = { "health", "GET", "/health" },
		[AGENT_CLOCK] = { "clock", "GET", "/control/clock", .wants_clock = true },
		[AGENT_FREEZE] = { "freeze", "POST", "/control/freeze" },
		[AGENT_FREEZE_SURELY] = { "freeze", "POST", "/control/freeze?sure=1" },
		[AGENT_FREEZE_DISK] = { "freeze", "POST", "/control/freeze?flush=1" },
	};

	return ask(l, &questions[what], ms, on_done, err);
}

void agent_link_prove(struct agent_link *l, const char *control_token)
{
	snprintf(l->control_token, sizeof(l->control_token), "%s", control_token);
}

int agent_link_identity(struct agent_link *l, const struct agent_identity *id,
			int64_t clock_offset_ns, uint64_t ms, agent_done_fn *on_done,
			struct err *err)
{
	AUTO(buf_done) struct buf body = BUF_MAX(AGENT_IDENTITY_MAX);
	int rc;

	if (agent_identity_put(id, clock_offset_ns, &body, err) < 0)
		return err_wrap(err, "agent: identity");
	if (id->resume)
		agent_link_prove(l, id->control_token);
	else if (id->was_token[0])
		agent_link_prove(l, id->was_token);
	rc = ask(l,
		 &(struct question){ .name = "identity",
				     .method = "POST",
				     .path = "/control/identity",
				     .body = buf_view(&body),
				     .wants_clock = true },
		 ms, on_done, err);
	explicit_bzero(body.ptr, body.len);
	if (rc == 0)
		agent_link_prove(l, id->control_token);
	return rc;
}
