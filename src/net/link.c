/* link.c - requests out in order, replies in by tag, and a connection that comes back. */
/* #syscalls: socket connect setsockopt shutdown close */
#include "net/link.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/log.h"
#include "net/addr.h"

/* --- lists: a call is in exactly one ------------------------------------------------------ */

static void leave_list(struct link *l, struct link_call *c)
{
	if (c->state == LINK_WAITING)
		queue_remove(&l->waiting, c);
	else
		list_remove(c);
	l->n_sent -= c->state == LINK_SENT;
}

static bool is_open(const struct link *l)
{
	return !l->closed && l->sock >= 0;
}

static void release(struct link *l)
{
	if (--l->held > 0 || !l->closed)
		return;
	free(TAKE(l->in));
	if (l->ops->on_free)
		l->ops->on_free(l);
}

bool link_exists(const struct link *l)
{
	return l->path[0] != '\0';
}

int link_why(const struct link *l, struct err *err)
{
	const struct link_words *w = l->words;

	if (l->mismatch)
		return err_set(err, ERR_VERSION, 0,
			       "%s (build %s, protocol %u to %u) and %s (build %s, protocol %u to "
			       "%u) do not understand each other: restart the older one",
			       w->own_name, link_build, w->min, w->max, w->name, l->peer.build,
			       l->peer.min, l->peer.max);
	return err_set(err, ERR_UNAVAILABLE, 0, "%s is gone", w->name);
}

/* --- one call ----------------------------------------------------------------------------- */

static void close_fds(struct link_call *c)
{
	while (c->n_fds > 0)
		close(c->fds[--c->n_fds]);
}

static void set_timer(struct link_call *c)
{
	const uint64_t limits[] = {
		[LINK_WAITING] = c->wait_ms, [LINK_SENT] = c->answer_ms, [LINK_RESTING] = c->busy_ms
	};
	uint64_t now = loop_now_ms(c->link->loop), limit = limits[c->state];
	uint64_t left = c->until_ms > now ? c->until_ms - now : 0;

	timer_stop(&c->timer);
	if (c->until_ms == LINK_EVER)
		left = LINK_EVER;
	if (limit == 0 || limit > left)
		limit = left;
	if (limit != LINK_EVER)
		timer_start(&c->timer, limit);
}

/* Out of its list; what it wanted to say is still there. */
static void detach(struct link_call *c)
{
	struct link *l = c->link;

	leave_list(l, c);
	l->n_calls--;
	c->link = NULL;
	timer_stop(&c->timer);
	close_fds(c);
}

/* It is over; `r` NULL: nobody is told. */
static void finish(struct link_call *c, const struct link_reply *r)
{
	struct link *l = c->link;
	AUTO(auto_free) uint8_t *message = c->message;
	struct bytes request = { message, c->len };
	bool unanswered = c->n_sends > 0 && (!r || r->head.len == 0);
	bool owned = c->owned;

	detach(c);
	if (unanswered && !l->closed && l->ops->on_unanswered)
		l->ops->on_unanswered(l, request);
	c->message = NULL;
	if (r && c->on_done) {
		struct link_reply told = *r;

		told.request = request;
		c->on_done(c, &told);
	}
	if (owned)
		free(c);
}

void link_cancel(struct link_call *c)
{
	if (c->link)
		finish(c, NULL);
}

static void fail_call(struct link_call *c, const struct err *err)
{
	finish(c, &(struct link_reply){ .link = c->link, .err = err });
}

static void send_more(struct link *l);

static void wait_to_be_sent(struct link *l, struct link_call *c)
{
	c->state = LINK_WAITING;
	if (c->first && l->waiting.first)
		list_add(&l->waiting.first, c);
	else
		queue_add(&l->waiting, c);
	set_timer(c);
}

/* Its time is over, or that of the state it is in. */
static void on_time(struct timer *t)
{
	struct link_call *c = CONTAINER_OF(t, struct link_call, timer);
	struct link *l = c->link;
	bool over = loop_now_ms(l->loop) >= c->until_ms;
	struct err err;

	if (c->state == LINK_RESTING && !over) {
		leave_list(l, c);
		wait_to_be_sent(l, c);
		if (is_open(l))
			send_more(l);
		return;
	}
	if (c->state == LINK_SENT || (over && c->wait_ms != LINK_EVER))
		err_set(&err, ERR_TIMEOUT, 0, "%s does not answer", l->words->name);
	else
		link_why(l, &err);
	fail_call(c, &err);
}

