/* signed_files.c - /files with a signature and no sandbox named: which sandbox signed it?
 *
 * Node tries every token, which costs it something, so nobody may ask too often. Its answer only
 * says where the request goes: whether it may pass is decided by the agent, which checks the
 * signature again and knows when it ends. Whatever is wrong with a signature, the answer is the
 * agent's.
 */
#include "gateway/relay/signed_files.h"

#include "base/clock.h"
#include "gateway/relay/relay.h"
#include "gateway/relay/relay_refuse.h"
#include "wire/files_query.h"
#include "wire/target.h"

enum { SIGNED_NODE_MS = 15 * 1000 };

static const struct rate signed_rate = { .per_second = 50, .burst = 100 };

struct signed_file {
	struct gateway *g;
	struct http_handler handler;
	struct http_request *rq;
	struct link_call call;
	bool expired;       /* then it resumes nothing */
	bool named;         /* by the client; it is paused: */
	struct dispatch to; /* there */
};

static void refuse(struct http_request *rq, unsigned int status, const char *message)
{
	static const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/json") },
		{ BYTES_LIT("access-control-allow-origin"), BYTES_LIT("*") },
		{ BYTES_LIT("retry-after"), BYTES_LIT("1") }, /* last: not always */
	};
	struct http_response r = {
		.status = status,
		.fields = fields,
		.n_fields = status == 429 ? COUNT(fields) : COUNT(fields) - 1,
	};
	char body[512];

	/* messages are literals, or those of wire/ about encodings: nothing to escape in them */
	(void)snprintf(body, sizeof(body), "{\"code\":%u,\"message\":\"%.400s\"}", status, message);
	http_answer(rq, &r, bytes_str(body));
}

static void refuse_err(struct http_request *rq, const struct err *err)
{
	if (err->code == ERR_NOT_FOUND)
		refuse(rq, 401, SIGNATURE_INVALID);
	else if (err->code == ERR_INVALID)
		refuse(rq, 400, err->msg);
	else if (err->code == ERR_EXHAUSTED)
		refuse(rq, 429, "too many signed URLs at once");
	else
		refuse(rq, 503, "the sandboxes cannot be asked");
}

static void on_found(struct link_call *c, const struct link_reply *r)
{
	const struct err *err = r->err;
	const struct node_reply *reply = node_reply_of(r);
	struct signed_file *f = CONTAINER_OF(c, struct signed_file, call);
	struct dispatch *to = &f->to;

	if (err && f->named) {
		relay_refuse(f->rq, to, true, REFUSE_TOKEN);
	} else if (err) {
		refuse_err(f->rq, err);
	} else {
		memcpy(to->id, reply->sandbox.id, sizeof(to->id));
		if (!f->expired)
			memcpy(to->wake_token, reply->sandbox.access_token, sizeof(to->wake_token));
		http_request_take(f->rq, NULL);
		relay_request(f->g, f->rq, to);
	}
	explicit_bzero(to->wake_token, sizeof(to->wake_token));
	free(f);
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	struct signed_file *f = CONTAINER_OF(h, struct signed_file, handler);

	(void)err;
	link_cancel(&f->call);
	free(f);
}

/* `how` says what is known already. */
static void ask_node(const struct signed_file *how, struct bytes query, bool writes)
{
	static const struct http_handler_ops ops = { .on_gone = on_gone };
	struct node_request ask = { .verb = NODE_SIGNED, .flags = writes ? NODE_WRITE : 0 };
	struct signed_file *f = calloc(1, sizeof(*f));
	struct gateway *g = how->g;
	struct http_request *rq = how->rq;
	struct err err;

	if (!f) {
		http_fail(rq, 500, "out of memory");
		return;
	}
	*f = *how;
	f->handler.ops = &ops;
	if (f->named)
		memcpy(ask.id, f->to.id, sizeof(ask.id));
	http_request_take(rq, &f->handler);
	if (node_link_call(g->node, &f->call, &ask, query, SIGNED_NODE_MS, on_found, &err) < 0) {
		refuse_err(rq, &err);
		free(f);
	}
}

/* Whether it could be right at all. */
static int check(struct bytes query, bool writes, bool *ret_expired, struct err *err)
{
	AUTO(files_query_done) struct files_query q = { 0 };
	struct signed_url u;

	if (query.len > NODE_TEXT_MAX)
		return err_set(err, ERR_INVALID, 0, "the query is too long");
	if (files_query_parse(query, &q, err) < 0 ||
	    files_query_signed(&q, writes ? "write" : "read", &u, err) < 0) {
		err->code = ERR_INVALID;
		return -1;
	}
	if (!signature_is_shaped(buf_view(&q.signature)))
		return err_set(err, ERR_NOT_FOUND, 0, SIGNATURE_INVALID);
	*ret_expired = u.has_expiration && u.expiration < (int64_t)(clock_wall_ns() / NSEC_PER_SEC);
	return 0;
}

static bool is_write(const struct http1_head *h)
{
	return bytes_eq(h->method, BYTES_LIT("POST"));
}

static bool is_read(const struct http1_head *h)
{
	return bytes_eq(h->method, BYTES_LIT("GET")) || bytes_eq(h->method, BYTES_LIT("HEAD"));
}

static bool may_ask(struct gateway *g, const struct http_request *rq)
{
	return address_rates_take(&g->signed_rates, &signed_rate, http_request_peer(rq),
				  loop_now_ms(g->loop));
}

bool signed_wake(struct gateway *g, struct http_request *rq, const struct dispatch *to)
{
	const struct http1_head *h = http_request_head(rq);
	struct signed_file how = { .g = g, .rq = rq, .named = true, .to = *to };
	struct target t;
	struct err err;

	if (to->wake_token[0] || (!is_write(h) && !is_read(h)) ||
	    target_split(h->target, &t, &err) < 0 || !bytes_eq(t.path, BYTES_LIT("/files")) ||
	    check(t.query, is_write(h), &how.expired, &err) < 0 || how.expired || !may_ask(g, rq))
		return false;
	http_request_take(rq, NULL);
	ask_node(&how, t.query, is_write(h));
	return true;
}

void signed_request(struct gateway *g, struct http_request *rq)
{
	const struct http1_head *h = http_request_head(rq);
	struct signed_file how = {
		.g = g, .rq = rq, .to = { .plane = PLANE_SANDBOX, .port = g->guests->agent_port }
	};
	struct target t;
	struct err err;

	if (relay_answers_for_agent(rq)) /* a browser that asks whether it may ask */
		return;
	if (!is_write(h) && !is_read(h))
		refuse(rq, 405, "method not allowed");
	else if (!may_ask(g, rq))
		refuse(rq, 429, "too many signed URLs; try again in a moment");
	else if (target_split(h->target, &t, &err) < 0 ||
		 check(t.query, is_write(h), &how.expired, &err) < 0)
		refuse_err(rq, &err);
	else
		ask_node(&how, t.query, is_write(h));
}
