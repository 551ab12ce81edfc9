/* hand_over.c - see hand_over.h. */
/* #syscalls: sendmsg recvmsg fcntl close */
#include "egress/hand_over.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fdmsg.h"
#include "net/fd_pass.h"
#include "net/watch.h"

struct handed {
	uint64_t tag;
	enum sandbox_egress_kind kind;
	uint32_t ip;
	uint16_t port;
	char name[DOMAIN_SIZE];
	bool waits; /* its worker has no room yet: what it is given is kept */
	int fds[INJECTOR_HAND_FDS];
	size_t n_fds;
	struct injector_refusal *refusal; /* owned; NULL: it is none */
	struct buf first;
	struct handed *next;
};

struct hand_over {
	struct sandbox_egress *sandbox_egress;
	int sock; /* -1: the worker is gone */
	struct watch ready;
	uint64_t tag;
	struct handed *all;
};

static void let_go(struct handed *h)
{
	for (size_t i = 0; h->waits && i < h->n_fds; i++)
		close(h->fds[i]);
	free(TAKE(h->refusal));
	buf_done(&h->first);
	h->waits = false;
}

/* Once for each; `over` is NULL when its worker is gone. */
static void conclude(struct hand_over *w, struct handed **at, const struct injector_over *over)
{
	struct policy_verdict no = { .why = "its injector ended" };
	struct sandbox_egress *o = w->sandbox_egress;
	struct handed *h = *at;

	*at = h->next;
	o->n_handed--;
	if (over)
		snprintf(no.why, sizeof(no.why), "%.*s", (int)sizeof(over->why), over->why);
	if (no.why[0] && h->n_fds == INJECTOR_HAND_FDS) /* others were refused before */
		sandbox_egress_audit(o, &(struct audit_entry){ h->kind, AUDIT_REFUSED, h->name,
							       h->ip, h->port, no.why });
	let_go(h);
	free(h);
}

static void hang_up(struct hand_over *w)
{
	if (w->sock < 0)
		return;
	watch_close(&w->ready);
	close(take_fd(&w->sock));
	while (w->all)
		conclude(w, &w->all, NULL);
}

static void tell(struct hand_over *w, const struct injector_over *over)
{
	struct handed **at = &w->all;

	while (*at && (*at)->tag != over->tag)
		at = &(*at)->next;
	if (!*at)
		return;
	w->sandbox_egress->counts.bytes_out += over->bytes_out;
	w->sandbox_egress->counts.bytes_in += over->bytes_in;
	if (!over->goes_on)
		conclude(w, at, over);
}

static int send_it(struct hand_over *w, const struct handed *h, struct err *err)
{
	struct {
		struct injector_hand hand;
		struct injector_refusal refusal;
	} m = { .hand = { .version = h->refusal ? INJECTOR_REFUSED_VERSION : INJECTOR_HAND_VERSION,
			  .tls = h->kind == SANDBOX_EGRESS_TLS,
			  .tag = h->tag,
			  .bytes_per_s = w->sandbox_egress->house->limits.bytes_per_s,
			  .port = h->port,
			  .first_len = (uint32_t)h->first.len } };

	static_assert(sizeof(m.hand.name) == sizeof(h->name), "every name fits");
	static_assert(sizeof(m) == sizeof(m.hand) + sizeof(m.refusal), "nothing is between them");
	memcpy(m.hand.name, h->name, sizeof(m.hand.name));
	if (h->refusal)
		m.refusal = *h->refusal;
	return fdmsg_send_pair(
		w->sock,
		(struct bytes){ (const uint8_t *)&m, h->refusal ? sizeof(m) : sizeof(m.hand) },
		buf_view(&h->first), h->fds, h->n_fds, err);
}

/* Those who wait, as far as there is room. A worker that is gone is noticed by reading. */
static void send_waiting(struct hand_over *w)
{
	struct err err;

	for (struct handed *h = w->all; h; h = h->next) {
		if (h->waits && send_it(w, h, &err) < 0)
			return;
		let_go(h);
	}
	watch_set(&w->ready, WATCH_READ);
}

