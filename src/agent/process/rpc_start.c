/* rpc_start.c - process.Process/Start: a process, and all that it says, as a stream. */
#include <errno.h>
#include <sys/stat.h>

#include "agent/machine/env_file.h"
#include "agent/process/rpc_feed.h"
#include "agent/process/start_request.h"
#include "agent/route.h"
#include "agent/user_path.h"

static const char search_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

struct wish { /* the request with everything looked up */
	struct start_request request;
	struct account who;
	struct strings env;
	char cwd[USER_PATH_MAX];
	uint64_t timeout_ms;
	struct rpc_fault fault; /* if it cannot be fulfilled */
};

static void wish_done(struct wish *w)
{
	start_request_done(&w->request);
	strings_done(&w->env);
}

static bool refuse(struct wish *w, enum connect_code code, const char *why)
{
	rpc_fault_set(&w->fault, code, "%s", why);
	return false;
}

static bool find_cwd(struct rpc_feed *f, struct wish *w)
{
	struct stat st;
	struct err err;

	if (user_path(w->request.cwd, &w->who, f->agent->session.workdir, w->cwd, &err) < 0)
		return refuse(w, CONNECT_INVALID_ARGUMENT, err.msg);
	if (stat(w->cwd, &st) == 0 || (errno != ENOENT && errno != ENOTDIR))
		return true; /* whether the user may enter it, exec will tell */
	rpc_fault_set(&w->fault, CONNECT_INVALID_ARGUMENT, "cwd '%s' does not exist", w->cwd);
	return false;
}

static int env_of_image(struct rpc_feed *f, struct strings *env, struct err *err)
{
	char path[USER_PATH_MAX];

	snprintf(path, sizeof(path), "%s/etc/environment", f->agent->options->root);
	return env_file_add(path, env, err);
}

/* The later wins: what the image has, what every user has, what the sandbox has, what the client
 * asks for. */
static int build_env(struct rpc_feed *f, struct wish *w, struct err *err)
{
	const struct {
		struct bytes name;
		const char *value;
	} base[] = {
		{ BYTES_LIT("HOME"), w->who.home },
		{ BYTES_LIT("USER"), w->who.name },
		{ BYTES_LIT("LOGNAME"), w->who.name },
	};

	if (w->request.has_pty &&
	    strings_set_env(&w->env, BYTES_LIT("TERM"), BYTES_LIT("xterm-256color"), err) < 0)
		return -1;
	if (strings_set_env(&w->env, BYTES_LIT("PATH"), bytes_str(search_path), err) < 0 ||
	    env_of_image(f, &w->env, err) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(base); i++)
		if (strings_set_env(&w->env, base[i].name, bytes_str(base[i].value), err) < 0)
			return -1;
	if (env_add_all(&w->env, f->agent->session.env, err) < 0)
		return -1;
	return env_add_all(&w->env, w->request.envs, err);
}

static bool understand(struct rpc_feed *f, struct bytes json, struct wish *w)
{
	struct err err;

	if (!rpc_user(f->agent, http_request_head(f->stream.rq), &w->who, &w->fault))
		return false;
	if (rpc_timeout(f->stream.rq, &w->timeout_ms, &err) < 0 ||
	    start_request_parse(json, RPC_REQUEST_MAX, &w->request, &err) < 0)
		return refuse(w, CONNECT_INVALID_ARGUMENT, err.msg);
	start_request_text(&w->request, f->command, sizeof(f->command));
	if (!find_cwd(f, w))
		return false;
	if (build_env(f, w, &err) < 0)
		return refuse(w, CONNECT_INVALID_ARGUMENT, err.msg);
	return true;
}

static bool start(struct rpc_feed *f, struct wish *w)
{
	AUTO(buf_done) struct buf config = BUF_MAX(2 * RPC_REQUEST_MAX);
	struct process_spec spec = {
		.order = {
			.argv = &w->request.argv,
			.env = &w->env,
			.cwd = w->cwd,
			.who = &w->who,
			.cgroup = -1,
		},
		.groups = &f->agent->groups,
		.stdio = {
			.has_stdin = w->request.has_stdin,
			.has_pty = w->request.has_pty,
			.size = w->request.pty,
			.owner = w->who.uid,
		},
		.deadline_ms = w->timeout_ms,
		.tag = w->request.tag,
		.has_tag = w->request.has_tag,
	};
	struct process *p;
	struct err err;

	if (start_request_config(&w->request, &config, &err) < 0)
		return refuse(w, connect_code_of(err.code), err.msg);
	spec.config = buf_view(&config);
	if (processes_start(&f->agent->processes, &spec, &p, &err) < 0)
		return refuse(w, connect_code_of(err.code), err.msg);
	rpc_feed_listen(f, p);
	return true;
}

static void on_message(struct rpc_feed *f, struct bytes json)
{
	AUTO(wish_done) struct wish w = { 0 };

	f->overdue = true;
	if (!understand(f, json, &w) || !start(f, &w))
		rpc_feed_fail(f, w.fault.code, w.fault.why);
}

const struct route start_routes[] = {
	{ "/process.Process/Start", "POST", GUARD_CLIENT, .feed = on_message },
	{ 0 },
};
