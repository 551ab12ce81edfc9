/* out.c - see out.h. */
#include "http/out.h"

static void on_turn_end(struct turn_end *e)
{
	http_out_flush(CONTAINER_OF(e, struct http_out, end));
}

void http_out_open(struct http_out *o, struct stream *s, http_out_slow_fn *on_slow)
{
	*o = (struct http_out){ .s = s, .end = { .on_end = on_turn_end }, .on_slow = on_slow };
}

void http_out_flush(struct http_out *o)
{
	struct err err;

	turn_end_drop(&o->end);
	if (o->held.len == 0)
		return;
	/* it fits, see http_out_room(); broken, the stream says so itself */
	o->broken = stream_write_buf(o->s, &o->held, &err) < 0;
	buf_done(&o->held);
	if (stream_queued(o->s) > 0)
		o->on_slow(o);
}

void http_out_done(struct http_out *o)
{
	turn_end_drop(&o->end);
	buf_done(&o->held);
	o->s = NULL;
}

size_t http_out_room(struct http_out *o)
{
	size_t room = stream_room(o->s);

	return room > o->held.len ? room - o->held.len : 0;
}

size_t http_out_queued(struct http_out *o)
{
	/* a stream tells of a drain only what it was given */
	if (o->held.len + stream_queued(o->s) > STREAM_LOW_WATER)
		http_out_flush(o);
	return o->held.len + stream_queued(o->s);
}

static int may_write(struct http_out *o, size_t n, struct err *err)
{
	if (o->broken)
		return err_set(err, ERR_UNAVAILABLE, 0, "write");
	if (n > http_out_room(o))
		return err_set(err, ERR_EXHAUSTED, 0, "write queue limit of %d bytes reached",
			       STREAM_QUEUE_MAX);
	return 0;
}

/* Does a piece wait for others? Else what is held has left, and it may follow. */
static bool waits(struct http_out *o, size_t n)
{
	if (n < HTTP_OUT_ALONE && o->held.len + n <= HTTP_OUT_HELD)
		return true;
	http_out_flush(o);
	return n < HTTP_OUT_ALONE;
}

static int hold(struct http_out *o, struct bytes b, struct err *err)
{
	o->held.max = HTTP_OUT_HELD;
	if (buf_add(&o->held, b, err) < 0)
		return -1;
	turn_end_add(stream_loop(o->s), &o->end);
	return 0;
}

int http_out_write(struct http_out *o, struct bytes b, struct err *err)
{
	if (may_write(o, b.len, err) < 0)
		return -1;
	if (b.len == 0)
		return 0;
	return waits(o, b.len) ? hold(o, b, err) : stream_write(o->s, b, err);
}

int http_out_write_buf(struct http_out *o, struct buf *b, struct err *err)
{
	if (may_write(o, b->len, err) < 0)
		return -1;
	if (!waits(o, b->len))
		return stream_write_buf(o->s, b, err);
	if (o->held.len > 0) {
		if (hold(o, buf_view(b), err) < 0)
			return -1;
		buf_done(b);
		return 0;
	}
	buf_done(&o->held);
	o->held = *b; /* the first of the turn is not copied */
	*b = (struct buf){ 0 };
	return hold(o, (struct bytes){ 0 }, err);
}
