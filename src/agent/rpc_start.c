/* rpc_start.c - process.Process/Start: a process, and all that it says, as a stream.
 *
 * The call listens; the process belongs to the table. So the client may go and the process stays.
 */
#include <errno.h>
#include <sys/stat.h>

#include "agent/access.h"
#include "agent/agent.h"
#include "agent/process_event.h"
#include "agent/reply.h"
#include "agent/rpc_stream.h"
#include "agent/start_request.h"
#include "agent/user_path.h"

enum { TEXT_MAX = 1024, USERNAME_TEXT_MAX = 512 };

static const char search_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

struct start_call {
	struct rpc_stream stream;
	struct process_listener listener;
	struct agent *agent;
	char command[TEXT_MAX]; /* for messages */
};

static struct start_call *of_listener(struct process_listener *ln)
{
	return CONTAINER_OF(ln, struct start_call, listener);
}

static struct start_call *of_stream(struct rpc_stream *s)
{
	return CONTAINER_OF(s, struct start_call, stream);
}

/* --- what the process says ---------------------------------------------------------------- */

static void on_start(struct process_listener *ln)
{
	struct start_call *c = of_listener(ln);
	AUTO(buf_done) struct buf json = BUF_MAX(EVENT_JSON_MAX);
	struct err err;

	if (event_put_start(&json, ln->process->pid, &err) < 0)
		rpc_stream_lose(&c->stream, &err);
	else
		rpc_stream_send(&c->stream, buf_view(&json));
}

static void on_output(struct process_listener *ln, enum process_output from, struct bytes b)
{
	struct start_call *c = of_listener(ln);
	AUTO(buf_done) struct buf json = BUF_MAX(EVENT_JSON_MAX);
	struct err err;

	for (; b.len > 0; b = bytes_tail(b, EVENT_PIECE_MAX)) {
		buf_clear(&json);
		if (event_put_output(&json, from, bytes_head(b, EVENT_PIECE_MAX), &err) < 0)
			rpc_stream_lose(&c->stream, &err);
		else
			rpc_stream_send(&c->stream, buf_view(&json));
	}
	process_hold(ln, rpc_stream_full(&c->stream));
}

static void on_overdue(struct process_listener *ln)
{
	struct start_call *c = of_listener(ln);

	process_leave(ln);
	rpc_stream_fail(&c->stream, CONNECT_DEADLINE_EXCEEDED, "context deadline exceeded");
	free(c);
}

static void on_end(struct process_listener *ln, const struct process_end *end)
{
	struct start_call *c = of_listener(ln);
	AUTO(buf_done) struct buf json = BUF_MAX(EVENT_JSON_MAX);
	struct err err;

	if (event_put_end(&json, end, &err) < 0)
		rpc_stream_fail(&c->stream, CONNECT_INTERNAL, err.msg);
	else
		rpc_stream_end(&c->stream, buf_view(&json));
	free(c);
}

static void on_fail(struct process_listener *ln, const struct err *err)
{
	struct start_call *c = of_listener(ln);
	char text[2 * TEXT_MAX];

	snprintf(text, sizeof(text), "error starting process '%s': %s", c->command, err->msg);
	rpc_stream_fail(&c->stream, connect_code_of(err->code), text);
	free(c);
}

static const struct process_listener_ops listener_ops = {
	.on_start = on_start,
	.on_output = on_output,
	.on_overdue = on_overdue,
	.on_end = on_end,
	.on_fail = on_fail,
};

/* --- what the client says ----------------------------------------------------------------- */

struct wish { /* the request with everything looked up */
	struct start_request request;
	struct account who;
	struct strings env;
	char cwd[USER_PATH_MAX];
	uint64_t timeout_ms;
	enum connect_code code; /* if it cannot be fulfilled */
	char why[TEXT_MAX + USER_PATH_MAX];
};

static void wish_done(struct wish *w)
{
	start_request_done(&w->request);
	strings_done(&w->env);
}

static bool refuse(struct wish *w, enum connect_code code, const char *why)
{
	w->code = code;
	snprintf(w->why, sizeof(w->why), "%s", why);
	return false;
}