/* --- the connection ends ------------------------------------------------------------------ */

static void to_fail(struct link *l, struct link_call *c)
{
	leave_list(l, c);
	c->state = LINK_FAILING;
	list_add(&l->failing, c);
}

static void fail_impatient(struct link *l, struct link_call *list)
{
	list_each(struct link_call, c, list)
		if (c->wait_ms == 0 || (l->mismatch && c->wait_ms != LINK_EVER))
			to_fail(l, c);
}

/* What was sent waits to be sent again, or is to fail; so is what may not wait. */
static void recall(struct link *l)
{
	fail_impatient(l, l->waiting.first);
	fail_impatient(l, l->resting);
	for (size_t i = 0; i < LINK_LISTS; i++)
		while (l->sent[i]) {
			struct link_call *c = l->sent[i];

			if (c->n_sends >= c->sends_max) {
				to_fail(l, c);
				continue;
			}
			leave_list(l, c);
			if (l->ops->on_again)
				l->ops->on_again(c);
			wait_to_be_sent(l, c);
		}
}

static void fail_all(struct link *l, const struct err *err)
{
	while (!l->closed && l->failing)
		fail_call(l->failing, err);
}

/* `why` NULL: they speak no common version. */
static void broken(struct link *l, const struct err *why)
{
	struct err err;
	bool was_up = l->up;

	if (why) {
		err = *why;
		err.code = ERR_UNAVAILABLE;
		err_wrap(&err, "%s", l->words->name);
		if (l->greeted || !l->told_hello)
			log_warn("%s", err.msg);
		l->told_hello = l->told_hello || !l->greeted; /* it may go on like that */
		l->mismatch = false;                          /* whoever that was is gone */
	} else {
		link_why(l, &err);
	}
	watch_close(&l->ready);
	close(take_fd(&l->sock));
	timer_stop(&l->quiet);
	l->up = l->greeted = false;
	timer_start(&l->retry, why ? LINK_RETRY_MS : LINK_MISMATCH_MS);
	recall(l);
	l->held++;
	fail_all(l, &err);
	if (was_up && !l->closed) {
		l->down_since_ms = loop_now_ms(l->loop);
		l->ops->on_down(l);
	}
	release(l);
}

static void broken_by(struct link *l, enum err_code code, const char *what)
{
	struct err err;

	err_set(&err, code, 0, "%s", what);
	broken(l, &err);
}

static void on_quiet(struct timer *t)
{
	struct link *l = CONTAINER_OF(t, struct link, quiet);

	broken_by(l, ERR_TIMEOUT, l->greeted ? "no answer for too long" : "it says no hello");
}

/* --- replies ------------------------------------------------------------------------------ */

static struct link_call *find_call(const struct link *l, uint64_t tag)
{
	for (struct link_call *c = l->sent[tag % LINK_LISTS]; c; c = c->next)
		if (c->tag == tag)
			return c;
	return NULL;
}

static void read_error(const struct link_words *w, struct bytes reply, uint32_t code,
		       struct err *ret)
{
	int len = (int)strnlen((const char *)reply.ptr + w->msg, w->msg_size);

	*ret = (struct err){ .code = code < ERR_CODES ? (enum err_code)code : ERR_INTERNAL };
	if (w->sys > 0)
		memcpy(&ret->sys, reply.ptr + w->sys, sizeof(ret->sys));
	snprintf(ret->msg, sizeof(ret->msg), "%s%s%.*s", w->named ? w->name : "",
		 w->named ? ": " : "", len, (const char *)reply.ptr + w->msg);
}

static void deliver(struct link_call *c, struct link_reply *r, uint32_t code)
{
	struct link *l = c->link;
	struct err err;

	if (code != ERR_NONE) {
		read_error(l->words, r->head, code, &err);
		*r = (struct link_reply){ .link = l, .head = r->head, .err = &err };
	}
	if (code == ERR_UNAVAILABLE && c->busy_ms > 0) {
		leave_list(l, c);
		c->state = LINK_RESTING;
		list_add(&l->resting, c);
		set_timer(c);
		return;
	}
	finish(c, r);
}

