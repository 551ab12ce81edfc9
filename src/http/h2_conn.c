/* h2_conn.c - one HTTP/2 connection of a server: its life, what arrives, what leaves, its times. */
#include "http/h2_conn.h"

#include <assert.h>
#include <errno.h>

#include "base/list.h"
#include "http/h2_body.h"
#include "http/h2_request.h"
#include "http/h2_session.h"

static uint64_t now_ms(const struct h2_conn *c)
{
	return loop_now_ms(c->conn.server->loop);
}

/* --- ends ------------------------------------------------------------------------------------ */

static void leave_stream(struct h2_conn *c)
{
	c->s = NULL;
	turn_end_drop(&c->end);
	timer_stop(&c->input);
	timer_stop(&c->output);
	timer_stop(&c->bye);
	timer_start(&c->later, 0); /* frees it: its own code may be on the stack */
}

/* The last word to everybody. */
static void h2_gone(struct h2_conn *c, const struct err *why, bool graceful)
{
	if (!c->s) /* a handler that is told so wants others to go, too */
		return;
	if (graceful)
		stream_close(c->s);
	else
		stream_abort(c->s);
	leave_stream(c);
	/* from the beginning each time: a handler may end other requests, too */
	while (c->requests)
		h2_request_gone(c->requests, why);
	if (c->wide)
		c->conn.server->h2.wide--;
	http_conn_leave(&c->conn);
}

void h2_broke(struct h2_conn *c, enum err_code code, const char *why)
{
	if (c->broke.code == ERR_NONE)
		err_set(&c->broke, code, 0, "%s", why);
	h2_soon(c);
}

/* The client is told why, and then no more. */
static void end_with(struct h2_conn *c, uint32_t code)
{
	c->over = true;
	h2_session_end(c, code);
}

static void end_calmly(struct h2_conn *c)
{
	end_with(c, NGHTTP2_ENHANCE_YOUR_CALM);
}

void h2_soon(struct h2_conn *c)
{
	if (c->s && !c->feeding)
		timer_start(&c->later, 0);
}

/* --- what leaves ----------------------------------------------------------------------------- */

void h2_wants_out(struct h2_conn *c)
{
	turn_end_add(c->conn.server->loop, &c->end);
}

static bool any_rests(const struct h2_conn *c)
{
	for (const struct h2_request *rq = c->requests; rq; rq = rq->next)
		if (rq->base.rests || rq->is_tunnel)
			return true;
	return false;
}

static void watch_output(struct h2_conn *c)
{
	uint64_t ms = c->conn.server->limits.write_stall_ms;

	if (ms == 0 || c->output.active || stream_queued(c->s) == 0)
		return;
	c->sent_seen = stream_sent(c->s);
	timer_start(&c->output, ms);
}

static void on_output_timeout(struct timer *t)
{
	struct h2_conn *c = CONTAINER_OF(t, struct h2_conn, output);
	struct err why;

	if (stream_queued(c->s) == 0 || stream_sent(c->s) != c->sent_seen ||
	    (any_rests(c) && !c->over)) {
		watch_output(c);
		return;
	}
	err_set(&why, ERR_TIMEOUT, 0, "the client does not take its answer");
	h2_gone(c, &why, false);
}

static void new_turn(struct h2_conn *c)
{
	uint64_t turn = loop_turns(c->conn.server->loop);

	if (c->out_turn == turn)
		return;
	c->out_turn = turn;
	c->out_left = H2_TURN_OUT;
}

/* True: all that fitted has left, and there may be more. */
static bool flush_once(struct h2_conn *c)
{
	struct err err;
	size_t n;

	c->out.max = STREAM_QUEUE_MAX / 2;
	if (h2_session_give(c, &err) < 0) {
		h2_broke(c, err.code, err.msg);
		return false;
	}
	n = c->out.len;
	if (n > 0 && stream_write_buf(c->s, &c->out, &err) < 0) {
		buf_done(&c->out);
		h2_broke(c, ERR_UNAVAILABLE, "write");
		return false;
	}
	c->out = (struct buf){ 0 };
	c->out_left -= n < c->out_left ? n : c->out_left;
	return n > 0 && c->blocked;
}

