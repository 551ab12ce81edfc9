/* egress_keep.c - messages out in order, replies in by tag, and the same again after a loss. */
/* #syscalls: socket connect shutdown close */
#include "node/egress_keep.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/log.h"
#include "jail/fdmsg.h"
#include "net/addr.h"

struct egress_message { /* kept until it is answered */
	struct egress_request request;
	int fds[EGRESS_DOORS];
	size_t n_fds;
	struct egress_call *call; /* NULL: nobody waits */
	struct egress_message *next;
};

static void connect_now(struct egress_keep *k);

bool egress_exists(const struct egress_keep *k)
{
	return k->path[0] != '\0';
}

static void message_free(struct egress_message *m)
{
	for (size_t i = 0; i < m->n_fds; i++)
		close(m->fds[i]);
	if (m->call)
		m->call->message = NULL;
	free(m);
}

/* Off the list, freed; who waits is told. */
static void finish(struct egress_keep *k, struct egress_message **at, int came,
		   const struct err *err)
{
	AUTO(auto_close) int fd = came;
	struct egress_message *m = *at;
	struct egress_call *c = m->call;

	if (k->unsent == m)
		k->unsent = m->next;
	*at = m->next;
	if (k->last == &m->next)
		k->last = at;
	k->n_messages--;
	message_free(m);
	if (!c || !c->on_done)
		return;
	c->came = &fd;
	c->on_done(c, err);
}

/* The message with that tag, which was sent; nearly always the first. */
static struct egress_message **find(struct egress_keep *k, uint64_t tag)
{
	for (struct egress_message **at = &k->first; *at && *at != k->unsent; at = &(*at)->next)
		if ((*at)->request.tag == tag)
			return at;
	return NULL;
}

static void broken(struct egress_keep *k, const struct err *why)
{
	struct err err = *why;
	bool was_up = k->up;

	err.code = ERR_UNAVAILABLE;
	err_wrap(&err, "egress");
	log_warn("%s", err.msg);
	watch_close(&k->ready);
	close(take_fd(&k->sock));
	timer_stop(&k->late);
	k->up = false;
	k->hello.on_done = NULL;
	while (k->first)
		finish(k, &k->first, -1, &err);
	timer_start(&k->retry, EGRESS_RETRY_MS);
	if (!was_up)
		return;
	k->down_since_ms = loop_now_ms(k->loop);
	k->ops->on_down(k);
}

/* False when there is nothing more now, or the connection is over. */
static bool receive_one(struct egress_keep *k)
{
	struct egress_message **at;
	struct egress_reply r;
	struct err err = { 0 }, refused;
	int came = -1;
	size_t n = 0;

	if (fdmsg_recv(k->sock, &r, sizeof(r), &came, 1, &n, &err) < 0) {
		if (err.sys != EAGAIN && err.sys != EINTR)
			broken(k, &err);
		return false;
	}
	at = find(k, r.tag);
	if (!at) {
		err_set(&err, ERR_INTERNAL, 0, "an answer that nobody asked for");
		auto_close(&came);
		broken(k, &err);
		return false;
	}
	r.msg[sizeof(r.msg) - 1] = '\0';
	if (r.code != ERR_NONE)
		err_set(&refused, r.code < ERR_CODES ? (enum err_code)r.code : ERR_INTERNAL, 0,
			"egress: %s", r.msg);
	finish(k, at, came, r.code == ERR_NONE ? NULL : &refused);
	if (k->sock < 0)
		return false;
	timer_stop(&k->late);
	if (k->first && k->first != k->unsent)
		timer_start(&k->late, EGRESS_CALL_MS);
	return true;
}

static void send_more(struct egress_keep *k)
{
	struct err err = { 0 };

	while (k->unsent) {
		struct egress_message *m = k->unsent;

		if (fdmsg_send(k->sock, &m->request, sizeof(m->request), m->fds, m->n_fds, &err) <
		    0) {
			if (err.sys == EAGAIN || err.sys == EINTR)
				watch_set(&k->ready, WATCH_READ | WATCH_WRITE);
			else
				broken(k, &err);
			return;
		}
		while (m->n_fds > 0)
			close(m->fds[--m->n_fds]);
		k->unsent = m->next;
		if (!k->late.active)
			timer_start(&k->late, EGRESS_CALL_MS);
	}
	watch_set(&k->ready, WATCH_READ);
}

static void on_ready(struct watch *w, unsigned int events)
{
	struct egress_keep *k = CONTAINER_OF(w, struct egress_keep, ready);

	while (receive_one(k))
		;
	if (k->sock >= 0 && (events & (WATCH_WRITE | WATCH_ERROR)))
		send_more(k);
}

static void on_late(struct timer *t)
{
	struct egress_keep *k = CONTAINER_OF(t, struct egress_keep, late);
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "no answer in %d ms", EGRESS_CALL_MS);
	broken(k, &err);
}