/* A reply to a call that was given up has nobody; its descriptors are closed by the caller. */
static void sort(struct link *l, struct link_reply *r, const struct err *without_fds)
{
	struct link_head head;
	struct link_call *c;

	memcpy(&head, r->head.ptr, sizeof(head));
	if (head.tag == 0) {
		if (l->ops->on_unasked)
			l->ops->on_unasked(l, r);
		else
			broken_by(l, ERR_INVALID, "news that it never has");
		return;
	}
	c = find_call(l, head.tag);
	if (c && without_fds) /* only this call suffers */
		fail_call(c, without_fds);
	else if (c && !(head.what == ERR_NONE && l->ops->on_more && l->ops->on_more(c, r)))
		deliver(c, r, head.what);
	else if (!c && head.tag >= l->next_tag)
		broken_by(l, ERR_INVALID, "an answer that nobody asked for");
}

static void take_hello(struct link *l)
{
	const struct link_words *w = l->words;
	struct link_hello own = link_hello_make(w->min, w->max), peer;
	struct err err;

	memcpy(&peer, l->in, sizeof(peer));
	if (!link_hello_ok(&peer)) {
		broken_by(l, ERR_INVALID, "what it said first is no hello");
		return;
	}
	l->peer = peer;
	l->mismatch = !link_hello_version(&own, &peer);
	if (l->mismatch) {
		link_why(l, &err);
		if (memcmp(&l->told_of, &peer, sizeof(peer)) != 0)
			log_error("%s", err.msg);
		l->told_of = peer;
		broken(l, NULL);
		return;
	}
	l->greeted = true;
	timer_stop(&l->quiet);
	if (l->ops->on_hello)
		l->ops->on_hello(l);
	else
		link_up(l);
}

static void take_reply(struct link *l, size_t len, int *fds, size_t n_fds, const struct err *err)
{
	const struct link_words *w = l->words;
	struct bytes all = { l->in, len };
	struct link_reply r = { .link = l,
				.head = bytes_head(all, w->reply_min),
				.after = bytes_tail(all, w->reply_min),
				.fds = fds,
				.n_fds = n_fds };

	if (l->ops->reply_ok && !l->ops->reply_ok(all)) {
		broken_by(l, ERR_INVALID, "a reply that makes no sense");
		return;
	}
	sort(l, &r, err->code == ERR_EXHAUSTED ? err : NULL);
	if (!is_open(l) || !l->greeted || w->silence_ms == 0)
		return;
	timer_stop(&l->quiet);
	if (l->n_sent > 0)
		timer_start(&l->quiet, w->silence_ms);
}

/* False when there is nothing more now, or the connection is over. */
static bool receive_one(struct link *l)
{
	const struct link_words *w = l->words;
	bool hello = !l->greeted;
	size_t len = 0, n_fds = 0;
	int fds[FDMSG_FDS_MAX];
	struct err err = { 0 };

	if (fdmsg_recv_some(l->sock, l->in, hello ? sizeof(struct link_hello) : w->reply_min,
			    hello ? sizeof(struct link_hello) : w->reply_max, &len, fds,
			    hello ? 0 : w->fds_max, &n_fds, &err) < 0 &&
	    (hello || err.code != ERR_EXHAUSTED)) {
		if (err.sys == EAGAIN || err.sys == EINTR)
			return false;
		if (hello)
			err_wrap(&err, "no hello, as of an older build");
		broken(l, &err);
		return false;
	}
	if (hello)
		take_hello(l);
	else
		take_reply(l, len, fds, n_fds, &err);
	for (size_t i = 0; i < n_fds; i++)
		auto_close(&fds[i]);
	return is_open(l);
}

/* --- requests ----------------------------------------------------------------------------- */

static bool may_send(const struct link *l, const struct link_call *c)
{
	return l->greeted && (l->up || c->first) &&
	       (l->words->sent_max == 0 || l->n_sent < l->words->sent_max);
}

