/* fs_call.c - see fs_call.h. */
#include "agent/filesystem/fs_call.h"

#include <errno.h>

#include "agent/filesystem/entry.h"
#include "agent/reply.h"

static struct fs_call *of(struct rpc_unary *u)
{
	return CONTAINER_OF(u, struct fs_call, unary);
}

static void call_free(struct fs_call *c)
{
	timer_stop(&c->turn);
	if (c->work)
		c->method->release(c->work);
	free(c->work);
	account_names_done(&c->names);
	buf_done(&c->answer);
	free(c);
}

/* --- what a call is about ----------------------------------------------------------------- */

bool fs_path(const struct agent *a, const struct account *who, const json_t *message,
	     const char *member, char path[static USER_PATH_MAX], struct rpc_fault *ret)
{
	struct bytes text = { 0 };
	struct err err;

	if (json_may_string(message, member, &text, &err) < 0 ||
	    user_path(text, who, a->session.workdir, path, &err) < 0) {
		rpc_fault_set(ret, CONNECT_INVALID_ARGUMENT, "%s", err.msg);
		return false;
	}
	path_tidy(path);
	return true;
}

void fs_names(const struct agent *a, struct account_names *ret)
{
	char dir[IDENTITY_PATH_MAX];

	snprintf(dir, sizeof(dir), "%s/etc", a->place.root);
	account_names_load(ret, dir);
}

/* --- how it is answered ------------------------------------------------------------------- */

static enum connect_code code_of(int sys)
{
	switch (sys) {
	case ENOENT:
		return CONNECT_NOT_FOUND;
	case ENOTDIR:
	case ENAMETOOLONG:
	case EINVAL:
		return CONNECT_INVALID_ARGUMENT;
	case ELOOP:
		return CONNECT_FAILED_PRECONDITION;
	case EACCES:
	case EPERM:
	case EROFS:
		return CONNECT_PERMISSION_DENIED;
	default:
		return CONNECT_INTERNAL;
	}
}

int fs_fail(struct fs_call *c, int sys, const char *what, const char *path)
{
	rpc_fault_set(&c->fault, code_of(sys), "%s: %s: %s", what, path, strerror(sys));
	return FS_FAILED;
}

int fs_refuse(struct fs_call *c, enum connect_code code, const char *what, const char *path)
{
	rpc_fault_set(&c->fault, code, "%s: %s", what, path);
	return FS_FAILED;
}

int fs_answer_entry(struct fs_call *c, const char *path)
{
	struct err err;

	if (buf_add(&c->answer, BYTES_LIT("{\"entry\":"), &err) == 0 &&
	    entry_put(&c->answer, path, &c->names, &err) == 0 &&
	    buf_add(&c->answer, BYTES_LIT("}"), &err) == 0)
		return FS_DONE;
	if (err.code == ERR_NOT_FOUND)
		return fs_refuse(c, CONNECT_NOT_FOUND, "file not found", path);
	rpc_fault_set(&c->fault, connect_code_of(err.code), "%s", err.msg);
	return FS_FAILED;
}

static void go_on(struct fs_call *c, int state)
{
	switch (state) {
	case FS_AGAIN:
		timer_start(&c->turn, 0);
		break;
	case FS_DONE:
		if (rpc_unary_send(&c->unary, &c->answer))
			call_free(c);
		break;
	default:
		rpc_unary_fail(&c->unary, c->fault.code, c->fault.why);
		call_free(c);
	}
}

static void on_turn(struct timer *t)
{
	struct fs_call *c = CONTAINER_OF(t, struct fs_call, turn);

	go_on(c, c->method->step(c));
}

static void on_message(struct rpc_unary *u, json_t *message)
{
	struct fs_call *c = of(u);

	if (!rpc_user(c->agent, http_request_head(u->rq), &c->who, &c->fault)) {
		go_on(c, FS_FAILED);
		return;
	}
	fs_names(c->agent, &c->names);
	go_on(c, c->method->start(c, message));
}

static void on_gone(struct rpc_unary *u)
{
	call_free(of(u));
}

void fs_call_run(struct agent *a, struct http_request *rq, const struct fs_method *m)
{
	static const struct rpc_unary_ops ops = { on_message, on_gone };
	struct fs_call *c = calloc(1, sizeof(*c));
	void *work = c && m->work_size ? calloc(1, m->work_size) : NULL;

	if (!c || (m->work_size && !work)) {
		free(c);
		reply_rpc_fail(rq, CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	c->agent = a;
	c->method = m;
	c->work = work;
	c->answer = BUF_MAX(FS_ANSWER_MAX);
	timer_init(&c->turn, a->loop, on_turn);
	if (!rpc_unary_take(&c->unary, a->loop, rq, &ops, FS_JSON_DEPTH))
		call_free(c);
}
