/* node_link.c - requests out in order, replies in by tag, and a connection that comes back. */
/* #syscalls: socket connect setsockopt close */
#include "gateway/node_link.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "gateway/node_reply.h"
#include "base/fdmsg.h"
#include "net/addr.h"

enum {
	SENT_LISTS = 1024,                  /* a power of 2 */
	LINK_KERNEL_ROOM = 4 * 1024 * 1024, /* wished for, in bytes; the kernel may give less */
};

/* A call is in exactly one list: it waits to be sent, or for its reply, or to be told of failure.
 */
struct node_link {
	struct node_link_user *user;
	struct loop *loop;
	struct addr at;
	int sock; /* -1: node is not there */
	struct watch ready;
	struct timer retry;
	uint64_t next_tag;
	struct node_call *waiting, **last;
	struct node_call *sent[SENT_LISTS];
	struct node_call *failing;
	size_t n_calls, n_give_ups;
	unsigned int held; /* by callbacks that run now */
	bool closed;
	struct {
		struct node_reply reply;
		uint8_t after[NODE_MESSAGE_MAX - sizeof(struct node_reply)];
	} in;
};

struct give_up { /* node is told that nobody waits for a request any more */
	struct node_call call;
	struct node_link *link;
};

static void release(struct node_link *n)
{
	if (--n->held == 0 && n->closed)
		free(n);
}

static void list_add(struct node_call *c, struct node_call **list)
{
	c->next = *list;
	c->prev = list;
	if (c->next)
		c->next->prev = &c->next;
	*list = c;
}

static void list_remove(struct node_link *n, struct node_call *c)
{
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	else if (n->last == &c->next)
		n->last = c->prev;
}

/* --- one call ----------------------------------------------------------------------------- */

/* Out of its list: it is over. */
static void detach(struct node_call *c)
{
	struct node_link *n = c->link;

	if (!n)
		return;
	list_remove(n, c);
	n->n_calls--;
	c->link = NULL;
	timer_stop(&c->deadline);
	buf_done(&c->message);
}

static void on_given_up(struct node_call *c, const struct node_reply *reply, struct bytes after,
			int *fds, size_t n_fds, const struct err *err)
{
	struct give_up *g = CONTAINER_OF(c, struct give_up, call);

	(void)reply, (void)after, (void)fds, (void)n_fds;
	if (err)
		log_warn("node was not told that a request was given up: %s", err->msg);
	g->link->n_give_ups--;
	free(g);
}

/* Node may have done it, and nobody hears of it. */
static void give_up(struct node_link *n, struct node_call *c)
{
	struct node_request rq = { .verb = NODE_GIVE_UP };
	struct give_up *g = NULL;
	struct err err;

	if (!c->token[0] || c->n_sends == 0)
		return;
	memcpy(rq.token, c->token, sizeof(rq.token));
	c->token[0] = '\0';
	err_set(&err, ERR_EXHAUSTED, 0, "%zu were", n->n_give_ups);
	if (n->n_give_ups < NODE_GIVE_UPS_MAX)
		g = calloc(1, sizeof(*g));
	if (g && node_link_call(n, &g->call, &rq, (struct bytes){ 0 }, NODE_GIVE_UP_MS, on_given_up,
				&err) == 0) {
		g->link = n;
		n->n_give_ups++;
		return;
	}
	free(g);
	log_warn("node is not told that a request was given up: %s", err.msg);
}

void node_call_cancel(struct node_call *c)
{
	struct node_link *n = c->link;

	detach(c);
	if (n)
		give_up(n, c);
}

static void fail_call(struct node_call *c, const struct err *err)
{
	node_call_cancel(c);
	c->on_done(c, NULL, (struct bytes){ 0 }, NULL, 0, err);
}

static void on_late(struct timer *t)
{
	struct node_call *c = CONTAINER_OF(t, struct node_call, deadline);
	struct err err;

	if (loop_now_ms(c->link->loop) < c->until_ms)
		err_set(&err, ERR_UNAVAILABLE, 0, "node is not there");
	else
		err_set(&err, ERR_TIMEOUT, 0, "node does not answer");
	fail_call(c, &err);
}

static uint64_t left_ms(const struct node_call *c)
{
	uint64_t now = loop_now_ms(c->link->loop);

	return c->until_ms > now ? c->until_ms - now : 0;
}

static void wait_to_be_sent(struct node_link *n, struct node_call *c)
{
	uint64_t left = left_ms(c);

	c->next = NULL;
	c->prev = n->last;
	*n->last = c;
	n->last = &c->next;
	timer_start(&c->deadline,
		    left < NODE_LINK_WAIT_MS || c->patient ? left : NODE_LINK_WAIT_MS);
}

/* What it is sent for the next time. */
static void mark_again(struct node_call *c)
{
	struct node_request rq;

	memcpy(&rq, c->message.ptr, sizeof(rq));
	rq.flags |= NODE_AGAIN;
	memcpy(c->message.ptr, &rq, sizeof(rq));
}

