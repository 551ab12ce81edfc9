/* daemon_client.c - messages out in order, replies in by tag, and the same again after a loss. */
/* #syscalls: socket connect shutdown close */
#include "node/links/daemon_client.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/fdmsg.h"
#include "net/addr.h"

struct daemon_message { /* kept until it is answered */
	uint64_t tag;
	uint8_t request[DAEMON_WORDS_MAX];
	int fds[DAEMON_FDS_MAX];
	size_t n_fds;
	struct daemon_call *call; /* NULL: nobody waits */
	struct daemon_message *next;
};

static void connect_now(struct daemon_client *k);

bool daemon_exists(const struct daemon_client *k)
{
	return k->path[0] != '\0';
}

static void message_free(struct daemon_message *m)
{
	for (size_t i = 0; i < m->n_fds; i++)
		close(m->fds[i]);
	if (m->call)
		m->call->message = NULL;
	free(m);
}

/* Off the list, freed; who waits is told. */
static void finish(struct daemon_client *k, struct daemon_message **at, int came,
		   const struct err *err)
{
	AUTO(auto_close) int fd = came;
	struct daemon_message *m = *at;
	struct daemon_call *c = m->call;

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
static struct daemon_message **find(struct daemon_client *k, uint64_t tag)
{
	for (struct daemon_message **at = &k->first; *at && *at != k->unsent; at = &(*at)->next)
		if ((*at)->tag == tag)
			return at;
	return NULL;
}

static void broken(struct daemon_client *k, const struct err *why)
{
	struct err err = *why;
	bool was_up = k->up;

	err.code = ERR_UNAVAILABLE;
	err_wrap(&err, "%s", k->words->name);
	log_warn("%s", err.msg);
	watch_close(&k->ready);
	close(take_fd(&k->sock));
	timer_stop(&k->late);
	k->up = false;
	k->hello.on_done = NULL;
	while (k->first)
		finish(k, &k->first, -1, &err);
	timer_start(&k->retry, DAEMON_RETRY_MS);
	if (!was_up)
		return;
	k->down_since_ms = loop_now_ms(k->loop);
	k->ops->on_down(k);
}

static void answered(struct daemon_client *k, struct daemon_message **at, struct bytes reply,
		     enum err_code code, int came)
{
	const struct daemon_words *w = k->words;
	struct err refused;

	if (code == ERR_NONE) {
		finish(k, at, came, NULL);
		return;
	}
	err_set(&refused, code, 0, "%s: %.*s", w->name,
		(int)strnlen((const char *)reply.ptr + w->msg, w->msg_size - 1),
		(const char *)reply.ptr + w->msg);
	finish(k, at, came, &refused);
}

/* Nobody asked for it: news, if this daemon has such. */
static void unasked(struct daemon_client *k, struct bytes reply, uint64_t tag, int came)
{
	struct err err;

	auto_close(&came);
	if (tag == 0 && k->ops->on_unasked) {
		k->ops->on_unasked(k, reply);
		return;
	}
	err_set(&err, ERR_INTERNAL, 0, "an answer that nobody asked for");
	broken(k, &err);
}

/* False when there is nothing more now, or the connection is over. */
static bool receive_one(struct daemon_client *k)
{
	uint8_t raw[DAEMON_WORDS_MAX];
	struct bytes reply = { raw, k->words->reply };
	struct daemon_message **at;
	struct daemon_reply r;
	struct err err = { 0 };
	int came = -1;
	size_t n = 0;

	if (fdmsg_recv(k->sock, raw, k->words->reply, &came, 1, &n, &err) < 0) {
		if (err.sys != EAGAIN && err.sys != EINTR)
			broken(k, &err);
		return false;
	}
	memcpy(&r, raw, sizeof(r));
	at = find(k, r.tag);
	if (at)
		answered(k, at, reply, r.code < ERR_CODES ? (enum err_code)r.code : ERR_INTERNAL,
			 came);
	else
		unasked(k, reply, r.tag, came);
	if (k->sock < 0)
		return false;
	timer_stop(&k->late);
	if (k->first && k->first != k->unsent)
		timer_start(&k->late, DAEMON_CALL_MS);
	return true;
}

static void send_more(struct daemon_client *k)
{
	struct err err = { 0 };

	while (k->unsent) {
		struct daemon_message *m = k->unsent;

		if (fdmsg_send(k->sock, m->request, k->words->request, m->fds, m->n_fds, &err) <
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
			timer_start(&k->late, DAEMON_CALL_MS);
	}
	watch_set(&k->ready, WATCH_READ);
}

static void on_ready(struct watch *w, unsigned int events)
{
	struct daemon_client *k = CONTAINER_OF(w, struct daemon_client, ready);

	while (receive_one(k))
		;
	if (k->sock >= 0 && (events & (WATCH_WRITE | WATCH_ERROR)))
		send_more(k);
}

static void on_late(struct timer *t)
{
	struct daemon_client *k = CONTAINER_OF(t, struct daemon_client, late);
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "no answer in %d ms", DAEMON_CALL_MS);
	broken(k, &err);
}

static int enqueue(struct daemon_client *k, const struct daemon_asked *what, struct daemon_call *c,
		   struct err *err)
{
	struct daemon_message *m = k->n_messages < DAEMON_QUEUE_MAX ? calloc(1, sizeof(*m)) : NULL;

	if (!m) {
		for (size_t i = 0; i < what->n_fds; i++)
			close(what->fds[i]);
		return err_set(err, ERR_EXHAUSTED, 0, "too many messages to %s", k->words->name);
	}
	m->tag = k->next_tag++;
	memcpy(m->request, what->request.ptr, what->request.len);
	memcpy(m->request + offsetof(struct daemon_request, tag), &m->tag, sizeof(m->tag));
	m->n_fds = what->n_fds;
	for (size_t i = 0; i < what->n_fds; i++)
		m->fds[i] = what->fds[i];
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

int daemon_ask(struct daemon_client *k, struct daemon_call *c, const struct daemon_asked *what,
	       void (*on_done)(struct daemon_call *c, const struct err *err), struct err *err)
{
	assert(!c || !c->message);
	assert(what->request.len == k->words->request);
	if (!k->up || k->sock < 0) {
		for (size_t i = 0; i < what->n_fds; i++)
			close(what->fds[i]);
		return err_set(err, ERR_UNAVAILABLE, 0, "%s is gone", k->words->name);
	}
	if (c)
		c->on_done = on_done;
	return enqueue(k, what, c, err);
}

void daemon_call_cancel(struct daemon_call *c)
{
	if (c->message)
		c->message->call = NULL;
	c->message = NULL;
}

/* --- the connection ----------------------------------------------------------------------- */

static void on_reset(struct daemon_call *c, const struct err *err)
{
	struct daemon_client *k = CONTAINER_OF(c, struct daemon_client, hello);

	if (err) {
		log_warn("%s", err->msg);
		shutdown(k->sock, SHUT_RDWR); /* seen by the watch */
		return;
	}
	k->up = true;
	k->told = false;
	log_info("%s is up", k->words->name);
	k->ops->on_up(k);
}

static int open_socket(struct daemon_client *k, struct err *err)
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
		return err_set(err, ERR_UNAVAILABLE, errno, "connect to %s at %s", k->words->name,
			       k->path);
	if (watch_open(&k->ready, k->loop, sock, WATCH_READ, on_ready, err) < 0)
		return -1;
	k->sock = take_fd(&sock);
	return 0;
}

static void connect_now(struct daemon_client *k)
{
	uint8_t raw[DAEMON_WORDS_MAX] = { 0 };
	const struct daemon_asked hello = { .request = { raw, k->words->request } };
	struct err err;

	memcpy(raw, &k->words->hello, sizeof(k->words->hello));
	if (open_socket(k, &err) == 0) {
		k->hello.on_done = on_reset;
		if (enqueue(k, &hello, &k->hello, &err) < 0)
			broken(k, &err);
		return;
	}
	if (!k->told)
		log_warn("%s; tried again every %d ms", err.msg, DAEMON_RETRY_MS);
	k->told = true;
	timer_start(&k->retry, DAEMON_RETRY_MS);
}

static void on_retry(struct timer *t)
{
	struct daemon_client *k = CONTAINER_OF(t, struct daemon_client, retry);

	if (daemon_exists(k)) {
		connect_now(k);
		return;
	}
	k->up = true;
	k->ops->on_up(k);
}

void daemon_client_open(struct daemon_client *k, struct loop *l, const char *path,
			const struct daemon_words *words, const struct daemon_client_ops *ops)
{
	assert(words->request <= DAEMON_WORDS_MAX && words->reply <= DAEMON_WORDS_MAX);
	*k = (struct daemon_client){
		.ops = ops, .words = words, .loop = l, .path = path, .sock = -1, .next_tag = 1
	};
	k->last = &k->first;
	k->down_since_ms = loop_now_ms(l);
	timer_init(&k->retry, l, on_retry);
	timer_init(&k->late, l, on_late);
	timer_start(&k->retry, 0);
}

void daemon_client_close(struct daemon_client *k)
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