static int enqueue(struct egress_keep *k, const struct egress_request *rq, const int *fds,
		   size_t n_fds, struct egress_call *c, struct err *err)
{
	struct egress_message *m = k->n_messages < EGRESS_QUEUE_MAX ? calloc(1, sizeof(*m)) : NULL;

	if (!m) {
		for (size_t i = 0; i < n_fds; i++)
			close(fds[i]);
		return err_set(err, ERR_EXHAUSTED, 0, "too many messages to egress");
	}
	m->request = *rq;
	m->request.version = EGRESS_VERSION;
	m->request.tag = k->next_tag++;
	m->n_fds = n_fds;
	for (size_t i = 0; i < n_fds; i++)
		m->fds[i] = fds[i];
	m->call = c;
	if (c)
		c->message = m;
	*k->last = m;
	k->last = &m->next;
	k->n_messages++;
	if (!k->unsent)
		k->unsent = m;
	/* sent from the loop: no callback comes from inside a call */
	watch_set(&k->ready, WATCH_READ | WATCH_WRITE);
	return 0;
}

int egress_ask(struct egress_keep *k, struct egress_call *c, const struct egress_asked *what,
	       void (*on_done)(struct egress_call *c, const struct err *err), struct err *err)
{
	const struct egress_request rq = { .verb = what->verb, .slot = what->slot };

	assert(!c->message);
	if (!k->up || k->sock < 0) {
		for (size_t i = 0; i < what->n_fds; i++)
			close(what->fds[i]);
		return err_set(err, ERR_UNAVAILABLE, 0, "egress is gone");
	}
	c->on_done = on_done;
	return enqueue(k, &rq, what->fds, what->n_fds, c, err);
}

void egress_call_cancel(struct egress_call *c)
{
	if (c->message)
		c->message->call = NULL;
	c->message = NULL;
}

static void tell(struct egress_keep *k, const struct egress_request *rq)
{
	struct err err;

	if (k->up && k->sock >= 0 && enqueue(k, rq, NULL, 0, NULL, &err) < 0)
		log_error("%s", err.msg);
}

void egress_close_doors(struct egress_keep *k, uint32_t slot)
{
	tell(k, &(struct egress_request){ .verb = EGRESS_CLOSE, .slot = slot });
}

void egress_name(struct egress_keep *k, uint32_t slot, const char *id)
{
	struct egress_request rq = { .verb = EGRESS_NAME, .slot = slot };

	snprintf(rq.id, sizeof(rq.id), "%s", id);
	tell(k, &rq);
}

/* --- the connection ----------------------------------------------------------------------- */

static void on_reset(struct egress_call *c, const struct err *err)
{
	struct egress_keep *k = CONTAINER_OF(c, struct egress_keep, hello);

	if (err) {
		log_warn("%s", err->msg);
		shutdown(k->sock, SHUT_RDWR); /* seen by the watch */
		return;
	}
	k->up = true;
	k->told = false;
	log_info("egress is up");
	k->ops->on_up(k);
}

static int open_socket(struct egress_keep *k, struct err *err)
{
	AUTO(auto_close)
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct addr at;

	if (sock < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a socket");
	if (addr_unix(k->path, &at, err) < 0)
		return -1;
	/* SAFETY: sockaddr_storage is made to be seen as sockaddr */
	if (connect(sock, (const struct sockaddr *)&at.at, at.len) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "connect to egress at %s", k->path);
	if (watch_open(&k->ready, k->loop, sock, WATCH_READ, on_ready, err) < 0)
		return -1;
	k->sock = take_fd(&sock);
	return 0;
}

static void connect_now(struct egress_keep *k)
{
	struct err err;

	if (open_socket(k, &err) == 0) {
		k->hello.on_done = on_reset;
		if (enqueue(k, &(struct egress_request){ .verb = EGRESS_RESET }, NULL, 0, &k->hello,
			    &err) < 0)
			broken(k, &err);
		return;
	}
	if (!k->told)
		log_warn("%s; tried again every %d ms", err.msg, EGRESS_RETRY_MS);
	k->told = true;
	timer_start(&k->retry, EGRESS_RETRY_MS);
}

static void on_retry(struct timer *t)
{
	struct egress_keep *k = CONTAINER_OF(t, struct egress_keep, retry);

	if (egress_exists(k)) {
		connect_now(k);
		return;
	}
	k->up = true;
	k->ops->on_up(k);
}

void egress_keep_open(struct egress_keep *k, struct loop *l, const char *path,
		      const struct egress_keep_ops *ops)
{
	*k = (struct egress_keep){ .ops = ops, .loop = l, .path = path, .sock = -1, .next_tag = 1 };
	k->last = &k->first;
	k->down_since_ms = loop_now_ms(l);
	timer_init(&k->retry, l, on_retry);
	timer_init(&k->late, l, on_late);
	timer_start(&k->retry, 0);
}

void egress_keep_close(struct egress_keep *k)
{
	k->up = false;
	timer_stop(&k->retry);
	timer_stop(&k->late);
	watch_close(&k->ready);
	while (k->first) {
		k->first->call = NULL;
		finish(k, &k->first, -1, NULL);
	}
	if (k->sock >= 0)
		close(take_fd(&k->sock));
}
