/* opened.c - see opened.h.
 *
 * The guest is always accepted first and told afterwards: before its handshake is over there is no
 * way to say why not. So a refusal waits until the guest has asked for something.
 */
#include "injector/worker/opened.h"

#include "base/list.h"
#include "http/http_guard.h"
#include "http/refusal.h"
#include "net/fd_stream.h"
#include "net/timer.h"

struct opened {
	struct worker *worker;
	uint64_t tag;
	bool tls;
	bool page; /* it is refused, there is no server, and all it gets is the reason */
	char name[DOMAIN_SIZE];
	const struct rule *rule;       /* of the worker */
	struct stream *guest, *server; /* NULL: no longer */
	struct stream_user from_guest, from_server;
	struct tls_chooser chooser;
	struct http_guard guard;
	bool asked, answered, guest_ended;
	struct buf head; /* of its first request: it says how a refusal is to look */
	size_t scanned;
	bool head_over; /* it is whole, or will never be */
	bool held;      /* its sandbox has moved enough for now: nothing is read */
	struct share_taker taker;
	unsigned int refusal; /* the status the guest is told; 0: none */
	char why[INJECTOR_WHY_MAX + 1];
	char fix[INJECTOR_FIX_MAX + 1]; /* who would have to change what; empty: nobody knows */
	struct injector_over over;      /* bytes: those that egress was not told of */
	struct timer idle;
	uint64_t moved, seen; /* bytes; seen: when last looked */
	uint64_t unsent;      /* of the guest, that nobody is sent */
	struct opened *next, **prev;
};

/* --- the end -------------------------------------------------------------------------------- */

static void finish(struct opened *o, bool graceful)
{
	struct stream *both[] = { TAKE(o->guest), TAKE(o->server) };

	for (size_t i = 0; i < COUNT(both); i++) {
		if (both[i] && graceful)
			stream_close(both[i]);
		else if (both[i])
			stream_abort(both[i]);
	}
	timer_stop(&o->idle);
	share_leave(&o->taker);
	list_remove(o);
	o->worker->n--;
	o->over.tag = o->tag;
	if (!o->page) /* egress knows */
		snprintf(o->over.why, sizeof(o->over.why), "%.*s", (int)sizeof(o->over.why) - 1,
			 o->why);
	o->over.requests = (uint32_t)o->guard.requests;
	worker_over(o->worker, &o->over);
	http_guard_done(&o->guard);
	buf_done(&o->head);
	free(o);
}

void opened_cut(struct opened *o)
{
	finish(o, false);
}

void opened_tell_all(struct opened *first)
{
	for (struct opened *o = first; o; o = o->next) {
		struct injector_over so_far = o->over;

		so_far.tag = o->tag;
		so_far.goes_on = 1;
		if (so_far.bytes_out + so_far.bytes_in == 0)
			continue;
		if (!worker_goes_on(o->worker, &so_far))
			return;
		o->over.bytes_out = o->over.bytes_in = 0;
	}
}

static void note(struct opened *o, const char *why)
{
	if (!o->why[0])
		snprintf(o->why, sizeof(o->why), "%s", why);
}

static void fail(struct opened *o, const char *why)
{
	note(o, why);
	finish(o, false);
}

static void tell_refusal(struct opened *o)
{
	AUTO(buf_done) struct buf text = BUF_MAX(REFUSAL_MAX);
	const struct refusal r = { o->refusal, o->name, o->why, o->fix[0] ? o->fix : NULL };
	struct err err;
	bool told = refusal_put(&text, &r, refusal_form(buf_view(&o->head)), &err) == 0 &&
		    stream_write_buf(o->guest, &text, &err) == 0;

	finish(o, told);
}

/* The guest is told as soon as it has asked, if it still may. */
static void refuse(struct opened *o, unsigned int status, const char *why)
{
	if (o->answered || (o->guest_ended && !o->head_over)) {
		fail(o, why);
		return;
	}
	note(o, why);
	o->refusal = status;
	if (o->server)
		stream_abort(TAKE(o->server));
	if (o->head_over)
		tell_refusal(o);
}

/* --- from the guest ------------------------------------------------------------------------- */

static struct opened *of_guest(struct stream_user *u)
{
	return CONTAINER_OF(u, struct opened, from_guest);
}

static struct opened *of_server(struct stream_user *u)
{
	return CONTAINER_OF(u, struct opened, from_server);
}

static bool guest_may_go_on(const struct opened *o)
{
	return !o->guest_ended && !o->held && !http_guard_waits(&o->guard) &&
	       stream_queued(o->server) <= STREAM_LOW_WATER;
}

