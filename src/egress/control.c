/* control.c - known peers, fixed messages, one answer each. */
/* #syscalls: accept4 getsockopt sendmsg recvmsg memfd_create pwrite64 fstat pread64 close */
#include "egress/control.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "egress/audit.h"
#include "egress/doors.h"
#include "egress/explain.h"
#include "egress/request.h"
#include "jail/fdmsg.h"
#include "net/addr.h"
#include "net/timer.h"
#include "net/watch.h"

enum { REST_MS = 100 }; /* after the system had no descriptor left */

struct client {
	struct control *control; /* NULL: free */
	int sock;
	struct watch ready;
};

struct control {
	const struct house *house; /* borrowed */
	uid_t node_uid;
	int listener;
	struct watch calling;
	struct timer rest;
	struct client clients[CONTROL_CLIENTS_MAX];
	struct doors *slots[EGRESS_SLOTS_MAX];
};

/* A request with what came along; descriptors that nobody takes are closed. */
struct call {
	struct egress_request rq;
	int fds[EGRESS_DOORS];
	size_t n_fds;
	int answer; /* a descriptor that goes back with the reply; -1: none */
};

/* --- the verbs ------------------------------------------------------------------------------ */

typedef int verb_fn(struct control *c, struct call *call, struct egress_reply *r, struct err *err);

static void let_go(struct control *c, uint32_t slot)
{
	doors_close(c->slots[slot]);
	c->slots[slot] = NULL;
}

static int verb_open(struct control *c, struct call *call, struct egress_reply *r, struct err *err)
{
	(void)r;
	let_go(c, call->rq.slot);
	call->n_fds = 0; /* taken, whatever comes of it */
	return doors_open(&c->slots[call->rq.slot], c->house, call->fds, err);
}

static int verb_close(struct control *c, struct call *call, struct egress_reply *r, struct err *err)
{
	(void)r;
	(void)err;
	let_go(c, call->rq.slot);
	return 0;
}

static struct doors *find(struct control *c, const struct call *call, struct err *err)
{
	if (!c->slots[call->rq.slot])
		err_set(err, ERR_NOT_FOUND, 0, "slot %u has no doors here", call->rq.slot);
	return c->slots[call->rq.slot];
}

static int verb_name(struct control *c, struct call *call, struct egress_reply *r, struct err *err)
{
	struct doors *d = find(c, call, err);

	(void)r;
	if (!d)
		return -1;
	doors_name(d, call->rq.id);
	return 0;
}

static int verb_count(struct control *c, struct call *call, struct egress_reply *r, struct err *err)
{
	const struct doors *d = find(c, call, err);

	if (!d)
		return -1;
	r->counts = doors_counts(d);
	return 0;
}

static int verb_rule(struct control *c, struct call *call, struct egress_reply *r, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(POLICY_TEXT_MAX);
	struct doors *d = find(c, call, err);

	(void)r;
	if (!d || memory_file_read(call->fds[0], &text, err) < 0)
		return -1;
	if (call->n_fds == 2)
		call->n_fds--; /* taken, whatever comes of it */
	else
		call->fds[1] = -1;
	/* first: with the new rules nothing is handed to the opener of the old ones */
	if (doors_opener(d, call->fds[1], err) < 0)
		return -1;
	return doors_rule(d, buf_view(&text), err);
}

static int verb_log(struct control *c, struct call *call, struct egress_reply *r, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(AUDIT_TEXT_MAX);
	const struct doors *d = find(c, call, err);

	(void)r;
	if (!d || doors_log(d, &text, err) < 0)
		return -1;
	call->answer = memory_file_make("log", buf_view(&text), err);
	return call->answer < 0 ? -1 : 0;
}

static int verb_known(struct control *c, struct call *call, struct egress_reply *r, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(POLICY_TEXT_MAX);
	const struct doors *d = find(c, call, err);

	(void)r;
	if (!d || doors_known(d, &text, err) < 0)
		return -1;
	call->answer = memory_file_make("known", buf_view(&text), err);
	return call->answer < 0 ? -1 : 0;
}

