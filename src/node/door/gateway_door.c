/* gateway_door.c - known peers, checked requests, answers that never wait for who does not read. */
/* #syscalls: socket bind listen connect accept4 lchown chmod unlink getsockopt setsockopt close
 *	fstat pread64 */
#include "node/door/gateway_door.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/link_hello.h"
#include "base/log.h"
#include "base/fdmsg.h"
#include "base/memory_file.h"
#include "net/addr.h"
#include "net/timer.h"
#include "net/watch.h"
#include "node/door/reply_queue.h"
#include "node/door/request_check.h"

enum {
	DOOR_BACKLOG = 64,
	DOOR_BATCH = 16,             /* requests taken, or gateways let in, per turn of the loop */
	DOOR_REST_MS = 100,          /* out of descriptors: try again after this */
	DOOR_LEFT_MAX = 16384,       /* requests without an answer whose gateway is gone */
	DOOR_QUEUE_LOW = 256 * 1024, /* with more unread it may not ask for more */
	DOOR_KERNEL_ROOM = 4 * 1024 * 1024, /* wished for, in bytes; the kernel may give less */
	DOOR_REQUEST_MAX = sizeof(struct node_request) + NODE_TEXT_MAX,
};

struct caller { /* one gateway */
	struct gateway_door *door;
	int sock;
	struct watch ready;
	struct reply_queue out;
	struct door_asked *asked;
	size_t n_asked;
	bool busy, gone; /* in on_ready; freed at its end */
	bool greeted;    /* its hello was answered: nothing is sent to it before */
	struct caller *next, **prev;
};

struct door_asked {
	struct gateway_door *door;
	struct caller *from; /* NULL: it has gone */
	uint64_t tag;
	uint32_t verb;
	char request[NODE_REQUEST_MAX + 1]; /* "": nobody looks for it in the log */
	bool given_up;
	struct door_watch *watch;        /* NULL: nobody's */
	struct door_asked *next, **prev; /* of its caller, or of those left behind */
};

struct gateway_door {
	struct loop *loop;
	struct door_user *user;
	uid_t uid;
	int sock;
	struct watch ready;
	struct timer rest;
	struct caller *callers;
	size_t n_callers;
	struct door_asked *left; /* by gateways that have gone */
	size_t n_left;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	uint8_t in[DOOR_REQUEST_MAX];
};

static void asked_link(struct door_asked *a, struct door_asked **list)
{
	a->next = *list;
	a->prev = list;
	if (a->next)
		a->next->prev = &a->next;
	*list = a;
}

static void asked_unlink(struct door_asked *a)
{
	*a->prev = a->next;
	if (a->next)
		a->next->prev = a->prev;
}

/* What it asked for goes on; nobody hears the answer. */
static void leave_behind(struct caller *c)
{
	while (c->asked) {
		struct door_asked *a = c->asked;

		asked_unlink(a);
		a->from = NULL;
		asked_link(a, &c->door->left);
		c->door->n_left++;
		if (a->watch)
			a->watch->ops->on_left(a->watch);
	}
	c->n_asked = 0;
}

static void drop(struct caller *c)
{
	if (c->gone)
		return;
	c->gone = true;
	leave_behind(c);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->door->n_callers--;
	watch_close(&c->ready);
	close(c->sock);
	reply_queue_done(&c->out);
	if (!c->busy)
		free(c);
}

static bool may_ask(const struct caller *c)
{
	return c->n_asked < DOOR_ASKED_MAX && c->out.bytes < DOOR_QUEUE_LOW;
}

/* One that may not ask now is watched for its end only. */
static void update_interest(struct caller *c)
{
	unsigned int events = may_ask(c) ? WATCH_READ : WATCH_HUP;

	if (c->out.first)
		events |= WATCH_WRITE;
	watch_set(&c->ready, events);
}

/* False: it was dropped. */
static bool tell(struct caller *c, const struct node_reply *r, struct bytes after, const int *fds,
		 size_t n_fds)
{
	struct err err = { 0 };

	if (reply_queue_send(&c->out, c->sock, r, after, fds, n_fds, &err) < 0) {
		log_warn("a gateway was dropped: %s", err.msg);
		drop(c);
		return false;
	}
	update_interest(c);
	return true;
}

static void tell_error(struct caller *c, uint64_t tag, const struct err *err)
{
	struct node_reply r = { .tag = tag, .code = err->code };

	memcpy(r.msg, err->msg, sizeof(r.msg));
	r.msg[sizeof(r.msg) - 1] = '\0';
	tell(c, &r, (struct bytes){ 0 }, NULL, 0);
}

/* A client is told the same. */
static void say_refused(const struct door_asked *a, const struct node_reply *r)
{
	if (r->code != ERR_NONE && a->request[0])
		log_info("%s refused, %s: %s; request=%s", node_verb_name(a->verb),
			 err_name((enum err_code)r->code), r->msg, a->request);
}

