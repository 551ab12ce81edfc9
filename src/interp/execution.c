/* execution.c - see execution.h. */
#include "interp/execution.h"

#include "interp/answer.h"
#include "interp/events.h"
#include "interp/partings.h"

enum { MEMBER_SIZE = 128 }; /* of an object, in memory, besides its name and value */

static void gone(struct execution *x)
{
	x->rq = NULL;
	timer_stop(&x->keepalive);
	if (x->ending)
		execution_free(x);
	else
		x->ops->on_gone(x);
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	(void)err;
	gone(CONTAINER_OF(h, struct execution, handler));
}

static void finish(struct execution *x)
{
	struct http_request *rq = TAKE(x->rq);

	if (rq)
		http_finish(rq);
	execution_free(x);
}

/* As much as the connection takes. True: all of it. */
static bool push(struct execution *x)
{
	struct err err;

	while (x->rq && x->sent < x->out.len) {
		size_t queued = http_queued(x->rq);
		struct bytes piece = bytes_head(bytes_tail(buf_view(&x->out), x->sent),
						EXECUTION_QUEUE_MAX - queued);

		if (queued >= EXECUTION_QUEUE_MAX || http_send(x->rq, piece, &err) < 0)
			return false;
		x->sent += piece.len;
	}
	buf_done(&x->out); /* one large line is no reason to keep its memory */
	x->out = BUF_MAX(EVENT_LINE_MAX);
	x->sent = 0;
	return true;
}

bool execution_flush(struct execution *x)
{
	if (x->rq)
		timer_start(&x->keepalive, EXECUTION_KEEPALIVE_MS);
	return push(x);
}

static void on_drain(struct http_handler *h)
{
	struct execution *x = CONTAINER_OF(h, struct execution, handler);

	if (x->out.len == 0 || !execution_flush(x))
		return;
	if (x->ending)
		finish(x);
	else
		x->ops->on_flushed(x);
}

static void on_keepalive(struct timer *t)
{
	struct execution *x = CONTAINER_OF(t, struct execution, keepalive);
	struct err err;

	if (execution_left_behind(x)) { /* or what waits to be sent would wait for minutes */
		http_abort(x->rq);
		gone(x);
		return;
	}
	if (x->out.len == 0 && buf_add(&x->out, EVENT_KEEPALIVE, &err) == 0)
		(void)execution_flush(x);
	else
		timer_start(&x->keepalive, EXECUTION_KEEPALIVE_MS);
}

static void take_token(struct execution *x)
{
	struct bytes token;

	if (http1_find(http_request_head(x->rq), "x-access-token", &token) != 1 ||
	    !bytes_to_str(token, x->token, sizeof(x->token)))
		x->token[0] = '\0';
}

static size_t size_of(const json_t *code, const json_t *env)
{
	size_t n = json_string_length(code);
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		n += strlen(name) + json_string_length(value) + MEMBER_SIZE;
	}
	return n;
}

bool execution_left_behind(const struct execution *x)
{
	return partings_count(x->partings_file) != x->partings;
}

struct execution *execution_new(const struct execution_place *p, struct http_request *rq,
				json_t *code, json_t *env)
{
	static const struct http_handler_ops handler = { .on_drain = on_drain, .on_gone = on_gone };
	struct execution *x = calloc(1, sizeof(*x));

	if (!x) {
		json_decref(code);
		json_decref(env);
		return NULL;
	}
	*x = (struct execution){
		.handler = { &handler },
		.ops = p->ops,
		.owner = p->owner,
		.rq = rq,
		.out = BUF_MAX(EVENT_LINE_MAX),
		.code = code,
		.env = env,
		.size = size_of(code, env),
		.held = p->held,
		.partings_file = p->partings_file,
		.partings = partings_count(p->partings_file),
	};
	*x->held += x->size;
	timer_init(&x->keepalive, p->loop, on_keepalive);
	take_token(x);
	http_request_take(rq, NULL); /* from who read the body */
	http_request_take(rq, &x->handler);
	http_request_rests(rq);
	return x;
}

void execution_free(struct execution *x)
{
	struct http_request *rq = TAKE(x->rq);

	if (rq)
		http_abort(rq);
	timer_stop(&x->keepalive);
	buf_done(&x->out);
	json_decref(x->code);
	json_decref(x->env);
	*x->held -= x->size;
	free(x);
}

void execution_begin(struct execution *x)
{
	static const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/x-ndjson") },
		{ BYTES_LIT("cache-control"), BYTES_LIT("no-store") },
		ANSWER_ANY_ORIGIN,
	};
	const struct http_response r = { 200, fields, COUNT(fields), HTTP_CHUNKED };
	struct err err;

	if (!x->rq || http_responded(x->rq))
		return;
	if (http_respond(x->rq, &r, &err) < 0)
		return; /* then it cannot be sent to either, and is cut off at its end */
	timer_start(&x->keepalive, EXECUTION_KEEPALIVE_MS);
}

void execution_end(struct execution *x)
{
	struct err err;

	x->ending = true;
	timer_stop(&x->keepalive);
	if (!x->rq || buf_add(&x->out, EVENT_END, &err) < 0)
		execution_free(x);
	else if (push(x))
		finish(x);
}

void execution_refuse(struct execution *x, unsigned int status, const char *text)
{
	struct http_request *rq = TAKE(x->rq);

	if (rq)
		answer_text(rq, status, text);
	execution_free(x);
}
