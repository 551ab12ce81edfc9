/* rpc_stream_input.c - process.Process/StreamInput: a stream of messages in, one answer.
 *
 * The first message says which process, the others carry bytes for it, or nothing and keep the
 * connection alive. One message is handled at a time; while the process does not take its bytes
 * the body is not read, so no more than one message and a piece of the next is ever held.
 */
#include "agent/agent.h"
#include "agent/process/process_request.h"
#include "agent/reply.h"
#include "agent/route.h"
#include "agent/rpc/rpc_stream.h"

enum { HELD_MAX = RPC_REQUEST_MAX + ENVELOPE_HEAD + HTTP_INPUT_MAX, ANSWER_MAX = 16 * 1024 };

struct stream_input {
	struct http_handler handler;
	struct http_request *rq;
	struct agent *agent;
	struct buf in;   /* received, not yet understood */
	struct buf data; /* of the message that is being written */
	struct process_input input;
	uint64_t serial; /* of the process; 0: not told yet */
	bool writing, ended;
};

static struct stream_input *of(struct http_handler *h)
{
	return CONTAINER_OF(h, struct stream_input, handler);
}

static void call_free(struct stream_input *c)
{
	stdio_cancel(&c->input);
	buf_done(&c->in);
	buf_done(&c->data);
	free(c);
}

static void answer(struct stream_input *c, struct bytes body)
{
	static const struct http1_field type = {
		BYTES_LIT("content-type"),
		BYTES_LIT("application/connect+json"),
	};

	http_answer(c->rq, &(struct http_response){ 200, &type, 1, 0 }, body);
	call_free(c);
}

static void fail(struct stream_input *c, const struct err *why)
{
	AUTO(buf_done) struct buf out = BUF_MAX(ANSWER_MAX);
	struct err err;

	if (connect_put_end_error(&out, connect_code_of(why->code), bytes_str(why->msg), &err) <
	    0) {
		http_abort(c->rq);
		call_free(c);
		return;
	}
	answer(c, buf_view(&out));
}

static void succeed(struct stream_input *c)
{
	AUTO(buf_done) struct buf out = BUF_MAX(ANSWER_MAX);
	const struct envelope e = { .body = BYTES_LIT("{}") };
	struct err err;

	if (envelope_put(&out, &e, &err) < 0 || connect_put_end(&out, &err) < 0)
		fail(c, &err);
	else
		answer(c, buf_view(&out));
}

static void step(struct stream_input *c);

static void on_done(struct process_input *in, const struct err *err)
{
	struct stream_input *c = CONTAINER_OF(in, struct stream_input, input);

	c->writing = false;
	if (err) {
		fail(c, err);
		return;
	}
	http_body_pause(c->rq, false);
	step(c);
}

static int choose(struct stream_input *c, const json_t *start, struct err *err)
{
	struct process_selector which;
	struct process *p;

	if (selector_parse(start, &which, err) < 0 ||
	    processes_find(&c->agent->processes, &which, &p, err) < 0)
		return -1;
	c->serial = p->serial;
	return 0;
}

static int write_data(struct stream_input *c, const json_t *data, struct err *err)
{
	struct process *p = processes_by_serial(&c->agent->processes, c->serial);
	bool to_pty;
	int rc;

	if (c->serial == 0)
		return err_set(err, ERR_INVALID, 0, "data before the process is told");
	if (!p)
		return err_set(err, ERR_NOT_FOUND, 0, "the process has ended");
	buf_clear(&c->data);
	if (input_parse(data, &to_pty, &c->data, err) < 0)
		return -1;
	c->input.on_done = on_done;
	rc = stdio_write(&p->stdio, to_pty, &c->input, buf_view(&c->data), err);
	c->writing = rc == 0;
	return rc < 0 ? -1 : 0;
}

static int handle(struct stream_input *c, struct bytes json, struct err *err)
{
	AUTO(json_decrefp) json_t *message = NULL;
	enum stream_input_kind kind;
	json_t *inside;

	if (json_decode(json, RPC_REQUEST_MAX, PROCESS_JSON_DEPTH, &message, err) < 0 ||
	    stream_input_parse(message, &kind, &inside, err) < 0)
		return -1;
	switch (kind) {
	case STREAM_INPUT_START:
		return choose(c, inside, err);
	case STREAM_INPUT_DATA:
		return write_data(c, inside, err);
	case STREAM_INPUT_KEEPALIVE:
		return 0;
	}
	abort();
}

/* One message. 1: done, 0: it is not all there. */
static int next(struct stream_input *c, struct err *err)
{
	struct envelope e;
	size_t used;
	int rc;

	switch (envelope_decode(buf_view(&c->in), RPC_REQUEST_MAX, &e, &used, err)) {
	case DECODE_MORE:
		return 0;
	case DECODE_BAD:
		return -1;
	case DECODE_OK:
		break;
	}
	rc = e.end ? err_set(err, ERR_INVALID, 0, "an end where a message should be")
		   : handle(c, e.body, err);
	buf_drop(&c->in, used);
	return rc < 0 ? -1 : 1;
}

static void step(struct stream_input *c)
{
	struct err err;
	int rc = 1;

	while (rc > 0 && !c->writing)
		rc = next(c, &err);
	if (rc < 0) {
		fail(c, &err);
	} else if (c->writing) {
		http_body_pause(c->rq, true);
	} else if (c->ended && c->in.len > 0) {
		err_set(&err, ERR_INVALID, 0, "the last message is not whole");
		fail(c, &err);
	} else if (c->ended) {
		succeed(c);
	}
}

static void on_body(struct http_handler *h, struct bytes piece)
{
	struct stream_input *c = of(h);
	struct err err;

	if (buf_add(&c->in, piece, &err) < 0)
		fail(c, &err);
	else
		step(c);
}

static void on_body_end(struct http_handler *h)
{
	of(h)->ended = true;
	step(of(h));
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	(void)err;
	call_free(of(h));
}

static void route_stream_input(struct agent *a, struct http_request *rq)
{
	static const struct http_handler_ops ops = { on_body, on_body_end, NULL, on_gone };
	struct stream_input *c;

	if (!request_is(rq, "application/connect+json")) {
		reply_fail(rq, 415, "content-type must be application/connect+json");
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		reply_rpc_fail(rq, CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	*c = (struct stream_input){ .handler = { &ops },
				    .rq = rq,
				    .agent = a,
				    .in = BUF_MAX(HELD_MAX),
				    .data = BUF_MAX(RPC_REQUEST_MAX) };
	http_request_take(rq, &c->handler);
	http_body_start(rq, UINT64_MAX);
}

const struct route stream_input_routes[] = {
	{ "/process.Process/StreamInput", "POST", GUARD_CLIENT, route_stream_input },
	{ 0 },
};
