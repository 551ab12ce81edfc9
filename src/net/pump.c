/* pump.c - two streams, each writing what the other reads. */
#include "net/pump.h"

static struct pump_side *side_of(struct stream_user *u)
{
	return CONTAINER_OF(u, struct pump_side, user);
}

static struct pump_side *other(struct pump_side *side)
{
	return side == &side->pump->a ? &side->pump->b : &side->pump->a;
}

static void drop_streams(struct pump *p, bool graceful)
{
	timer_stop(&p->idle);
	if (graceful) {
		stream_close(p->a.s);
		stream_close(p->b.s);
	} else {
		stream_abort(p->a.s);
		stream_abort(p->b.s);
	}
	p->a.s = NULL;
	p->b.s = NULL;
}

static void fail(struct pump *p, const struct err *err)
{
	drop_streams(p, false);
	p->ops->on_done(p, err);
}

static int pass(struct pump_side *from, struct bytes in, struct err *err)
{
	struct pump *p = from->pump;
	AUTO(buf_done) struct buf out = BUF_MAX(STREAM_QUEUE_MAX);

	if (!p->ops->pass)
		return stream_write(other(from)->s, in, err);
	if (p->ops->pass(p, from, in, &out, err) < 0)
		return -1;
	return out.len > 0 ? stream_write_buf(other(from)->s, &out, err) : 0;
}

/* Whether a side is read is a function of what we hold. */
static void update(struct pump_side *from)
{
	const struct pump_side *to = other(from);
	bool waits = from->waits && !to->ended;

	stream_read(from->s, !from->pump->held && !waits && !from->ended &&
				     stream_queued(to->s) <= STREAM_LOW_WATER);
}

static void on_data(struct stream_user *u, struct bytes in)
{
	struct pump_side *from = side_of(u);
	struct pump *p = from->pump;
	struct err err;

	if (pass(from, in, &err) < 0) {
		fail(p, &err);
		return;
	}
	from->moved += in.len;
	if (p->ops->moved)
		p->ops->moved(p, from, in.len);
	update(from);
}

static uint64_t progress(const struct pump *p)
{
	return p->a.moved + p->b.moved + stream_sent(p->a.s) + stream_sent(p->b.s);
}

static bool is_over(struct pump *p)
{
	return stream_queued(p->a.s) == 0 && stream_queued(p->b.s) == 0;
}

static void finish(struct pump *p)
{
	drop_streams(p, true);
	p->ops->on_done(p, NULL);
}

static void on_end(struct stream_user *u)
{
	struct pump_side *from = side_of(u);
	struct pump *p = from->pump;

	from->ended = true;
	stream_shut(other(from)->s);
	if (!p->a.ended || !p->b.ended) {
		update(other(from));
		return;
	}
	if (is_over(p)) {
		finish(p);
		return;
	}
	p->seen = progress(p);
	timer_repeat(&p->idle, PUMP_LAST_MS);
}

static void on_drain(struct stream_user *u)
{
	update(other(side_of(u)));
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	fail(side_of(u)->pump, err);
}

static const struct stream_user_ops side_ops = { on_data, on_end, on_drain, on_fail };

static void time_out(struct pump *p, uint64_t ms)
{
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "nothing moved for %llu ms", (unsigned long long)ms);
	fail(p, &err);
}

/* Nobody is told when a queue is empty, and a slow reader gets its time as long as it reads. */
static void look_at_last(struct pump *p)
{
	uint64_t now = progress(p);

	p->tries = now != p->seen ? 0 : p->tries + 1;
	p->seen = now;
	if (is_over(p))
		finish(p);
	else if (p->tries == PUMP_LAST_TRIES)
		time_out(p, (uint64_t)PUMP_LAST_MS * PUMP_LAST_TRIES);
}

static void on_idle(struct timer *t)
{
	struct pump *p = CONTAINER_OF(t, struct pump, idle);
	uint64_t now = progress(p);

	if (p->a.ended && p->b.ended)
		look_at_last(p);
	else if (now == p->seen)
		time_out(p, p->idle_ms);
	else
		p->seen = now;
}

static void side_start(struct pump *p, struct pump_side *side, struct stream *s)
{
	*side = (struct pump_side){ .s = s, .user = { &side_ops }, .pump = p };
	stream_set_user(s, &side->user);
}

void pump_start(struct pump *p, const struct pump_ops *ops, struct stream *a, struct stream *b,
		uint64_t idle_ms)
{
	*p = (struct pump){ .ops = ops, .idle_ms = idle_ms };
	side_start(p, &p->a, a);
	side_start(p, &p->b, b);
	timer_init(&p->idle, stream_loop(a), on_idle);
	if (idle_ms > 0)
		timer_repeat(&p->idle, idle_ms);
	p->seen = progress(p);
	stream_read(a, true);
	stream_read(b, true);
}

void pump_hold(struct pump *p, bool on)
{
	p->held = on;
	update(&p->a);
	update(&p->b);
}

void pump_wait(struct pump_side *side, bool on)
{
	side->waits = on;
	update(side);
}

void pump_abort(struct pump *p)
{
	if (p->a.s)
		drop_streams(p, false);
}

void pump_close(struct pump *p)
{
	if (p->a.s)
		drop_streams(p, true);
}