static bool send_one(struct node_link *n, struct node_call *c, struct err *err)
{
	if (fdmsg_send(n->sock, c->message.ptr, c->message.len, NULL, 0, err) < 0)
		return false;
	list_remove(n, c);
	list_add(c, &n->sent[c->tag % SENT_LISTS]);
	timer_start(&c->deadline, left_ms(c));
	c->n_sends++;
	if (c->n_sends == NODE_SENDS_MAX)
		buf_done(&c->message);
	else if (c->token[0])
		mark_again(c);
	return true;
}

/* What was sent is sent again; what was sent too often fails. */
static void recall(struct node_link *n)
{
	for (size_t i = 0; i < SENT_LISTS; i++)
		while (n->sent[i]) {
			struct node_call *c = n->sent[i];

			list_remove(n, c);
			if (c->message.len > 0)
				wait_to_be_sent(n, c);
			else
				list_add(c, &n->failing);
		}
}

static void broken(struct node_link *n, const struct err *why)
{
	struct err err = { .code = ERR_UNAVAILABLE, .sys = why->sys };

	snprintf(err.msg, sizeof(err.msg), "node is gone: %.200s", why->msg);
	log_warn("%s", err.msg);
	watch_close(&n->ready);
	close(take_fd(&n->sock));
	timer_start(&n->retry, NODE_LINK_RETRY_MS);
	recall(n);
	n->held++;
	n->user->ops->on_down(n->user);
	while (!n->closed && n->failing)
		fail_call(n->failing, &err);
	release(n);
}

static bool is_up(const struct node_link *n)
{
	return !n->closed && n->sock >= 0;
}

static struct node_call *find_call(const struct node_link *n, uint64_t tag)
{
	for (struct node_call *c = n->sent[tag % SENT_LISTS]; c; c = c->next)
		if (c->tag == tag)
			return c;
	return NULL;
}

static void deliver(struct node_link *n, struct node_call *c, size_t len, int *fds, size_t n_fds)
{
	const struct node_reply *r = &n->in.reply;
	struct err err;

	c->token[0] = '\0'; /* it is told */
	if (r->code != ERR_NONE) {
		err = (struct err){ .code = (enum err_code)r->code };
		snprintf(err.msg, sizeof(err.msg), "%s", r->msg);
		node_call_cancel(c);
		c->on_done(c, r, (struct bytes){ 0 }, NULL, 0, &err);
		return;
	}
	node_call_cancel(c);
	c->on_done(c, r, (struct bytes){ n->in.after, len - sizeof(*r) }, fds, n_fds, NULL);
}

/* A reply to a call that was given up has nobody; its descriptors are closed by the caller. */
static void sort(struct node_link *n, size_t len, int *fds, size_t n_fds)
{
	const struct node_reply *r = &n->in.reply;
	struct node_call *c;

	if (r->tag == 0) {
		if (r->event == NODE_GONE)
			n->user->ops->on_gone(n->user, r->sandbox.id, r->sandbox.generation);
		return;
	}
	c = find_call(n, r->tag);
	if (c)
		deliver(n, c, len, fds, n_fds);
}

/* False when there is nothing more now, or the connection is over. */
static bool receive_one(struct node_link *n)
{
	int fds[NODE_FDS_MAX];
	size_t len = 0, n_fds = 0;
	struct err err = { 0 };
	struct node_call *c;

	if (fdmsg_recv_some(n->sock, &n->in, sizeof(n->in.reply), sizeof(n->in), &len, fds,
			    NODE_FDS_MAX, &n_fds, &err) < 0 &&
	    err.code != ERR_EXHAUSTED) {
		if (err.sys != EAGAIN && err.sys != EINTR)
			broken(n, &err);
		return false;
	}
	if (!node_reply_ok(&n->in.reply, len)) {
		err_set(&err, ERR_INVALID, 0, "a reply of %zu bytes makes no sense", len);
		broken(n, &err);
	} else if (err.code == ERR_NONE) {
		sort(n, len, fds, n_fds);
	} else { /* it came without its descriptors: only this call suffers */
		c = find_call(n, n->in.reply.tag);
		if (c)
			fail_call(c, &err);
	}
	for (size_t i = 0; i < n_fds; i++)
		auto_close(&fds[i]);
	return is_up(n);
}

/* What was not sent yet, as far as node takes it. */
static void send_more(struct node_link *n)
{
	struct err err = { 0 };

	while (n->waiting && send_one(n, n->waiting, &err))
		;
	if (!n->waiting)
		watch_set(&n->ready, WATCH_READ);
	else if (err.sys == EAGAIN || err.sys == EINTR)
		watch_set(&n->ready, WATCH_READ | WATCH_WRITE);
	else
		broken(n, &err);
}

static void on_ready(struct watch *ready, unsigned int events)
{
	struct node_link *n = CONTAINER_OF(ready, struct node_link, ready);
	size_t taken = 0;

	n->held++;
	while (taken++ < NODE_REPLIES_BATCH && receive_one(n))
		;
	if (is_up(n) && (events & (WATCH_WRITE | WATCH_ERROR)))
		send_more(n);
	release(n);
}