static bool find_user(struct start_call *c, struct wish *w)
{
	AUTO(buf_done) struct buf name = BUF_MAX(USERNAME_TEXT_MAX);
	struct err err;

	w->code = CONNECT_UNAUTHENTICATED;
	if (access_user(http_request_head(c->stream.rq), &name, &err) < 0)
		return refuse(w, CONNECT_UNAUTHENTICATED, err.msg);
	if (agent_account(c->agent, buf_view(&name), &w->who, &err) == 0)
		return true;
	if (name.len > 0)
		snprintf(w->why, sizeof(w->why), "invalid username: '%.*s'", (int)name.len,
			 (const char *)name.ptr);
	else
		snprintf(w->why, sizeof(w->why), "invalid default user: '%s'",
			 c->agent->session.default_user);
	return false;
}

static bool find_cwd(struct start_call *c, struct wish *w)
{
	struct stat st;
	struct err err;

	if (user_path(w->request.cwd, &w->who, c->agent->session.workdir, w->cwd, &err) < 0)
		return refuse(w, CONNECT_INVALID_ARGUMENT, err.msg);
	if (stat(w->cwd, &st) == 0 || (errno != ENOENT && errno != ENOTDIR))
		return true; /* whether the user may enter it, exec will tell */
	w->code = CONNECT_INVALID_ARGUMENT;
	snprintf(w->why, sizeof(w->why), "cwd '%s' does not exist", w->cwd);
	return false;
}

/* The later wins: what every user has, what the sandbox has, what the client asks for. */
static int build_env(struct start_call *c, struct wish *w, struct err *err)
{
	const struct {
		struct bytes name;
		const char *value;
	} base[] = {
		{ BYTES_LIT("PATH"), search_path },
		{ BYTES_LIT("HOME"), w->who.home },
		{ BYTES_LIT("USER"), w->who.name },
		{ BYTES_LIT("LOGNAME"), w->who.name },
	};

	for (size_t i = 0; i < COUNT(base); i++)
		if (strings_set_env(&w->env, base[i].name, bytes_str(base[i].value), err) < 0)
			return -1;
	if (env_add_all(&w->env, c->agent->session.env, err) < 0)
		return -1;
	return env_add_all(&w->env, w->request.envs, err);
}

static bool understand(struct start_call *c, struct bytes json, struct wish *w)
{
	struct err err;

	if (!find_user(c, w))
		return false;
	if (rpc_timeout(c->stream.rq, &w->timeout_ms, &err) < 0 ||
	    start_request_parse(json, RPC_REQUEST_MAX, &w->request, &err) < 0)
		return refuse(w, CONNECT_INVALID_ARGUMENT, err.msg);
	start_request_text(&w->request, c->command, sizeof(c->command));
	if (w->request.has_pty)
		return refuse(w, CONNECT_UNIMPLEMENTED, "terminals are not implemented");
	if (!find_cwd(c, w))
		return false;
	if (build_env(c, w, &err) < 0)
		return refuse(w, CONNECT_INVALID_ARGUMENT, err.msg);
	return true;
}

static bool start(struct start_call *c, struct wish *w)
{
	const struct process_spec spec = {
		.order = {
			.argv = &w->request.argv,
			.env = &w->env,
			.cwd = w->cwd,
			.who = &w->who,
			.cgroup = c->agent->cgroup.dir,
		},
		.has_stdin = w->request.has_stdin,
		.deadline_ms = w->timeout_ms,
		.config = w->request.config,
		.tag = w->request.tag,
		.has_tag = w->request.has_tag,
	};
	struct process *p;
	struct err err;

	if (processes_start(&c->agent->processes, &spec, &p, &err) < 0)
		return refuse(w, connect_code_of(err.code), err.msg);
	process_listen(p, &c->listener, &listener_ops);
	return true;
}

static void on_message(struct rpc_stream *s, struct bytes json)
{
	struct start_call *c = of_stream(s);
	AUTO(wish_done) struct wish w = { 0 };

	if (understand(c, json, &w) && start(c, &w)) {
		buf_done(&s->in); /* the process may run for days */
		return;
	}
	rpc_stream_fail(s, w.code, w.why);
	free(c);
}

static void on_drain(struct rpc_stream *s)
{
	process_hold(&of_stream(s)->listener, false);
}

/* The process runs on, unheard. */
static void on_gone(struct rpc_stream *s)
{
	struct start_call *c = of_stream(s);

	process_leave(&c->listener);
	free(c);
}

void route_start(struct agent *a, struct http_request *rq)
{
	static const struct rpc_stream_ops ops = { on_message, on_drain, on_gone };
	struct start_call *c = calloc(1, sizeof(*c));

	if (!c) {
		reply_rpc_fail(rq, CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	c->agent = a;
	if (!rpc_stream_take(&c->stream, a->loop, rq, &ops, EVENT_KEEPALIVE))
		free(c);
}
