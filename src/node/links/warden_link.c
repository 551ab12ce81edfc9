/* warden_link.c - requests out in order, replies in by tag. */
/* #syscalls: socket connect shutdown close */
#include "node/links/warden_link.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/fdmsg.h"
#include "net/addr.h"

static_assert((int)FDMSG_FDS_MAX >= (int)WARDEN_FDS_MAX, "a message holds fewer than warden sends");

struct warden_link {
	struct warden_link_user *user;
	struct loop *loop;
	int sock;
	struct watch ready;
	uint64_t next_tag;
	struct warden_call *first, **last; /* in the order asked */
	size_t n_calls;
	unsigned int held; /* by callbacks that run now */
	bool closed, broken;
};

static void release(struct warden_link *w)
{
	if (--w->held == 0 && w->closed)
		free(w);
}

static void close_fds(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(take_fd(&fds[i]));
}

void warden_call_cancel(struct warden_call *c)
{
	struct warden_link *w = c->link;

	if (!w)
		return;
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	else
		w->last = c->prev;
	w->n_calls--;
	c->link = NULL;
	timer_stop(&c->deadline);
	close_fds(c->fds, c->n_fds);
}

static void fail_call(struct warden_call *c, const struct err *err)
{
	warden_call_cancel(c);
	c->on_done(c, NULL, NULL, 0, err);
}

static void broken(struct warden_link *w, const struct err *why)
{
	struct err err = *why;

	if (w->broken || w->closed)
		return;
	w->broken = true;
	watch_close(&w->ready);
	w->held++;
	while (!w->closed && w->first)
		fail_call(w->first, &err);
	if (!w->closed)
		w->user->ops->on_gone(w->user, &err);
	release(w);
}

static void on_late(struct timer *t)
{
	struct warden_call *c = CONTAINER_OF(t, struct warden_call, deadline);
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "warden does not answer");
	fail_call(c, &err);
}

static struct warden_call *find_call(const struct warden_link *w, uint64_t tag)
{
	for (struct warden_call *c = w->first; c; c = c->next)
		if (c->sent && c->request.tag == tag)
			return c;
	return NULL;
}

/* A reply to a call that was given up has nobody; its descriptors are closed by the caller. */
static void deliver(struct warden_link *w, struct warden_reply *reply, int *fds, size_t n_fds)
{
	struct warden_call *c = find_call(w, reply->tag);
	struct err err;

	if (!c)
		return;
	warden_call_cancel(c);
	if (reply->code == ERR_NONE) {
		c->on_done(c, reply, fds, n_fds, NULL);
		return;
	}
	reply->msg[sizeof(reply->msg) - 1] = '\0';
	err = (struct err){ .code = reply->code < ERR_CODES ? (enum err_code)reply->code
							    : ERR_INTERNAL,
			    .sys = reply->sys };
	snprintf(err.msg, sizeof(err.msg), "%s", reply->msg);
	c->on_done(c, NULL, NULL, 0, &err);
}

/* False when there is nothing more now, or the link is over. */
static bool receive_one(struct warden_link *w)
{
	struct warden_reply reply;
	int fds[WARDEN_FDS_MAX];
	size_t n = 0;
	struct err err = { 0 };

	if (fdmsg_recv(w->sock, &reply, sizeof(reply), fds, WARDEN_FDS_MAX, &n, &err) < 0) {
		if (err.sys != EAGAIN && err.sys != EINTR) {
			err.code = ERR_UNAVAILABLE;
			err_wrap(&err, "warden");
			broken(w, &err);
		}
		return false;
	}
	deliver(w, &reply, fds, n);
	close_fds(fds, n);
	return !w->closed && !w->broken;
}

static bool send_one(struct warden_link *w, struct warden_call *c, struct err *err)
{
	if (fdmsg_send(w->sock, &c->request, sizeof(c->request), c->fds, c->n_fds, err) < 0)
		return false;
	c->sent = true;
	close_fds(c->fds, c->n_fds);
	c->n_fds = 0;
	return true;
}