static bool send_one(struct link *l, struct link_call *c, struct err *err)
{
	if (fdmsg_send(l->sock, c->message, c->len, c->fds, c->n_fds, err) < 0)
		return false;
	leave_list(l, c);
	c->state = LINK_SENT;
	list_add(&l->sent[c->tag % LINK_LISTS], c);
	l->n_sent++;
	c->n_sends++;
	close_fds(c);
	set_timer(c);
	if (l->words->silence_ms > 0 && !l->quiet.active)
		timer_start(&l->quiet, l->words->silence_ms);
	return true;
}

/* What was not sent yet, as far as the daemon takes it. */
static void send_more(struct link *l)
{
	struct err err = { 0 };

	while (l->waiting.first && may_send(l, l->waiting.first)) {
		if (send_one(l, l->waiting.first, &err))
			continue;
		if (err.sys == EAGAIN || err.sys == EINTR)
			watch_set(&l->ready, WATCH_READ | WATCH_WRITE);
		else
			broken(l, &err);
		return;
	}
	watch_set(&l->ready, WATCH_READ);
}

static void on_ready(struct watch *ready, unsigned int events)
{
	struct link *l = CONTAINER_OF(ready, struct link, ready);
	unsigned int taken = 0;

	l->held++;
	/* of one that failed no more is told: all of it is read now */
	while ((taken++ < l->words->batch || (events & WATCH_ERROR)) && receive_one(l))
		;
	if (is_open(l) && (events & WATCH_ERROR))
		broken_by(l, ERR_UNAVAILABLE, "the connection failed");
	else if (is_open(l) && (l->waiting.first || (events & WATCH_WRITE)))
		send_more(l);
	release(l);
}

static int refuse(const struct link_ask *what, struct link_call *c)
{
	for (size_t i = 0; i < what->n_fds; i++)
		close(what->fds[i]);
	if (c)
		*c = (struct link_call){ 0 };
	return -1;
}

static int write_message(struct link_call *c, const struct link_ask *what, struct err *err)
{
	c->len = what->request.len + what->text.len;
	c->message = malloc(c->len);
	if (!c->message)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "no memory for a request");
	memcpy(c->message, what->request.ptr, what->request.len);
	memcpy(c->message + offsetof(struct link_head, tag), &c->tag, sizeof(c->tag));
	if (what->text.len > 0)
		memcpy(c->message + what->request.len, what->text.ptr, what->text.len);
	c->n_fds = what->n_fds;
	if (c->n_fds > 0)
		memcpy(c->fds, what->fds, c->n_fds * sizeof(int));
	return 0;
}

/* May it be asked now, or wait until it may? */
static int admit(const struct link *l, const struct link_ask *what, struct err *err)
{
	bool ready = l->sock >= 0 && (l->up || (what->first && l->greeted));

	if (what->request.len + what->text.len > l->words->request_max)
		return err_set(err, ERR_INVALID, 0, "a request of %zu bytes, at most %zu",
			       what->request.len + what->text.len, l->words->request_max);
	if (!ready && (what->wait_ms == 0 || (l->mismatch && what->wait_ms != LINK_EVER)))
		return link_why(l, err);
	if (l->n_calls >= l->words->calls_max && what->wait_ms != LINK_EVER && !what->first)
		return err_set(err, ERR_EXHAUSTED, 0, "%zu requests to %s wait already", l->n_calls,
			       l->words->name);
	return 0;
}

int link_ask(struct link *l, struct link_call *c, const struct link_ask *what,
	     link_done_fn *on_done, struct err *err)
{
	AUTO(auto_free) struct link_call *own = NULL;
	bool first = !l->waiting.first || what->first;

	assert((!c || !c->link) && what->n_fds <= FDMSG_FDS_MAX);
	assert(what->n_fds == 0 || what->sends_max <= 1); /* they leave once */
	if (admit(l, what, err) < 0)
		return refuse(what, c);
	if (!c) {
		c = own = calloc(1, sizeof(*own));
		if (!c) {
			err_set(err, ERR_EXHAUSTED, ENOMEM, "no memory for a request");
			return refuse(what, c);
		}
	}
	*c = (struct link_call){ .on_done = on_done,
				 .tag = l->next_tag,
				 .until_ms = LINK_EVER,
				 .wait_ms = what->wait_ms,
				 .answer_ms = what->answer_ms,
				 .busy_ms = what->busy_ms,
				 .sends_max = what->sends_max ?: 1,
				 .first = what->first,
				 .owned = own != NULL };
	if (write_message(c, what, err) < 0)
		return refuse(what, c);
	own = NULL;
	l->next_tag++;
	l->n_calls++;
	c->link = l;
	if (what->deadline_ms > 0)
		c->until_ms = loop_now_ms(l->loop) + what->deadline_ms;
	timer_init(&c->timer, l->loop, on_time);
	wait_to_be_sent(l, c);
	/* a failure shows when the socket is ready: no callback comes from inside a call */
	if (first && may_send(l, c) && !send_one(l, c, &(struct err){ 0 }))
		watch_set(&l->ready, WATCH_READ | WATCH_WRITE);
	return 0;
}