static bool server_may_go_on(const struct opened *o)
{
	return !o->held && stream_queued(o->guest) <= STREAM_LOW_WATER;
}

static void on_go(struct share_taker *t)
{
	struct opened *o = CONTAINER_OF(t, struct opened, taker);

	o->held = false;
	stream_read(o->guest, !o->server || guest_may_go_on(o));
	if (o->server)
		stream_read(o->server, server_may_go_on(o));
}

/* Before they are passed on, and before anybody is read again. */
static void count(struct opened *o, uint64_t *what, size_t n)
{
	*what += n;
	o->moved += n;
	if (o->held || share_take(&o->worker->share, &o->taker, n))
		return;
	o->held = true;
	stream_read(o->guest, false);
	if (o->server)
		stream_read(o->server, false);
}

/* What passes goes to the server. The connection may be gone afterwards. */
static void feed(struct opened *o, struct bytes in)
{
	AUTO(buf_done) struct buf out = BUF_MAX(STREAM_QUEUE_MAX);
	struct err err;

	if (http_guard_feed(&o->guard, in, &out, &err) < 0) {
		o->head_over = true;
		if (o->guard.requests == 0)
			refuse(o, err.code == ERR_DENIED ? 403 : 400, err.msg);
		else /* an answer may be on its way: nothing can be put into it */
			fail(o, err.msg);
		return;
	}
	if (out.len > 0 && stream_write_buf(o->server, &out, &err) < 0) {
		refuse(o, 502, err.msg);
		return;
	}
	stream_read(o->guest, guest_may_go_on(o));
}

static void keep_head(struct opened *o, struct bytes in)
{
	struct err err;
	size_t used;

	if (o->head_over)
		return;
	o->head_over =
		buf_add(&o->head, bytes_head(in, HTTP1_HEAD_MAX - o->head.len), &err) < 0 ||
		http1_head_end(buf_view(&o->head), &o->scanned, &used, &err) != DECODE_MORE ||
		o->head.len == HTTP1_HEAD_MAX;
}

static void on_guest_data(struct stream_user *u, struct bytes in)
{
	struct opened *o = of_guest(u);

	o->asked = true;
	keep_head(o, in);
	count(o, o->page ? &o->unsent : &o->over.bytes_out, in.len);
	if (!o->refusal)
		feed(o, in);
	else if (o->head_over)
		tell_refusal(o);
}

static void on_guest_end(struct stream_user *u)
{
	struct opened *o = of_guest(u);

	o->guest_ended = true;
	if (o->server)
		stream_shut(o->server);
	else
		finish(o, false);
}

static void on_guest_drain(struct stream_user *u)
{
	struct opened *o = of_guest(u);

	if (o->server)
		stream_read(o->server, server_may_go_on(o));
}

static void on_guest_fail(struct stream_user *u, const struct err *err)
{
	struct opened *o = of_guest(u);

	if (!o->asked && err->code != ERR_UNAVAILABLE)
		note(o, err->msg);
	finish(o, false);
}

static const struct stream_user_ops guest_ops = { on_guest_data, on_guest_end, on_guest_drain,
						  on_guest_fail };

/* --- from the server ------------------------------------------------------------------------ */

static void on_server_data(struct stream_user *u, struct bytes in)
{
	struct opened *o = of_server(u);
	bool agreed = http_guard_heard(&o->guard, in);
	struct err err;

	o->answered = o->head_over = true;
	buf_done(&o->head);
	count(o, &o->over.bytes_in, in.len);
	if (stream_write(o->guest, in, &err) < 0) {
		finish(o, false);
		return;
	}
	if (stream_queued(o->guest) > STREAM_LOW_WATER)
		stream_read(o->server, false);
	if (agreed)
		feed(o, (struct bytes){ 0 });
}

static void on_server_end(struct stream_user *u)
{
	struct opened *o = of_server(u);

	if (o->answered)
		finish(o, true);
	else
		refuse(o, 502, "the server ended the connection without an answer");
}

static void on_server_drain(struct stream_user *u)
{
	struct opened *o = of_server(u);

	if (guest_may_go_on(o))
		stream_read(o->guest, true);
}

/* Many servers end their TLS without a word. What the guest has been told so far it gets, and most
 * answers say themselves how long they are. */
static void on_server_fail(struct stream_user *u, const struct err *err)
{
	struct opened *o = of_server(u);

	if (!o->answered) {
		refuse(o, 502, err->msg);
		return;
	}
	stream_abort(TAKE(o->server));
	finish(o, true);
}

static const struct stream_user_ops server_ops = { on_server_data, on_server_end, on_server_drain,
						   on_server_fail };

/* --- the beginning -------------------------------------------------------------------------- */