/* What was not sent yet, as far as warden takes it. */
static void send_more(struct warden_link *w)
{
	struct err err = { 0 };

	for (struct warden_call *c = w->first; c; c = c->next)
		if (!c->sent && !send_one(w, c, &err)) {
			if (err.sys != EAGAIN && err.sys != EINTR) {
				err_wrap(&err, "warden");
				broken(w, &err);
			}
			return;
		}
	watch_set(&w->ready, WATCH_READ);
}

static void on_ready(struct watch *ready, unsigned int events)
{
	struct warden_link *w = CONTAINER_OF(ready, struct warden_link, ready);
	size_t n = 0;

	w->held++;
	while (n++ < WARDEN_REPLIES_BATCH && receive_one(w))
		;
	if (!w->closed && !w->broken && (events & (WATCH_WRITE | WATCH_ERROR)))
		send_more(w);
	release(w);
}

static void enqueue(struct warden_link *w, struct warden_call *c)
{
	c->link = w;
	c->next = NULL;
	c->prev = w->last;
	*w->last = c;
	w->last = &c->next;
	w->n_calls++;
}

int warden_link_call(struct warden_link *w, struct warden_call *c,
		     const struct warden_request *request, const int *fds, size_t n_fds,
		     uint64_t deadline_ms,
		     void (*on_done)(struct warden_call *c, const struct warden_reply *reply,
				     int *fds, size_t n_fds, const struct err *err),
		     struct err *err)
{
	bool waiting = w->first && !CONTAINER_OF(w->last, struct warden_call, next)->sent;

	assert(!c->link && n_fds <= WARDEN_FDS_MAX && deadline_ms > 0);
	*c = (struct warden_call){ .on_done = on_done, .request = *request, .n_fds = n_fds };
	if (n_fds > 0)
		memcpy(c->fds, fds, n_fds * sizeof(int));
	c->request.version = WARDEN_VERSION;
	c->request.tag = w->next_tag++;
	if (w->broken || w->n_calls == WARDEN_CALLS_MAX) {
		close_fds(c->fds, n_fds);
		return w->broken ? err_set(err, ERR_UNAVAILABLE, 0, "warden is gone")
				 : err_set(err, ERR_EXHAUSTED, 0, "%d requests wait already",
					   WARDEN_CALLS_MAX);
	}
	enqueue(w, c);
	timer_init(&c->deadline, w->loop, on_late);
	timer_start(&c->deadline, deadline_ms);
	/* a failure shows when the socket is ready: no callback comes from inside a call */
	if (waiting || !send_one(w, c, &(struct err){ 0 }))
		watch_set(&w->ready, WATCH_READ | WATCH_WRITE);
	return 0;
}

static int connect_to(const char *path, struct err *err)
{
	AUTO(auto_close)
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct addr at;

	if (sock < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a socket");
	if (addr_unix(path, &at, err) < 0)
		return -1;
	/* SAFETY: sockaddr_storage is made to be seen as sockaddr */
	if (connect(sock, (const struct sockaddr *)&at.at, at.len) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "connect to warden at %s", path);
	return take_fd(&sock);
}

int warden_link_open(struct loop *l, const char *path, struct warden_link_user *u,
		     struct warden_link **ret, struct err *err)
{
	AUTO(auto_free) struct warden_link *w = calloc(1, sizeof(*w));
	AUTO(auto_close) int sock = connect_to(path, err);

	if (!w)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate the link to warden");
	if (sock < 0 || watch_open(&w->ready, l, sock, WATCH_READ, on_ready, err) < 0)
		return -1;
	w->user = u;
	w->loop = l;
	w->last = &w->first;
	w->next_tag = 1;
	w->sock = take_fd(&sock);
	*ret = TAKE(w);
	return 0;
}

void warden_link_hang_up(struct warden_link *w)
{
	shutdown(w->sock, SHUT_RDWR); /* fails only where it is over already */
}

void warden_link_close(struct warden_link *w)
{
	if (!w)
		return;
	assert(!w->closed);
	w->closed = true;
	while (w->first)
		warden_call_cancel(w->first);
	watch_close(&w->ready);
	close(take_fd(&w->sock));
	w->held++;
	release(w);
}
