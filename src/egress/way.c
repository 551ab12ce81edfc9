/* way.c - see way.h. */
/* #syscalls: socket_inet connect */
#include "egress/way.h"

#include "wire/http1_head.h"

static void let_go(struct way *w)
{
	dial_cancel(&w->dial);
	timer_stop(&w->late);
	if (w->s)
		stream_abort(TAKE(w->s));
	w->on_done = NULL;
}

void way_cancel(struct way *w)
{
	let_go(w);
	buf_done(&w->answer);
}

static void fail(struct way *w, const struct err *why)
{
	__auto_type on_done = w->on_done;

	way_cancel(w);
	on_done(w, NULL, (struct bytes){ 0 }, why);
}

/* --- the proxy's answer --------------------------------------------------------------------- */

/* What follows the head is the server's. */
static void arrive(struct way *w, size_t head)
{
	AUTO(buf_done) struct buf answer = w->answer;
	__auto_type on_done = w->on_done;
	struct stream *s = TAKE(w->s);

	w->answer = (struct buf){ 0 };
	timer_stop(&w->late);
	stream_set_user(s, NULL);
	w->on_done = NULL;
	on_done(w, s, bytes_tail(buf_view(&answer), head), NULL);
}

static void on_data(struct stream_user *u, struct bytes in)
{
	struct way *w = CONTAINER_OF(u, struct way, user);
	struct http1_head h;
	struct err err = { 0 };
	enum decode found;
	size_t used;

	if (buf_add(&w->answer, in, &err) < 0) {
		fail(w, &err);
		return;
	}
	found = http1_head_end(buf_view(&w->answer), &w->scanned, &used, &err);
	if (found == DECODE_MORE)
		return;
	if (found == DECODE_BAD || http1_parse_response(bytes_head(buf_view(&w->answer), used),
							BYTES_LIT("CONNECT"), &h, &err) < 0) {
		err_wrap(&err, "the proxy's answer");
		fail(w, &err);
	} else if (h.status < 200 || h.status > 299) {
		err_set(&err, ERR_UNAVAILABLE, 0, "the proxy refuses %s: %u %.*s", w->host,
			h.status, (int)bytes_head(h.reason, 64).len, (const char *)h.reason.ptr);
		fail(w, &err);
	} else {
		arrive(w, used);
	}
}

static void on_end(struct stream_user *u)
{
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, 0, "the proxy hung up");
	fail(CONTAINER_OF(u, struct way, user), &err);
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	fail(CONTAINER_OF(u, struct way, user), err);
}

static void on_late(struct timer *t)
{
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "the proxy does not answer");
	fail(CONTAINER_OF(t, struct way, late), &err);
}

static const struct stream_user_ops hears = { on_data, on_end, NULL, on_fail };

static void ask_proxy(struct way *w, struct stream *s)
{
	char text[2 * DOMAIN_SIZE + 64];
	struct err err;

	w->s = s;
	w->user.ops = &hears;
	w->answer = BUF_MAX(HTTP1_HEAD_MAX + LOOP_READ_MAX);
	w->scanned = 0;
	stream_set_user(s, &w->user);
	snprintf(text, sizeof(text), "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n\r\n", w->host,
		 w->port, w->host, w->port);
	if (stream_write(s, bytes_str(text), &err) < 0) {
		fail(w, &err);
		return;
	}
	stream_read(s, true);
	timer_init(&w->late, stream_loop(s), on_late);
	timer_start(&w->late, w->deadline_ms);
}

/* --- dialling ------------------------------------------------------------------------------- */

static void on_dialled(struct dial *d, struct stream *s, const struct err *err)
{
	struct way *w = CONTAINER_OF(d, struct way, dial);
	__auto_type on_done = w->on_done;
	struct err proxy;

	if (!s && w->host[0]) { /* a guest is told this: not where the proxy is */
		err_set(&proxy, err->code, err->sys, "the proxy is not reached");
		fail(w, &proxy);
	} else if (!s) {
		fail(w, err);
	} else if (w->host[0]) {
		ask_proxy(w, s);
	} else {
		w->on_done = NULL;
		on_done(w, s, (struct bytes){ 0 }, NULL);
	}
}

int way_start(struct way *w, struct loop *l, const struct way_to *to, way_done_fn *on_done,
	      struct err *err)
{
	*w = (struct way){ .on_done = on_done, .port = to->port, .deadline_ms = to->deadline_ms };
	snprintf(w->host, sizeof(w->host), "%s", to->host ? to->host : "");
	return dial_start(&w->dial, l, to->dial, to->deadline_ms, on_dialled, err);
}
