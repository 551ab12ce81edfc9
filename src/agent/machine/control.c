/* control.c - what the host asks for: the clock, a freeze, an identity.
 *
 * From a freeze on nothing is read of what processes said: whoever listened may be gone when the
 * machine goes on. It is read again after the thaw.
 *
 * The order matters in one place: the answer to an identity leaves before the user's processes
 * run again, so that the host knows the sandbox is itself before the sandbox can do anything.
 */
#include <inttypes.h>

#include "agent/agent.h"
#include "agent/reply.h"
#include "agent/route.h"
#include "base/clock.h"
#include "base/log.h"
#include "wire/target.h"

enum { CLOCK_JSON_MAX = 128 };

static void reply_clock(struct http_request *rq)
{
	char json[CLOCK_JSON_MAX];

	snprintf(json, sizeof(json),
		 "{\"monotonicNs\":\"%" PRIu64 "\",\"realtimeNs\":\"%" PRIu64 "\"}",
		 clock_mono_ns(), clock_wall_ns());
	reply_json(rq, bytes_str(json));
}

static void route_clock(struct agent *a, struct http_request *rq)
{
	(void)a;
	reply_clock(rq);
}

static void route_envs(struct agent *a, struct http_request *rq)
{
	AUTO(buf_done) struct buf json = BUF_MAX(8 * SESSION_JSON_MAX);
	struct err err;

	if (json_encode(a->session.env, &json, &err) < 0)
		reply_fail(rq, 500, "%s", err.msg);
	else
		reply_json(rq, buf_view(&json));
}

/* --- identity ----------------------------------------------------------------------------- */

struct identity_call {
	struct http_handler handler;
	struct http_request *rq;
	struct agent *agent;
	struct buf body;
};

static void identity_call_free(struct identity_call *c)
{
	if (c->body.ptr) /* tokens and entropy */
		explicit_bzero(c->body.ptr, c->body.len);
	buf_done(&c->body);
	free(c);
}

static void on_identity_body(struct http_handler *h, struct bytes piece)
{
	struct identity_call *c = CONTAINER_OF(h, struct identity_call, handler);
	struct err err;

	if (buf_add(&c->body, piece, &err) < 0) {
		reply_fail(c->rq, 500, "%s", err.msg);
		identity_call_free(c);
	}
}

/* Their other ends were left behind in the network it was paused or copied in. */
static void part_from_clients(struct agent *a, const struct http_request *rq)
{
	processes_await(&a->processes);
	http_server_cut(&a->http, rq);
	tunnels_done(&a->tunnels);
}

static void assume(struct agent *a, struct http_request *rq, struct bytes json)
{
	AUTO(identity_done) struct identity id = { 0 };
	struct err err;

	if (identity_parse(json, &a->session, &id, &err) < 0) {
		reply_fail(rq, err.code == ERR_DENIED ? 403 : 400, "%s", err.msg);
		return;
	}
	if (identity_assume(&id, &a->place, &a->session, &err) < 0) {
		log_error("identity: %s", err.msg);
		reply_fail(rq, 500, "%s", err.msg);
		return;
	}
	if (identity_parts(&id))
		part_from_clients(a, rq);
	reply_clock(rq);
	if (id.stay_frozen)
		return;
	if (cgroup_thaw(&a->cgroup, &err) < 0)
		log_error("stays frozen: %s", err.msg);
	processes_still(&a->processes, false);
}

static void on_identity_end(struct http_handler *h)
{
	struct identity_call *c = CONTAINER_OF(h, struct identity_call, handler);

	assume(c->agent, c->rq, buf_view(&c->body));
	identity_call_free(c);
}

static void on_identity_gone(struct http_handler *h, const struct err *err)
{
	(void)err;
	identity_call_free(CONTAINER_OF(h, struct identity_call, handler));
}

static void route_identity(struct agent *a, struct http_request *rq)
{
	static const struct http_handler_ops ops = { on_identity_body, on_identity_end, NULL,
						     on_identity_gone };
	struct identity_call *c = calloc(1, sizeof(*c));

	if (!c) {
		reply_fail(rq, 500, "out of memory");
		return;
	}
	*c = (struct identity_call){ { &ops }, rq, a, BUF_MAX(SESSION_JSON_MAX) };
	http_request_take(rq, &c->handler);
	http_body_start(rq, SESSION_JSON_MAX);
}

/* --- freeze ------------------------------------------------------------------------------- */

struct freeze_call {
	struct http_handler handler;
	struct http_request *rq;
	struct agent *agent;
	struct freeze freeze;
	bool flush;
};

/* Only if asked for: what is saved with its memory has its dirty pages in there. What a template
 * still had to write each of its copies would write again, and a disk without a memory would lack
 * it. */
static void flush(const struct freeze_call *c)
{
	const struct identity_effects *effects = c->agent->place.effects;

	if (c->flush && effects->flush_disks)
		effects->flush_disks();
}

static bool asks_for(const struct http_request *rq, const char *what)
{
	struct target t;
	struct err unused;

	return target_split(http_request_head(rq)->target, &t, &unused) == 0 &&
	       bytes_eq(t.query, bytes_str(what));
}

static void on_frozen(struct freeze *f, const struct err *err)
{
	struct freeze_call *c = CONTAINER_OF(f, struct freeze_call, freeze);

	flush(c); /* also when somebody does not freeze: it will be stopped all the same */
	if (err)
		reply_fail(c->rq, err->code == ERR_TIMEOUT ? 504 : 500, "%s", err->msg);
	else
		http_answer(c->rq, &(struct http_response){ .status = 204 }, (struct bytes){ 0 });
	free(c);
}

static void on_freeze_gone(struct http_handler *h, const struct err *err)
{
	struct freeze_call *c = CONTAINER_OF(h, struct freeze_call, handler);

	(void)err;
	freeze_cancel(&c->freeze);
	free(c);
}

static void route_freeze(struct agent *a, struct http_request *rq)
{
	static const struct http_handler_ops ops = { .on_gone = on_freeze_gone };
	struct freeze_call *c = calloc(1, sizeof(*c));
	struct err err;

	if (!c) {
		reply_fail(rq, 500, "out of memory");
		return;
	}
	c->handler.ops = &ops;
	c->rq = rq;
	c->agent = a;
	c->flush = asks_for(rq, "flush=1");
	if (freeze_start(&c->freeze, a->loop, &a->cgroup,
			 asks_for(rq, "sure=1") ? CGROUP_SURE_MS : CGROUP_FREEZE_MS, on_frozen,
			 &err) < 0) {
		reply_fail(rq, 500, "%s", err.msg);
		free(c);
		return;
	}
	processes_still(&a->processes, true);
	http_request_take(rq, &c->handler);
}

const struct route control_routes[] = {
	{ "/control/clock", "GET", GUARD_NONE, route_clock },
	{ "/control/identity", "POST", GUARD_CONTROL, route_identity },
	{ "/control/freeze", "POST", GUARD_CONTROL, route_freeze },
	{ "/envs", "GET", GUARD_CLIENT, route_envs },
	{ 0 },
};