static int connect_to(const struct addr *at, struct err *err)
{
	AUTO(auto_close)
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int room = LINK_KERNEL_ROOM;

	if (sock < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a socket");
	(void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	/* SAFETY: sockaddr_storage is made to be seen as sockaddr */
	if (connect(sock, (const struct sockaddr *)&at->at, at->len) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "connect to node");
	return take_fd(&sock);
}

static void on_retry(struct timer *t)
{
	struct node_link *n = CONTAINER_OF(t, struct node_link, retry);
	struct err err = { 0 };
	AUTO(auto_close) int sock = connect_to(&n->at, &err);

	if (sock < 0 || watch_open(&n->ready, n->loop, sock, WATCH_READ, on_ready, &err) < 0) {
		log_debug("%s: %s", err.msg, strerror(err.sys));
		timer_start(&n->retry, NODE_LINK_RETRY_MS);
		return;
	}
	n->sock = take_fd(&sock);
	log_info("node is there");
	n->held++;
	n->user->ops->on_up(n->user);
	if (is_up(n))
		send_more(n);
	release(n);
}

static int write_message(struct node_call *c, const struct node_request *request, struct bytes text,
			 uint64_t deadline_ms, struct err *err)
{
	struct node_request rq = *request;

	if (text.len > NODE_TEXT_MAX)
		return err_set(err, ERR_INVALID, 0, "a text of %zu bytes, at most %d", text.len,
			       NODE_TEXT_MAX);
	rq.version = NODE_VERSION;
	rq.tag = c->tag;
	rq.deadline_ns = clock_boot_ns() + deadline_ms * NSEC_PER_MSEC;
	if (rq.verb == NODE_CREATE || rq.verb == NODE_FORK || rq.verb == NODE_SNAPSHOT) {
		random_name(rq.token, NODE_TOKEN_LENGTH);
		memcpy(c->token, rq.token, sizeof(c->token));
	}
	rq.text_len = (uint32_t)text.len;
	if (buf_add(&c->message, (struct bytes){ (const uint8_t *)&rq, sizeof(rq) }, err) < 0)
		return -1;
	if (buf_add(&c->message, text, err) < 0) {
		buf_done(&c->message);
		return -1;
	}
	return 0;
}

int node_link_call(struct node_link *n, struct node_call *c, const struct node_request *rq,
		   struct bytes text, uint64_t deadline_ms,
		   void (*on_done)(struct node_call *c, const struct node_reply *reply,
				   struct bytes after, int *fds, size_t n_fds,
				   const struct err *err),
		   struct err *err)
{
	bool first = !n->waiting;

	assert(!c->link && deadline_ms > 0);
	if (n->n_calls == NODE_CALLS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%d requests wait already", NODE_CALLS_MAX);
	*c = (struct node_call){ .on_done = on_done,
				 .tag = n->next_tag++,
				 .message = BUF_MAX(sizeof(*rq) + NODE_TEXT_MAX) };
	if (write_message(c, rq, text, deadline_ms, err) < 0)
		return -1;
	c->link = n;
	c->patient = rq->verb == NODE_GIVE_UP;
	c->until_ms = loop_now_ms(n->loop) + deadline_ms;
	n->n_calls++;
	timer_init(&c->deadline, n->loop, on_late);
	wait_to_be_sent(n, c);
	/* a failure shows when the socket is ready: no callback comes from inside a call */
	if (n->sock >= 0 && first && !send_one(n, c, &(struct err){ 0 }))
		watch_set(&n->ready, WATCH_READ | WATCH_WRITE);
	return 0;
}

int node_link_open(struct loop *l, const char *path, struct node_link_user *u,
		   struct node_link **ret, struct err *err)
{
	AUTO(auto_free) struct node_link *n = calloc(1, sizeof(*n));

	if (!n)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate the link to node");
	if (addr_unix(path, &n->at, err) < 0)
		return err_wrap(err, "socket of node");
	n->user = u;
	n->loop = l;
	n->sock = -1;
	n->last = &n->waiting;
	n->next_tag = 1;
	timer_init(&n->retry, l, on_retry);
	timer_start(&n->retry, 0);
	*ret = TAKE(n);
	return 0;
}

static void cancel_all(struct node_call **list)
{
	struct node_call *c;

	while ((c = *list)) {
		detach(c);
		if (c->on_done == on_given_up)
			free(CONTAINER_OF(c, struct give_up, call));
	}
}

void node_link_close(struct node_link *n)
{
	if (!n)
		return;
	assert(!n->closed);
	n->closed = true;
	cancel_all(&n->waiting);
	cancel_all(&n->failing);
	for (size_t i = 0; i < SENT_LISTS; i++)
		cancel_all(&n->sent[i]);
	timer_stop(&n->retry);
	watch_close(&n->ready);
	auto_close(&n->sock);
	n->held++;
	release(n);
}
