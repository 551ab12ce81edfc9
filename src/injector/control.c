/* control.c - fixed messages, one answer each. */
/* #syscalls: sendmsg recvmsg fstat newfstatat pread64 memfd_create pwrite64
 * close
 */
#include "injector/control.h"

#include <errno.h>

#include "base/memory_file.h"
#include "base/fdmsg.h"
#include "net/control_socket.h"
#include "injector/request.h"
#include "injector/rules.h"

struct control {
	struct control_socket socket;
	struct workers workers;
};

struct call {
	struct injector_request rq;
	int fd;     /* what came along, closed afterwards; -1: nothing */
	int answer; /* what goes back with the answer, closed afterwards; -1: nothing */
};

/* --- the verbs ------------------------------------------------------------------------------ */

typedef int verb_fn(struct control *c, struct call *call, struct err *err);

static int verb_start(struct control *c, struct call *call, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(RULES_TEXT_MAX);

	if (memory_file_read(call->fd, &text, err) < 0)
		return -1;
	loop_forget(c->socket.loop); /* the values it opens are the worker's alone */
	call->answer = workers_start(&c->workers, &call->rq, buf_view(&text), err);
	return call->answer < 0 ? -1 : 0;
}

static int verb_stop(struct control *c, struct call *call, struct err *err)
{
	(void)err;
	workers_stop(&c->workers, call->rq.slot);
	return 0;
}

static int verb_reset(struct control *c, struct call *call, struct err *err)
{
	(void)call;
	(void)err;
	workers_stop_all(&c->workers);
	return 0;
}

static int verb_facts(struct control *c, struct call *call, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(2 * AUTHORITY_TEXT_MAX);

	if (keys_facts(c->workers.keys, &text, err) < 0)
		return -1;
	call->answer = memory_file_make("facts", buf_view(&text), err);
	return call->answer < 0 ? -1 : 0;
}

static verb_fn *const verbs[INJECTOR_VERBS] = {
	[INJECTOR_START] = verb_start,
	[INJECTOR_STOP] = verb_stop,
	[INJECTOR_RESET] = verb_reset,
	[INJECTOR_FACTS] = verb_facts,
};

static int handle(struct control *c, struct call *call, struct err *err)
{
	if (injector_request_check(&call->rq, call->fd >= 0, err) < 0)
		return -1;
	return verbs[call->rq.verb](c, call, err);
}

/* --- clients -------------------------------------------------------------------------------- */

/* Who does not read its answers would have to be waited for: it goes. */
static bool answer(struct control_client *cl, const struct injector_reply *r, int fd)
{
	struct err err;

	if (fdmsg_send(cl->sock, r, sizeof(*r), &fd, fd >= 0, &err) == 0)
		return true;
	control_hang_up(cl);
	return false;
}

static void serve(struct control *c, struct call *call, struct injector_reply *r)
{
	struct err err = { 0 };

	r->tag = call->rq.tag;
	r->slot = call->rq.slot;
	if (handle(c, call, &err) < 0) {
		r->code = err.code;
		snprintf(r->msg, sizeof(r->msg), "%.*s", (int)sizeof(r->msg) - 1, err.msg);
	}
}

static bool on_request(struct control_client *cl)
{
	struct call call = { .fd = -1, .answer = -1 };
	struct injector_reply r = { 0 };
	struct err err = { 0 };
	size_t n_fds = 0;
	bool more;

	if (fdmsg_recv(cl->sock, &call.rq, sizeof(call.rq), &call.fd, 1, &n_fds, &err) < 0) {
		if (err.sys != EAGAIN)
			control_hang_up(cl);
		return false;
	}
	serve(CONTAINER_OF(cl->of, struct control, socket), &call, &r);
	if (call.rq.verb == INJECTOR_RESET && r.code == ERR_NONE)
		control_alone(cl);
	more = answer(cl, &r, call.answer);
	auto_close(&call.fd);
	auto_close(&call.answer);
	return more;
}

static void on_gone(struct workers *w, uint32_t slot)
{
	struct control *c = CONTAINER_OF(w, struct control, workers);
	const struct injector_reply r = { .slot = slot, .msg = "its worker ended" };

	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (c->socket.clients[i].of && c->socket.clients[i].greeted)
			(void)answer(&c->socket.clients[i], &r, -1);
}

/* --- open and close ------------------------------------------------------------------------- */

int control_open(struct control **ret, struct loop *l, const struct keys *k, struct forkserver *n,
		 const char *path, uid_t node_uid, struct err *err)
{
	static const struct control_socket_ops ops = { INJECTOR_VERSION_MIN, INJECTOR_VERSION_MAX,
						       on_request };
	static const struct workers_ops of_workers = { on_gone };
	AUTO(auto_free) struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate control");
	c->workers.ops = &of_workers;
	c->workers.loop = l;
	c->workers.keys = k;
	c->workers.forkserver = n;
	if (control_socket_open(&c->socket, l, &ops, path, node_uid, err) < 0)
		return -1;
	*ret = TAKE(c);
	return 0;
}

void control_close(struct control *c)
{
	if (!c)
		return;
	control_socket_close(&c->socket);
	workers_stop_all(&c->workers);
	free(c);
}
