/* rpc_watch.c - filesystem.Filesystem/WatchDir: events as a stream.
 *
 * A client that is slower than the events holds the watch, and the kernel queues for it. If that
 * runs over, the stream ends with data_loss; the client looks for itself and watches again.
 */
#include "agent/agent.h"
#include "agent/filesystem/watch_event.h"
#include "agent/reply.h"
#include "agent/route.h"
#include "agent/rpc/rpc_stream.h"

struct watch_call {
	struct rpc_stream stream;
	struct dir_watch watch;
	struct timer deadline;
	struct agent *agent;
	bool include_entry;
};

static void call_free(struct watch_call *c)
{
	timer_stop(&c->deadline);
	dir_watch_close(&c->watch);
	free(c);
}

static void fail(struct watch_call *c, enum connect_code code, const char *why)
{
	rpc_stream_fail(&c->stream, code, why);
	call_free(c);
}

static void on_event(struct dir_watch *w, enum dir_event type, const char *name)
{
	struct watch_call *c = CONTAINER_OF(w, struct watch_call, watch);
	AUTO(buf_done) struct buf json = BUF_MAX(WATCH_EVENT_MAX);
	struct err err;

	if (buf_add(&json, BYTES_LIT("{\"filesystem\":"), &err) < 0 ||
	    watch_event_put(c->agent, w, &(struct watch_event){ type, name, c->include_entry },
			    &json, &err) < 0 ||
	    buf_add(&json, BYTES_LIT("}"), &err) < 0)
		rpc_stream_lose(&c->stream, &err);
	else
		rpc_stream_send(&c->stream, buf_view(&json));
	dir_watch_hold(w, rpc_stream_full(&c->stream));
}

static void on_lost(struct dir_watch *w)
{
	fail(CONTAINER_OF(w, struct watch_call, watch), CONNECT_DATA_LOSS, WATCH_LOST);
}

static void on_deadline(struct timer *t)
{
	fail(CONTAINER_OF(t, struct watch_call, deadline), CONNECT_DEADLINE_EXCEEDED,
	     "context deadline exceeded");
}

static const struct dir_watch_ops watch_ops = { on_event, on_lost };

static bool start(struct watch_call *c, struct bytes json, struct rpc_fault *fault)
{
	AUTO(json_decrefp) json_t *message = NULL;
	const struct http1_head *h = http_request_head(c->stream.rq);
	struct watch_wish wish;
	uint64_t timeout_ms;
	struct err err;

	if (json_decode(json, RPC_REQUEST_MAX, FS_JSON_DEPTH, &message, &err) < 0 ||
	    rpc_timeout(c->stream.rq, &timeout_ms, &err) < 0)
		return rpc_fault_from(fault, &err) == 0;
	if (!watch_wish_read(c->agent, h, message, &wish, fault))
		return false;
	if (dir_watch_open(&c->watch, c->agent->loop, &wish.dir, &watch_ops, &err) < 0) {
		watch_fault(&wish, &err, fault);
		return false;
	}
	c->include_entry = wish.include_entry;
	if (timeout_ms > 0)
		timer_start(&c->deadline, timeout_ms);
	return true;
}

static void on_message(struct rpc_stream *s, struct bytes json)
{
	struct watch_call *c = CONTAINER_OF(s, struct watch_call, stream);
	struct rpc_fault fault = { .code = CONNECT_INTERNAL };

	if (!start(c, json, &fault)) {
		fail(c, fault.code, fault.why);
		return;
	}
	buf_done(&s->in);
	rpc_stream_send(s, BYTES_LIT("{\"start\":{}}"));
}

static void on_drain(struct rpc_stream *s)
{
	struct watch_call *c = CONTAINER_OF(s, struct watch_call, stream);

	if (c->watch.ops)
		dir_watch_hold(&c->watch, false);
}

static void on_gone(struct rpc_stream *s)
{
	call_free(CONTAINER_OF(s, struct watch_call, stream));
}

static void route_watch_dir(struct agent *a, struct http_request *rq)
{
	static const struct rpc_stream_ops ops = { on_message, on_drain, on_gone };
	struct watch_call *c = calloc(1, sizeof(*c));

	if (!c) {
		reply_rpc_fail(rq, CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	c->agent = a;
	timer_init(&c->deadline, a->loop, on_deadline);
	if (!rpc_stream_take(&c->stream, a->loop, rq, &ops, BYTES_LIT("{\"keepalive\":{}}")))
		free(c);
}

const struct route watch_routes[] = {
	{ "/filesystem.Filesystem/WatchDir", "POST", GUARD_CLIENT, route_watch_dir },
	{ 0 },
};