static int verb_explain(struct control *c, struct call *call, struct egress_reply *r,
			struct err *err)
{
	AUTO(buf_done) struct buf in = BUF_MAX(EXPLAIN_IN_MAX);
	AUTO(buf_done) struct buf out = BUF_MAX(EXPLAIN_OUT_MAX);

	(void)r;
	if (memory_file_read(call->fds[0], &in, err) < 0 ||
	    explain(c->house->ground, buf_view(&in), &out, err) < 0)
		return -1;
	call->answer = memory_file_make("explained", buf_view(&out), err);
	return call->answer < 0 ? -1 : 0;
}

static int verb_reset(struct control *c, struct call *call, struct egress_reply *r, struct err *err)
{
	(void)call;
	(void)r;
	(void)err;
	for (uint32_t i = 0; i < EGRESS_SLOTS_MAX; i++)
		let_go(c, i);
	return 0;
}

static verb_fn *const verbs[EGRESS_VERBS] = {
	[EGRESS_OPEN] = verb_open,   [EGRESS_CLOSE] = verb_close,     [EGRESS_NAME] = verb_name,
	[EGRESS_COUNT] = verb_count, [EGRESS_RULE] = verb_rule,       [EGRESS_LOG] = verb_log,
	[EGRESS_KNOWN] = verb_known, [EGRESS_EXPLAIN] = verb_explain, [EGRESS_RESET] = verb_reset,
};

static int handle(struct control *c, struct call *call, struct egress_reply *r, struct err *err)
{
	if (egress_request_check(&call->rq, call->n_fds, err) < 0)
		return -1;
	return verbs[call->rq.verb](c, call, r, err);
}

/* --- clients -------------------------------------------------------------------------------- */

static void hang_up(struct client *cl)
{
	watch_close(&cl->ready);
	close(cl->sock);
	cl->control = NULL;
}

/* Takes `fd`, which may be -1. Who does not read its answers would have to be waited for: it goes.
 */
static bool answer(struct client *cl, const struct egress_reply *r, int fd)
{
	AUTO(auto_close) int own = fd;
	struct err err;

	if (fdmsg_send(cl->sock, r, sizeof(*r), &own, own >= 0, &err) == 0)
		return true;
	hang_up(cl);
	return false;
}

/* One request. False when there is none, or nobody to answer any more. */
static bool serve_one(struct client *cl)
{
	struct call call = { .answer = -1 };
	struct egress_reply r = { 0 };
	struct err err = { 0 };

	if (fdmsg_recv(cl->sock, &call.rq, sizeof(call.rq), call.fds, EGRESS_DOORS, &call.n_fds,
		       &err) < 0) {
		if (err.sys != EAGAIN)
			hang_up(cl);
		return false;
	}
	r.tag = call.rq.tag;
	if (handle(cl->control, &call, &r, &err) < 0) {
		r.code = err.code;
		snprintf(r.msg, sizeof(r.msg), "%.*s", (int)sizeof(r.msg) - 1, err.msg);
	}
	while (call.n_fds > 0)
		close(call.fds[--call.n_fds]);
	return answer(cl, &r, call.answer);
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
		if (watch_open(&cl->ready, c->house->loop, sock, WATCH_READ, on_request, &err) <
		    0) {
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

int control_open(struct control **ret, const struct house *house, const char *path, uid_t node_uid,
		 struct err *err)
{
	AUTO(auto_free) struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate control");
	c->house = house;
	c->node_uid = node_uid;
	timer_init(&c->rest, house->loop, call_again);
	c->listener = listen_at(path, err);
	if (c->listener < 0)
		return -1;
	if (watch_open(&c->calling, house->loop, c->listener, WATCH_READ, on_call, err) < 0) {
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
	for (uint32_t i = 0; i < EGRESS_SLOTS_MAX; i++)
		let_go(c, i);
	timer_stop(&c->rest);
	watch_close(&c->calling);
	close(c->listener);
	free(c);
}