void h2_flush(struct h2_conn *c)
{
	if (!c->s || c->broke.code == ERR_UNAVAILABLE)
		return;
	new_turn(c);
	while (stream_queued(c->s) <= STREAM_LOW_WATER && c->out_left > 0 && flush_once(c))
		;
	watch_output(c);
	c->blocked = c->blocked || c->out_left == 0;
	/* the rest in the next turn, unless the client is the slow one: then on_drain comes */
	if (c->blocked && stream_queued(c->s) <= STREAM_LOW_WATER)
		h2_soon(c);
	if (h2_session_over(c))
		h2_soon(c);
}

static void on_turn_end(struct turn_end *e)
{
	h2_flush(CONTAINER_OF(e, struct h2_conn, end));
}

/* --- what is due ----------------------------------------------------------------------------- */

static void update_wait(struct h2_conn *c)
{
	const struct http_limits *lim = &c->conn.server->limits;
	const uint64_t ms[] = {
		[H2_WAIT_NOTHING] = 0,
		[H2_WAIT_PREFACE] = lim->head_ms,
		[H2_WAIT_HEAD] = lim->head_ms,
		[H2_WAIT_IDLE] = lim->idle_ms,
	};
	enum h2_wait now = H2_WAIT_NOTHING;
	bool waits = true;

	if (!c->greeted)
		now = H2_WAIT_PREFACE;
	else if (c->heads > 0)
		now = H2_WAIT_HEAD;
	else if (c->n_requests == 0)
		now = H2_WAIT_IDLE;
	for (const struct h2_request *rq = c->requests; rq && waits; rq = rq->next)
		waits = h2_request_waits(rq);
	c->conn.idle =
		now == H2_WAIT_IDLE && nghttp2_session_get_last_proc_stream_id(c->session) > 0;
	http_conn_waits(&c->conn, waits, now != c->wait);
	if (now == c->wait)
		return;
	c->wait = now;
	if (ms[now] > 0)
		timer_start(&c->input, ms[now]);
	else
		timer_stop(&c->input);
}

static void on_input_timeout(struct timer *t)
{
	struct h2_conn *c = CONTAINER_OF(t, struct h2_conn, input);
	struct err why;

	if (c->wait == H2_WAIT_IDLE && !c->over) {
		c->over = true; /* it is told so, and closed when that has left */
		h2_session_end(c, NGHTTP2_NO_ERROR);
		timer_start(&c->input, STREAM_LINGER_MS);
		return;
	}
	err_set(&why, ERR_TIMEOUT, 0, "the request did not arrive in time");
	h2_gone(c, &why, c->wait == H2_WAIT_IDLE);
}

/* False: it is closed. */
static bool tell_due(struct h2_conn *c)
{
	for (size_t n = c->n_due; n > 0 && c->due.first && c->s; n--) {
		struct h2_request *rq = c->due.first;

		queue_remove_by(&c->due, rq, due_next, due_prev);
		c->n_due--;
		h2_request_tell(rq);
	}
	return c->s;
}

static bool settle_broken(struct h2_conn *c)
{
	struct err why = c->broke;

	if (why.code == ERR_NONE || c->over)
		return true;
	if (why.code == ERR_EXHAUSTED) {
		end_calmly(c);
		return true;
	}
	h2_gone(c, &why, false);
	return false;
}

/* After whatever happened. */
static void settle(struct h2_conn *c)
{
	struct err why;

	if (!c->s || !settle_broken(c) || !tell_due(c))
		return;
	if (h2_session_over(c)) {
		err_set(&why, ERR_UNAVAILABLE, 0, "the connection is over");
		h2_gone(c, &why, true);
		return;
	}
	if (c->in.len == 0) {
		buf_done(&c->in); /* an idle connection holds nothing */
		c->in = (struct buf){ .max = HTTP_INPUT_MAX, .secret = c->secret };
	}
	update_wait(c);
	stream_read(c->s, !c->more);
	if (c->n_due > 0 || c->more)
		timer_start(&c->later, 0);
}