void door_answer(struct door_asked *a, const struct node_reply *r, struct bytes after,
		 const int *fds, size_t n_fds)
{
	struct caller *c = a->from;
	struct door_watch *watch = a->watch;
	struct node_reply tagged = *r;
	bool told = false;

	tagged.tag = a->tag;
	say_refused(a, r);
	asked_unlink(a);
	if (c)
		c->n_asked--;
	else
		a->door->n_left--;
	free(a);
	if (c)
		told = tell(c, &tagged, after, fds, n_fds);
	else
		for (size_t i = 0; i < n_fds; i++)
			close(fds[i]);
	if (watch)
		watch->ops->on_answered(watch, r, after, told);
}

void door_set_watch(struct door_asked *a, struct door_watch *w)
{
	a->watch = w;
}

bool door_is_here(const struct door_asked *a)
{
	return a->from != NULL;
}

void door_give_up(struct door_asked *a)
{
	a->given_up = true;
}

bool door_wanted(const struct door_asked *a)
{
	return !a->given_up;
}

void door_refuse(struct door_asked *a, const struct err *err)
{
	struct node_reply r = { .code = err->code };

	assert(err->code != ERR_NONE);
	memcpy(r.msg, err->msg, sizeof(r.msg));
	r.msg[sizeof(r.msg) - 1] = '\0';
	door_answer(a, &r, (struct bytes){ 0 }, NULL, 0);
}

void door_tell_gone(struct gateway_door *d, const char *id, uint32_t generation)
{
	struct node_reply r = { .event = NODE_GONE };
	struct caller *next;

	snprintf(r.sandbox.id, sizeof(r.sandbox.id), "%s", id);
	r.sandbox.generation = generation;
	for (struct caller *c = d->callers; c; c = next) {
		next = c->next;
		if (c->greeted)
			tell(c, &r, (struct bytes){ 0 }, NULL, 0);
	}
}

/* In a file in memory. */
static int read_text(int file, struct buf *room, struct bytes *text, struct err *err)
{
	if (file < 0)
		return 0;
	if (text->len > 0)
		return err_set(err, ERR_INVALID, 0, "two texts");
	if (memory_file_read(file, room, err) < 0)
		return -1;
	if (memchr(room->ptr, '\0', room->len))
		return err_set(err, ERR_INVALID, 0, "a text with a NUL");
	*text = buf_view(room);
	return 0;
}

static void take_request(struct caller *c, struct bytes in, int file)
{
	AUTO(buf_done) struct buf room = BUF_MAX(NODE_FILE_TEXT_MAX);
	struct node_request rq;
	struct bytes text;
	struct err err = { 0 };
	struct door_asked *a;
	int rc = request_check(in, &rq, &text, &err);

	if (file >= 0 && rq.verb != NODE_BUILD_START) {
		log_warn("a gateway was dropped: a descriptor that nobody wants");
		drop(c);
		return;
	}
	if (rc < 0 || read_text(file, &room, &text, &err) < 0) {
		log_debug("a gateway's request is refused: %s", err.msg);
		if (rq.tag != 0)
			tell_error(c, rq.tag, &err);
		else
			drop(c);
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "no memory for a request");
		tell_error(c, rq.tag, &err);
		return;
	}
	*a = (struct door_asked){ .door = c->door, .from = c, .tag = rq.tag, .verb = rq.verb };
	memcpy(a->request, rq.request, sizeof(a->request));
	asked_link(a, &c->asked);
	c->n_asked++;
	c->door->user->ops->on_request(c->door->user, a, &rq, text);
}

/* False: it has not said it yet, or was dropped. */
static bool greet(struct caller *c)
{
	struct err err = { 0 };

	c->greeted = link_hello_answer(c->sock, NODE_VERSION_MIN, NODE_VERSION_MAX, &err) == 0;
	if (c->greeted || err.sys == EAGAIN || err.sys == EINTR)
		return c->greeted;
	log_debug("a gateway was dropped: %s", err.msg);
	drop(c);
	return false;
}

/* False when there is nothing more now, or the gateway is gone. */
static bool receive_one(struct caller *c)
{
	struct gateway_door *d = c->door;
	struct err err = { 0 };
	AUTO(auto_close) int file = -1;
	size_t len = 0, n = 0;

	if (!c->greeted)
		return greet(c);
	if (fdmsg_recv_some(c->sock, d->in, 1, sizeof(d->in), &len, &file, 1, &n, &err) < 0) {
		if (err.sys == EAGAIN || err.sys == EINTR)
			return false;
		if (err.code != ERR_UNAVAILABLE)
			log_warn("a gateway was dropped: %s", err.msg);
		drop(c);
		return false;
	}
	take_request(c, (struct bytes){ d->in, len }, file);
	return !c->gone && may_ask(c);
}

