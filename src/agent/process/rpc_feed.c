/* rpc_feed.c - see rpc_feed.h. */
#include "agent/process/rpc_feed.h"

#include "agent/reply.h"

static struct rpc_feed *of_listener(struct process_listener *ln)
{
	return CONTAINER_OF(ln, struct rpc_feed, listener);
}

static struct rpc_feed *of_stream(struct rpc_stream *s)
{
	return CONTAINER_OF(s, struct rpc_feed, stream);
}

static void feed_free(struct rpc_feed *f)
{
	timer_stop(&f->deadline);
	free(f);
}

void rpc_feed_fail(struct rpc_feed *f, enum connect_code code, const char *why)
{
	process_leave(&f->listener);
	rpc_stream_fail(&f->stream, code, why);
	feed_free(f);
}

static void send_start(struct rpc_feed *f, pid_t pid)
{
	AUTO(buf_done) struct buf json = BUF_MAX(EVENT_JSON_MAX);
	struct err err;

	if (event_put_start(&json, pid, &err) < 0)
		rpc_stream_lose(&f->stream, &err);
	else
		rpc_stream_send(&f->stream, buf_view(&json));
}

static void send_end(struct rpc_feed *f, const struct process_end *end)
{
	AUTO(buf_done) struct buf json = BUF_MAX(EVENT_JSON_MAX);
	struct err err;

	if (event_put_end(&json, end, &err) < 0)
		rpc_stream_fail(&f->stream, CONNECT_INTERNAL, err.msg);
	else
		rpc_stream_end(&f->stream, buf_view(&json));
	feed_free(f);
}

static void on_start(struct process_listener *ln)
{
	send_start(of_listener(ln), ln->process->pid);
}

/* One allocation and one write for all of it. */
static int put_output(struct buf *out, enum process_output from, struct bytes b, struct err *err)
{
	size_t most = event_piece_max(from), pieces = b.len / most + 1;

	if (rpc_stream_prepare(out, (b.len / 3 + 1) * 4 + pieces * EVENT_AROUND_MAX, err) < 0)
		return -1;
	for (; b.len > 0; b = bytes_tail(b, most)) {
		size_t at;

		if (envelope_open(out, &at, err) < 0 ||
		    event_put_output(out, from, bytes_head(b, most), err) < 0)
			return -1;
		envelope_close(out, at);
	}
	return 0;
}

static void on_output(struct process_listener *ln, enum process_output from, struct bytes b)
{
	struct rpc_feed *f = of_listener(ln);
	AUTO(buf_done) struct buf out = BUF_MAX(STREAM_QUEUE_MAX);
	struct err err;

	if (put_output(&out, from, b, &err) < 0)
		rpc_stream_lose(&f->stream, &err);
	else
		rpc_stream_send_buf(&f->stream, &out);
	process_hold(ln, rpc_stream_full(&f->stream));
}

static void on_overdue(struct process_listener *ln)
{
	struct rpc_feed *f = of_listener(ln);

	if (f->overdue)
		rpc_feed_fail(f, CONNECT_DEADLINE_EXCEEDED, "context deadline exceeded");
}

static void on_end(struct process_listener *ln, const struct process_end *end)
{
	send_end(of_listener(ln), end);
}

static void on_fail(struct process_listener *ln, const struct err *err)
{
	struct rpc_feed *f = of_listener(ln);
	char text[2 * FEED_COMMAND_MAX];

	snprintf(text, sizeof(text), "error starting process '%s': %s", f->command, err->msg);
	rpc_feed_fail(f, connect_code_of(err->code), text);
}

void rpc_feed_listen(struct rpc_feed *f, struct process *p)
{
	static const struct process_listener_ops ops = { on_start, on_output, on_overdue, on_end,
							 on_fail };

	buf_done(&f->stream.in); /* the process may run for days */
	process_listen(p, &f->listener, &ops);
	if (p->state != PROCESS_STARTING)
		send_start(f, p->pid);
}

void rpc_feed_past(struct rpc_feed *f, const struct past *past)
{
	send_start(f, past->pid);
	send_end(f, &past->end);
}

static void on_message(struct rpc_stream *s, struct bytes json)
{
	struct rpc_feed *f = of_stream(s);

	f->on_message(f, json);
}

static void on_drain(struct rpc_stream *s)
{
	process_hold(&of_stream(s)->listener, false);
}

/* The process runs on, unheard. */
static void on_gone(struct rpc_stream *s)
{
	struct rpc_feed *f = of_stream(s);

	process_leave(&f->listener);
	feed_free(f);
}

static void on_deadline(struct timer *t)
{
	rpc_feed_fail(CONTAINER_OF(t, struct rpc_feed, deadline), CONNECT_DEADLINE_EXCEEDED,
		      "context deadline exceeded");
}

void rpc_feed_open(struct agent *a, struct http_request *rq, rpc_feed_message_fn *on_request)
{
	static const struct rpc_stream_ops ops = { on_message, on_drain, on_gone };
	struct rpc_feed *f = calloc(1, sizeof(*f));

	if (!f) {
		reply_rpc_fail(rq, CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	f->agent = a;
	f->on_message = on_request;
	timer_init(&f->deadline, a->loop, on_deadline);
	if (!rpc_stream_take(&f->stream, a->loop, rq, &ops, EVENT_KEEPALIVE))
		free(f);
}
