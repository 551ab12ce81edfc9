/* control.c - known peers, fixed messages, one answer each. */
/* #syscalls: accept4 getsockopt sendmsg recvmsg fstat newfstatat pread64 memfd_create pwrite64
 * close
 */
#include "opener/control.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "jail/fdmsg.h"
#include "net/addr.h"
#include "net/timer.h"
#include "opener/request.h"
#include "opener/rules.h"

enum { REST_MS = 100 }; /* after the system had no descriptor left */

struct client {
	struct control *control; /* NULL: free */
	int sock;
	struct watch ready;
};

struct control {
	struct loop *loop;
	uid_t node_uid;
	struct workers workers;
	int listener;
	struct watch calling;
	struct timer rest;
	struct client clients[CONTROL_CLIENTS_MAX];
};

struct call {
	struct opener_request rq;
	int fd;     /* what came along, closed afterwards; -1: nothing */
	int answer; /* what goes back with the answer, closed afterwards; -1: nothing */
};

/* --- the verbs ------------------------------------------------------------------------------ */

typedef int verb_fn(struct control *c, struct call *call, struct err *err);

static int verb_start(struct control *c, struct call *call, struct err *err)
{
	AUTO(secret_done) struct buf text = BUF_MAX(RULES_TEXT_MAX);

	if (memory_file_read(call->fd, &text, err) < 0)
		return -1;
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

static verb_fn *const verbs[OPENER_VERBS] = {
	[OPENER_START] = verb_start,
	[OPENER_STOP] = verb_stop,
	[OPENER_RESET] = verb_reset,
	[OPENER_FACTS] = verb_facts,
};

static int handle(struct control *c, struct call *call, struct err *err)
{
	if (opener_request_check(&call->rq, call->fd >= 0, err) < 0)
		return -1;
	return verbs[call->rq.verb](c, call, err);
}

/* --- clients -------------------------------------------------------------------------------- */

static void hang_up(struct client *cl)
{
	watch_close(&cl->ready);
	close(cl->sock);
	cl->control = NULL;
}

/* Who does not read its answers would have to be waited for: it goes. */
static bool answer(struct client *cl, const struct opener_reply *r, int fd)
{
	struct err err;

	if (fdmsg_send(cl->sock, r, sizeof(*r), &fd, fd >= 0, &err) == 0)
		return true;
	hang_up(cl);
	return false;
}

static void serve(struct client *cl, struct call *call, struct opener_reply *r)
{
	struct err err = { 0 };

	r->tag = call->rq.tag;
	r->slot = call->rq.slot;
	if (handle(cl->control, call, &err) < 0) {
		r->code = err.code;
		snprintf(r->msg, sizeof(r->msg), "%.*s", (int)sizeof(r->msg) - 1, err.msg);
	}
}

/* One request. False when there is none, or nobody to answer any more. */
static bool serve_one(struct client *cl)
{
	struct call call = { .fd = -1, .answer = -1 };
	struct opener_reply r = { 0 };
	struct err err = { 0 };
	size_t n_fds = 0;
	bool more;

	if (fdmsg_recv(cl->sock, &call.rq, sizeof(call.rq), &call.fd, 1, &n_fds, &err) < 0) {
		if (err.sys != EAGAIN)
			hang_up(cl);
		return false;
	}
	serve(cl, &call, &r);
	more = answer(cl, &r, call.answer);
	auto_close(&call.fd);
	auto_close(&call.answer);
	return more;
}

static void on_request(struct watch *w, unsigned int events)
{
	struct client *cl = CONTAINER_OF(w, struct client, ready);

	if (events & WATCH_ERROR) {
		hang_up(cl);
		return;
	}
	for (int i = 0; i < CONTROL_BATCH; i++)
		if (!serve_one(cl))
			return;
}

static void on_gone(struct workers *w, uint32_t slot)
{
	struct control *c = CONTAINER_OF(w, struct control, workers);
	const struct opener_reply r = { .slot = slot, .msg = "its worker ended" };

	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (c->clients[i].control)
			(void)answer(&c->clients[i], &r, -1);
}

static bool may_ask(const struct control *c, int sock)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == c->node_uid);
}

static void admit(struct control *c, int fd)
{
	AUTO(auto_close) int sock = fd;
	struct err err = { 0 };

	if (!may_ask(c, sock)) {
		log_warn("a client that is neither root nor node was turned away");
		return;
	}
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		struct client *cl = &c->clients[i];

		if (cl->control)
			continue;
		if (watch_open(&cl->ready, c->loop, sock, WATCH_READ, on_request, &err) < 0) {
			log_error("%s", err.msg);
			return;
		}
		cl->sock = take_fd(&sock);
		cl->control = c;
		return;
	}
	log_warn("a client was turned away: %d are connected", CONTROL_CLIENTS_MAX);
}

static void call_again(struct timer *t)
{
	watch_set(&CONTAINER_OF(t, struct control, rest)->calling, WATCH_READ);
}

static void on_call(struct watch *w, unsigned int events)
{
	struct control *c = CONTAINER_OF(w, struct control, calling);
	int sock = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (sock >= 0) {
		admit(c, sock);
		return;
	}
	watch_set(&c->calling, 0);
	timer_start(&c->rest, REST_MS);
}

/* --- open and close ------------------------------------------------------------------------- */

/* Open to all who may pass the folder: who may ask is decided by who it is. */
static int listen_at(const char *path, struct err *err)
{
	AUTO(auto_close)
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct addr at;

	if (addr_unix(path, &at, err) < 0)
		return -1;
	(void)unlink(path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at.at, at.len) < 0 ||
	    chmod(path, 0666) < 0 || listen(fd, CONTROL_CLIENTS_MAX) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "listen on %s", path);
	return take_fd(&fd);
}

int control_open(struct control **ret, struct loop *l, const struct keys *k, struct nursery *n,
		 const char *path, uid_t node_uid, struct err *err)
{
	static const struct workers_ops ops = { on_gone };
	AUTO(auto_free) struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate control");
	c->loop = l;
	c->workers.ops = &ops;
	c->workers.loop = l;
	c->workers.keys = k;
	c->workers.nursery = n;
	c->node_uid = node_uid;
	timer_init(&c->rest, l, call_again);
	c->listener = listen_at(path, err);
	if (c->listener < 0)
		return -1;
	if (watch_open(&c->calling, l, c->listener, WATCH_READ, on_call, err) < 0) {
		close(c->listener);
		return -1;
	}
	*ret = TAKE(c);
	return 0;
}

void control_close(struct control *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (c->clients[i].control)
			hang_up(&c->clients[i]);
	workers_stop_all(&c->workers);
	timer_stop(&c->rest);
	watch_close(&c->calling);
	close(c->listener);
	free(c);
}