static void on_ready(struct watch *ready, unsigned int events)
{
	struct caller *c = CONTAINER_OF(ready, struct caller, ready);
	struct err err = { 0 };

	c->busy = true;
	if (reply_queue_flush(&c->out, c->sock, &err) < 0 || (events & (WATCH_HUP | WATCH_ERROR)))
		drop(c);
	for (int i = 0; i < DOOR_BATCH && !c->gone && (events & WATCH_READ); i++)
		if (!receive_one(c))
			break;
	c->busy = false;
	if (c->gone)
		free(c);
	else
		update_interest(c);
}

static bool may_enter(const struct gateway_door *d, int sock)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	if (peer.uid != 0 && peer.uid != d->uid) {
		log_warn("user %u is no gateway and was turned away", peer.uid);
		return false;
	}
	if (d->n_callers == DOOR_GATEWAYS_MAX || d->n_left >= DOOR_LEFT_MAX) {
		log_warn("a gateway was turned away: %zu are here, %zu requests were left behind",
			 d->n_callers, d->n_left);
		return false;
	}
	return true;
}

static void let_in(struct gateway_door *d, int fd)
{
	AUTO(auto_close) int sock = fd;
	AUTO(auto_free) struct caller *c = calloc(1, sizeof(*c));
	const int room = DOOR_KERNEL_ROOM;
	struct err err = { 0 };

	if (!c || !may_enter(d, sock) ||
	    watch_open(&c->ready, d->loop, sock, WATCH_READ, on_ready, &err) < 0)
		return;
	/* a busy gateway may have many answers waiting before it is scheduled again */
	(void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	c->door = d;
	c->sock = take_fd(&sock);
	c->next = d->callers;
	c->prev = &d->callers;
	if (c->next)
		c->next->prev = &c->next;
	d->callers = TAKE(c);
	d->n_callers++;
}

static void on_rested(struct timer *t)
{
	watch_set(&CONTAINER_OF(t, struct gateway_door, rest)->ready, WATCH_READ);
}

static void on_knock(struct watch *ready, unsigned int events)
{
	struct gateway_door *d = CONTAINER_OF(ready, struct gateway_door, ready);

	(void)events;
	for (int i = 0; i < DOOR_BATCH; i++) {
		int sock = accept4(d->sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (sock >= 0) {
			let_in(d, sock);
			continue;
		}
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			watch_set(&d->ready, 0);
			timer_start(&d->rest, DOOR_REST_MS);
		}
		return;
	}
}

/* What a process that died left there goes: a socket that refuses. Anything else is an error. */
static void remove_stale(const struct addr *at, const char *path)
{
	AUTO(auto_close)
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (sock >= 0 && connect(sock, (const struct sockaddr *)&at->at, at->len) < 0 &&
	    errno == ECONNREFUSED)
		unlink(path);
}

static int listen_at(const char *path, gid_t gid, struct err *err)
{
	AUTO(auto_close)
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct addr at;

	if (sock < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a socket");
	if (addr_unix(path, &at, err) < 0)
		return -1;
	remove_stale(&at, path);
	/* SAFETY: sockaddr_storage is made to be seen as sockaddr */
	if (bind(sock, (const struct sockaddr *)&at.at, at.len) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "bind to %s", path);
	/* before listen(), so that nobody connects under the wrong mode */
	if (lchown(path, (uid_t)-1, gid) < 0 || chmod(path, 0660) < 0)
		return err_set(err, ERR_DENIED, errno, "give %s to group %u", path, gid);
	if (listen(sock, DOOR_BACKLOG) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "listen on %s", path);
	return take_fd(&sock);
}

int door_open(struct loop *l, const char *path, uid_t uid, gid_t gid, struct door_user *u,
	      struct gateway_door **ret, struct err *err)
{
	AUTO(auto_free) struct gateway_door *d = calloc(1, sizeof(*d));
	AUTO(auto_close) int sock = -1;

	if (!d)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate the door");
	sock = listen_at(path, gid, err);
	if (sock < 0 || watch_open(&d->ready, l, sock, WATCH_READ, on_knock, err) < 0)
		return err_wrap(err, "open the door for gateways");
	timer_init(&d->rest, l, on_rested);
	snprintf(d->path, sizeof(d->path), "%s", path);
	d->loop = l;
	d->user = u;
	d->uid = uid;
	d->sock = take_fd(&sock);
	*ret = TAKE(d);
	return 0;
}

void door_close(struct gateway_door *d)
{
	if (!d)
		return;
	timer_stop(&d->rest);
	watch_close(&d->ready);
	close(d->sock);
	unlink(d->path);
	while (d->callers)
		drop(d->callers);
	while (d->left) {
		struct door_asked *a = d->left;

		asked_unlink(a);
		free(a);
	}
	free(d);
}
