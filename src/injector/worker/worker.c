/* worker.c - see worker.h. */
/* #syscalls: recvmsg sendmsg shutdown fcntl close */
#include "injector/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/fdmsg.h"
#include "net/watch.h"
#include "injector/worker/hand.h"
#include "injector/worker/opened.h"

enum { DEPTH_MAX = 8 };

struct worker_channel {
	struct worker *worker;
	int sock;
	bool broken;
	struct watch ready;
	struct injector_over late[WORKER_LATE_MAX]; /* notes that egress has no room for yet */
	size_t n_late;
	struct {
		struct injector_hand hand;
		uint8_t rest[sizeof(struct injector_refusal) + INJECTOR_FIRST_MAX];
	} in;
};

/* --- the channel ---------------------------------------------------------------------------- */

/* Once: whoever is told closes the worker. */
static void fail(struct worker_channel *c)
{
	if (c->broken)
		return;
	c->broken = true;
	watch_set(&c->ready, 0);
	c->worker->ops->on_end(c->worker);
}

/* False: not now. */
static bool tell(struct worker_channel *c, const struct injector_over *over)
{
	struct err err;

	if (fdmsg_send(c->sock, over, sizeof(*over), NULL, 0, &err) == 0)
		return true;
	/* gone: the loop will see that; this may be called from anywhere */
	if (err.sys != EAGAIN)
		(void)shutdown(c->sock, SHUT_RDWR);
	return err.sys != EAGAIN;
}

void worker_over(struct worker *w, const struct injector_over *over)
{
	struct worker_channel *c = w->channel;

	if (!c || c->broken || (c->n_late == 0 && tell(c, over)))
		return;
	if (c->n_late == WORKER_LATE_MAX) { /* egress reads all the time: it is not there */
		(void)shutdown(c->sock, SHUT_RDWR);
		return;
	}
	c->late[c->n_late++] = *over;
	watch_set(&c->ready, WATCH_READ | WATCH_WRITE);
}

bool worker_goes_on(struct worker *w, const struct injector_over *over)
{
	struct worker_channel *c = w->channel;

	return c && !c->broken && c->n_late == 0 && tell(c, over);
}

static void on_telling(struct timer *t)
{
	struct worker *w = CONTAINER_OF(t, struct worker, telling);

	opened_tell_all(w->all);
	if (w->n > 0)
		timer_start(t, WORKER_TELL_MS);
}

static void tell_late(struct worker_channel *c)
{
	size_t n = 0;

	while (n < c->n_late && tell(c, &c->late[n]))
		n++;
	c->n_late -= n;
	memmove(c->late, c->late + n, c->n_late * sizeof(c->late[0]));
	if (c->n_late == 0)
		watch_set(&c->ready, WATCH_READ);
}

/* False: there is none, or nobody to ask any more. */
static bool take_one(struct worker_channel *c)
{
	int fds[INJECTOR_HAND_FDS] = { -1, -1 };
	size_t len = 0, n_fds = 0;
	struct hand_rest rest;
	struct err err;

	if (fdmsg_recv_some(c->sock, &c->in, sizeof(c->in.hand), sizeof(c->in), &len, fds,
			    INJECTOR_HAND_FDS, &n_fds, &err) < 0) {
		if (err.sys != EAGAIN)
			fail(c);
		return false;
	}
	if (hand_is_sound(&c->in.hand, len, n_fds, &rest)) {
		c->worker->share.bytes_per_s = c->in.hand.bytes_per_s;
		if (!c->worker->telling.active)
			timer_start(&c->worker->telling, WORKER_TELL_MS);
		opened_start(c->worker, &c->in.hand, &rest, fds);
		return true;
	}
	while (n_fds > 0)
		close(fds[--n_fds]);
	fail(c);
	return false;
}

static void on_ready(struct watch *w, unsigned int events)
{
	struct worker_channel *c = CONTAINER_OF(w, struct worker_channel, ready);

	if (events & WATCH_WRITE)
		tell_late(c);
	for (int i = 0; i < WORKER_BATCH; i++)
		if (!take_one(c))
			break;
}

static int open_channel(struct worker *w, int fd, struct err *err)
{
	AUTO(auto_close) int own = fd;
	AUTO(auto_free) struct worker_channel *c = calloc(1, sizeof(*c));
	int flags = fcntl(fd, F_GETFL);

	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "the channel of egress");
	c->worker = w;
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return err_set(err, ERR_INVALID, errno, "the channel of egress");
	if (watch_open(&c->ready, w->loop, fd, WATCH_READ, on_ready, err) < 0)
		return -1;
	c->sock = take_fd(&own);
	w->channel = TAKE(c);
	return 0;
}

/* --- open and close ------------------------------------------------------------------------- */

static int read_branch(const json_t *text, const char *cert, const char *key, struct leaves *ret,
		       struct err *err)
{
	struct bytes cert_text, key_text;

	if (json_want_string(text, cert, &cert_text, err) < 0 ||
	    json_want_string(text, key, &key_text, err) < 0)
		return -1;
	return authority_load(cert_text, key_text, &ret->branch, err);
}

static int read_text(struct worker *w, struct bytes text, struct err *err)
{
	bool pages = false;
	json_t *rules;

	if (json_decode(text, WORKER_TEXT_MAX, DEPTH_MAX, &w->text, err) < 0)
		return -1;
	if (!json_is_object(w->text))
		return err_set(err, ERR_INVALID, 0, "not what a worker is told");
	if (json_want_array(w->text, "rules", &rules, err) < 0 ||
	    json_may_bool(w->text, "refusalPages", &pages, err) < 0 ||
	    rules_read(rules, &w->rules, err) < 0 ||
	    (w->rules.n > 0 && read_branch(w->text, "cert", "key", &w->leaves, err) < 0))
		return -1;
	w->pages_until_ms = loop_now_ms(w->loop) + WORKER_PAGES_MS;
	return pages ? read_branch(w->text, "pagesCert", "pagesKey", &w->pages, err) : 0;
}

bool worker_has_pages(const struct worker *w)
{
	return w->pages.branch && loop_now_ms(w->loop) < w->pages_until_ms;
}

int worker_open(struct worker *w, struct loop *l, const struct worker_ops *ops,
		const struct worker_tools *tools, int channel, struct bytes text, struct err *err)
{
	*w = (struct worker){ .ops = ops, .loop = l, .tools = *tools };
	share_open(&w->share, l, 0); /* each connection says it anew */
	timer_init(&w->telling, l, on_telling);
	if (open_channel(w, channel, err) < 0)
		return -1;
	if (read_text(w, text, err) == 0)
		return 0;
	worker_close(w);
	return -1;
}

void worker_close(struct worker *w)
{
	if (w->channel)
		w->channel->broken = true; /* nobody needs to be told any more */
	while (w->all)
		opened_cut(w->all);
	share_close(&w->share);
	timer_stop(&w->telling);
	if (w->channel) {
		watch_close(&w->channel->ready);
		close(w->channel->sock);
		free(TAKE(w->channel));
	}
	rules_done(&w->rules);
	leaves_done(&w->leaves);
	leaves_done(&w->pages);
	json_decref(TAKE(w->text));
}