static int choose(struct tls_chooser *c, const char *name, const struct identity **ret,
		  struct err *err)
{
	struct opened *o = CONTAINER_OF(c, struct opened, chooser);

	if (strcmp(name, o->name) != 0)
		return err_set(err, ERR_DENIED, 0, "the greeting names another host");
	return leaves_get(o->page ? &o->worker->pages : &o->worker->leaves, name, ret, err);
}

static void on_idle(struct timer *t)
{
	struct opened *o = CONTAINER_OF(t, struct opened, idle);

	if (o->page || o->moved == o->seen)
		finish(o, false);
	else
		o->seen = o->moved;
}

static int open_streams(struct opened *o, struct bytes first, int guest, int server,
			struct err *err)
{
	AUTO(auto_close) int to = server;
	struct loop *l = o->worker->loop;
	const struct worker_tools *t = &o->worker->tools;

	if (fd_stream_open(l, guest, FD_STREAM_BOTH, &o->guest, err) < 0 ||
	    (!o->page && fd_stream_open(l, take_fd(&to), FD_STREAM_BOTH, &o->server, err) < 0))
		return -1;
	if (!o->tls)
		return 0;
	if (tls_accept(t->server, TAKE(o->guest), first, &o->chooser, "http/1.1", &o->guest, err) <
	    0)
		return -1;
	if (o->page)
		return 0;
	return tls_connect(t->client, TAKE(o->server), o->name, "http/1.1", &o->server, err);
}

/* Why nothing may be added; NULL: it may. */
static const char *objection(struct opened *o)
{
	const char *fix = "ask over https";

	if (!o->rule)
		return "no rule for this host";
	if (o->rule->refuse[0])
		fix = "whoever made the sandbox makes that secret, or changes the rule for this "
		      "host by updateNetwork";
	else if (!o->rule->secret || o->tls)
		return NULL;
	snprintf(o->fix, sizeof(o->fix), "%s", fix);
	return o->rule->refuse[0] ? o->rule->refuse
				  : "a secret is added to HTTPS alone, this is plain HTTP";
}

static struct opened *make(struct worker *w, const struct injector_hand *hand)
{
	struct opened *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	*o = (struct opened){
		.worker = w, .tag = hand->tag, .tls = hand->tls, .head = BUF_MAX(HTTP1_HEAD_MAX)
	};
	memcpy(o->name, hand->name, sizeof(o->name));
	o->from_guest.ops = &guest_ops;
	o->from_server.ops = &server_ops;
	o->chooser.choose = choose;
	o->taker.on_go = on_go;
	o->rule = rules_find(&w->rules, o->name);
	http_guard_init(&o->guard, o->name);
	if (o->rule)
		http_guard_add(&o->guard, o->rule->fields, o->rule->n_fields);
	timer_init(&o->idle, w->loop, on_idle);
	list_add(&w->all, o);
	w->n++;
	return o;
}

static void turn_away(struct worker *w, uint64_t tag, const char *why, const int *fds)
{
	struct injector_over over = { .tag = tag };

	snprintf(over.why, sizeof(over.why), "%s", why);
	close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	worker_over(w, &over);
}

/* It is told as soon as it has asked, and not waited for long. */
static void show_page(struct opened *o, const struct injector_refusal *r)
{
	snprintf(o->fix, sizeof(o->fix), "%s", r->fix);
	refuse(o, 403, r->why);
}

static void begin(struct opened *o)
{
	const char *why = objection(o);

	stream_set_user(o->server, &o->from_server);
	stream_read(o->server, true);
	if (why)
		refuse(o, 403, why);
}

void opened_start(struct worker *w, const struct injector_hand *hand, const struct hand_rest *rest,
		  const int fds[static INJECTOR_HAND_FDS])
{
	bool shown = !rest->refusal || worker_has_pages(w);
	struct opened *o = shown && w->n < WORKER_CONNECTIONS_MAX ? make(w, hand) : NULL;
	struct err err;

	if (!o) {
		turn_away(w, hand->tag,
			  shown ? "too many connections at its injector"
				: "its injector shows no refusals, or not any more",
			  fds);
		return;
	}
	o->page = rest->refusal;
	if (open_streams(o, rest->first, fds[0], fds[1], &err) < 0) {
		fail(o, err.msg);
		return;
	}
	timer_repeat(&o->idle, o->page ? OPENED_PAGE_MS : OPENED_IDLE_MS);
	stream_set_user(o->guest, &o->from_guest);
	stream_read(o->guest, true);
	if (o->page)
		show_page(o, rest->refusal);
	else
		begin(o);
	if (!o->tls)
		on_guest_data(&o->from_guest,
			      rest->first); /* it is all the same where it was read */
}