/* What is not a message of ours is no worker of ours. */
static void on_ready(struct watch *ready, unsigned int events)
{
	struct hand_over *w = CONTAINER_OF(ready, struct hand_over, ready);
	struct injector_over over;
	struct err err;
	size_t n;

	if (events & WATCH_WRITE)
		send_waiting(w);
	for (int i = 0; i < HAND_OVER_BATCH; i++) {
		if (fdmsg_recv(w->sock, &over, sizeof(over), NULL, 0, &n, &err) < 0) {
			if (err.sys != EAGAIN || (events & WATCH_ERROR))
				hang_up(w);
			return;
		}
		tell(w, &over);
	}
}

int hand_over_open(struct hand_over **ret, struct sandbox_egress *o, int fd, struct err *err)
{
	AUTO(auto_close) int own = fd;
	AUTO(auto_free) struct hand_over *w = calloc(1, sizeof(*w));
	int flags = fcntl(fd, F_GETFL);

	if (!w)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "the way to an injector");
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return err_set(err, ERR_INVALID, errno, "the way to an injector");
	w->sandbox_egress = o;
	if (watch_open(&w->ready, o->house->loop, fd, WATCH_READ, on_ready, err) < 0)
		return err_wrap(err, "the way to an injector");
	w->sock = take_fd(&own);
	*ret = TAKE(w);
	return 0;
}

void hand_over_close(struct hand_over *w)
{
	if (!w)
		return;
	hang_up(w);
	free(w);
}

bool hand_over_lives(const struct hand_over *w)
{
	return w && w->sock >= 0;
}

static int note_refusal(struct handed *h, const struct hand_over_what *what, struct err *err)
{
	h->refusal = calloc(1, sizeof(*h->refusal));
	if (!h->refusal)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "hand over a connection");
	snprintf(h->refusal->why, sizeof(h->refusal->why), "%s", what->why);
	snprintf(h->refusal->fix, sizeof(h->refusal->fix), "%s", what->fix ? what->fix : "");
	return 0;
}

/* Takes the descriptors, and has them until they are sent. */
static struct handed *remember(struct hand_over *w, const struct hand_over_what *what, int guest,
			       int server, struct err *err)
{
	AUTO(auto_free) struct handed *h = calloc(1, sizeof(*h));

	if (!h) {
		err_set(err, ERR_EXHAUSTED, ENOMEM, "hand over a connection");
		return NULL;
	}
	*h = (struct handed){ .tag = ++w->tag,
			      .kind = what->kind,
			      .ip = what->ip,
			      .port = what->port,
			      .first = BUF_MAX(INJECTOR_FIRST_MAX),
			      .next = w->all };
	snprintf(h->name, sizeof(h->name), "%s", what->name);
	if ((!what->server && note_refusal(h, what, err) < 0) ||
	    buf_add(&h->first, what->first, err) < 0) {
		let_go(h);
		return NULL;
	}
	h->waits = true;
	h->n_fds = server < 0 ? 1 : 2;
	h->fds[0] = guest;
	h->fds[1] = server;
	w->all = h;
	w->sandbox_egress->n_handed++;
	return TAKE(h);
}

int hand_over_pass(struct hand_over *w, const struct hand_over_what *what, struct err *err)
{
	AUTO(auto_close) int guest = stream_take_fd(what->guest);
	AUTO(auto_close) int server = what->server ? stream_take_fd(what->server) : -1;
	struct handed *h;

	if (guest < 0 || (what->server && server < 0))
		return err_set(err, ERR_UNAVAILABLE, 0, "it broke");
	if (!hand_over_lives(w))
		return err_set(err, ERR_UNAVAILABLE, 0, "its injector is gone");
	h = remember(w, what, guest, server, err);
	if (!h)
		return -1;
	(void)take_fd(&guest);
	(void)take_fd(&server);
	if (send_it(w, h, err) == 0) {
		let_go(h);
		return 0;
	}
	if (err->sys == EAGAIN) {
		watch_set(&w->ready, WATCH_READ | WATCH_WRITE);
		return 0;
	}
	w->all = h->next;
	w->sandbox_egress->n_handed--;
	let_go(h);
	free(h);
	return err_wrap(err, "hand over to its injector");
}