/* --- the connection ----------------------------------------------------------------------- */

void link_up(struct link *l)
{
	l->up = true;
	l->told = l->told_hello = false;
	l->told_of = (struct link_hello){ 0 };
	if (link_exists(l))
		log_info("%s is up, build %s", l->words->name, l->peer.build);
	l->held++;
	l->ops->on_up(l);
	if (is_open(l) && l->up)
		send_more(l);
	release(l);
}

void link_hang_up(struct link *l)
{
	if (l->sock >= 0)
		shutdown(l->sock, SHUT_RDWR); /* fails only where it is over already */
}

static int connect_to(struct link *l, struct err *err)
{
	AUTO(auto_close)
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const struct link_hello hello = link_hello_make(l->words->min, l->words->max);
	const struct link_words *w = l->words;
	struct addr at;

	if (sock < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a socket");
	if (w->room > 0)
		(void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &w->room, sizeof(w->room));
	if (addr_unix(l->path, &at, err) < 0)
		return -1;
	/* SAFETY: sockaddr_storage is made to be seen as sockaddr */
	if (connect(sock, (const struct sockaddr *)&at.at, at.len) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "connect to %s at %s", w->name,
			       l->path);
	if (!l->in)
		l->in = malloc(w->reply_max > sizeof(hello) ? w->reply_max : sizeof(hello));
	if (!l->in)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "connect to %s", w->name);
	if (fdmsg_send(sock, &hello, sizeof(hello), NULL, 0, err) < 0 ||
	    watch_open(&l->ready, l->loop, sock, WATCH_READ, on_ready, err) < 0)
		return -1;
	l->sock = take_fd(&sock);
	return 0;
}

static void on_retry(struct timer *t)
{
	struct link *l = CONTAINER_OF(t, struct link, retry);
	struct err err;

	if (!link_exists(l)) {
		link_up(l);
		return;
	}
	if (connect_to(l, &err) == 0) {
		timer_start(&l->quiet, LINK_HELLO_MS);
		return;
	}
	l->mismatch = false; /* whoever that was is gone */
	if (!l->told)
		log_warn("%s; tried again every %d ms", err.msg, LINK_RETRY_MS);
	l->told = true;
	timer_start(&l->retry, LINK_RETRY_MS);
}

void link_open(struct link *l, struct loop *loop, const char *path, const struct link_words *words,
	       const struct link_ops *ops)
{
	assert(words->fds_max <= FDMSG_FDS_MAX && words->reply_min >= sizeof(struct link_head));
	*l = (struct link){ .words = words, .ops = ops, .loop = loop, .path = path, .sock = -1 };
	queue_init(&l->waiting);
	l->next_tag = 1;
	l->down_since_ms = loop_now_ms(loop);
	timer_init(&l->retry, loop, on_retry);
	timer_init(&l->quiet, loop, on_quiet);
	timer_start(&l->retry, 0);
}

static void cancel_all(struct link_call **list)
{
	while (*list)
		link_cancel(*list);
}

void link_close(struct link *l)
{
	if (l->closed || !l->loop)
		return;
	l->closed = true;
	l->up = false;
	cancel_all(&l->waiting.first);
	cancel_all(&l->resting);
	cancel_all(&l->failing);
	for (size_t i = 0; i < LINK_LISTS; i++)
		cancel_all(&l->sent[i]);
	timer_stop(&l->retry);
	timer_stop(&l->quiet);
	watch_close(&l->ready);
	auto_close(&l->sock);
	l->sock = -1;
	l->held++;
	release(l);
}