/* --- what arrives ---------------------------------------------------------------------------- */

/* To those whom it concerns; nghttp2 has returned. */
static void tell_got(struct h2_conn *c)
{
	struct h2_request *rq = c->got.rq;

	if (!rq) {
		h2_session_used_by_all(c, c->got.piece.len);
		return;
	}
	if (c->got.head) {
		rq->ended = c->got.end;
		c->turn.requests -= c->turn.requests > 0;
		/* what was unpacked is work, however few bytes it was */
		c->turn.bytes -=
			rq->head_in.list < c->turn.bytes ? rq->head_in.list : c->turn.bytes;
		h2_request_present(rq);
		return;
	}
	if (c->got.piece.len > 0) {
		bool end = c->got.end;

		h2_body_piece(rq, c->got.piece);
		if (!c->s || !end)
			return;
	}
	if (c->got.end && !rq->ended)
		h2_body_ended(rq);
}

/* A frame begins. What nghttp2 lets pass is looked at here. */
static bool may_come(struct h2_conn *c, const struct h2_frame *f, struct bytes slice)
{
	bool open = h2_session_knows(c, f->stream);
	size_t cost = h2_calm_is_idle(f) ? H2_CALM_COST : 1;
	uint32_t code = h2_past_check(&c->past, f, open, bytes_tail(slice, H2_FRAME_HEAD));

	c->turn.chunks -= cost < c->turn.chunks ? cost : c->turn.chunks;
	if (code == 0 && !h2_calm_frame(&c->calm, f, now_ms(c)))
		code = NGHTTP2_ENHANCE_YOUR_CALM;
	if (code == 0)
		return true;
	end_with(c, code);
	return false;
}

static bool take_slice(struct h2_conn *c, struct bytes *in)
{
	struct h2_frame frame;
	struct bytes slice;
	struct err err;

	if (h2_cut_next(&c->cut, in, &slice, &frame) && !may_come(c, &frame, slice))
		return false;
	if (h2_session_take(c, slice, &err) < 0) {
		c->over = true;
		return false;
	}
	/* padding and nothing else */
	if (c->got.data && c->got.piece.len == 0 && !c->got.end &&
	    !h2_calm_nothing(&c->calm, now_ms(c))) {
		end_calmly(c);
		return false;
	}
	tell_got(c);
	return c->s && !c->over;
}

/* Returns what was not used. */
static struct bytes feed(struct h2_conn *c, struct bytes in)
{
	size_t before;

	if (c->secret)
		loop_forget(c->conn.server->loop);
	c->feeding = true;
	c->more = false;
	c->turn = HTTP_TURN;
	while (in.len > 0) {
		before = in.len;
		if (!take_slice(c, &in)) {
			in = (struct bytes){ 0 }; /* nobody reads it any more */
			break;
		}
		if (http_turn_used(&c->turn, before, in.len)) {
			c->more = true;
			break;
		}
	}
	c->feeding = false;
	if (c->s)
		h2_wants_out(c); /* nghttp2 answers some of it by itself */
	return in;
}

static void feed_kept(struct h2_conn *c)
{
	struct bytes rest = feed(c, buf_view(&c->in));

	if (!c->s)
		return;
	buf_drop(&c->in, c->in.len - rest.len);
	settle(c);
}

static void on_data(struct stream_user *u, struct bytes in)
{
	struct h2_conn *c = CONTAINER_OF(u, struct h2_conn, user);
	struct bytes rest;
	struct err err;

	if (c->over)
		return;
	if (c->in.len > 0) {
		if (buf_add(&c->in, in, &err) < 0)
			h2_gone(c, &err, false);
		else
			feed_kept(c);
		return;
	}
	rest = feed(c, in);
	if (!c->s)
		return;
	if (rest.len > 0 && buf_add(&c->in, rest, &err) < 0) {
		h2_gone(c, &err, false);
		return;
	}
	settle(c);
}

static void on_end(struct stream_user *u)
{
	struct h2_conn *c = CONTAINER_OF(u, struct h2_conn, user);
	struct err why;

	err_set(&why, ERR_UNAVAILABLE, 0, "the client closed the connection");
	h2_gone(c, &why, c->n_requests == 0 || c->over);
}

static void on_drain(struct stream_user *u)
{
	struct h2_conn *c = CONTAINER_OF(u, struct h2_conn, user);

	h2_flush(c);
	settle(c);
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	h2_gone(CONTAINER_OF(u, struct h2_conn, user), err, false);
}

static void on_later(struct timer *t)
{
	struct h2_conn *c = CONTAINER_OF(t, struct h2_conn, later);

	if (!c->s) {
		h2_session_close(c);
		buf_done(&c->in);
		buf_done(&c->out);
		free(c);
		return;
	}
	if (c->blocked)
		h2_flush(c);
	if (c->more)
		feed_kept(c);
	else
		settle(c);
}

/* --- open, kill, drain ----------------------------------------------------------------------- */

static void conn_kill(struct http_conn *conn, const struct err *why)
{
	struct h2_conn *c = CONTAINER_OF(conn, struct h2_conn, conn);

	h2_gone(c, why, false);
}

/* Two steps, so that no request is lost that was on its way: first nothing changes but that the
 * client sends no more of them, and after a while it hears which was the last that counts. */
static void conn_drain(struct http_conn *conn)
{
	struct h2_conn *c = CONTAINER_OF(conn, struct h2_conn, conn);

	if (c->draining || c->over)
		return;
	c->draining = true;
	h2_session_warn(c);
	timer_start(&c->bye, H2_BYE_MS);
}

static void on_bye(struct timer *t)
{
	struct h2_conn *c = CONTAINER_OF(t, struct h2_conn, bye);

	if (!c->over)
		h2_session_goaway(c);
}

static void h2_conn_init(struct h2_conn *c, struct http_server *sv, struct stream *s)
{
	static const struct stream_user_ops user_ops = { on_data, on_end, on_drain, on_fail };
	static const struct http_conn_ops conn_ops = { conn_kill, conn_drain };

	c->s = s;
	c->user.ops = &user_ops;
	c->end.on_end = on_turn_end;
	c->in = BUF_MAX(HTTP_INPUT_MAX);
	queue_init(&c->due);
	timer_init(&c->input, sv->loop, on_input_timeout);
	timer_init(&c->output, sv->loop, on_output_timeout);
	timer_init(&c->later, sv->loop, on_later);
	timer_init(&c->bye, sv->loop, on_bye);
	http_conn_join(&c->conn, &conn_ops, sv);
	h2_calm_init(&c->calm, now_ms(c));
	sv->counts[HTTP_2].connections++;
}

int h2_conn_open(struct http_server *sv, struct stream *s, const struct net_peer *peer,
		 struct bytes first, struct err *err)
{
	struct h2_conn *c = calloc(1, sizeof(*c));

	if (!c) {
		stream_abort(s);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate connection");
	}
	h2_conn_init(c, sv, s);
	if (peer)
		c->conn.peer = *peer;
	stream_set_user(s, &c->user);
	if (h2_session_open(c, err) < 0 || buf_add(&c->in, first, err) < 0) {
		stream_abort(s);
		leave_stream(c);
		http_conn_leave(&c->conn);
		return -1;
	}
	h2_wants_out(c);
	c->more = first.len > 0; /* what came is looked at in a turn of its own */
	settle(c);
	if (sv->draining)
		conn_drain(&c->conn);
	return 0;
}
