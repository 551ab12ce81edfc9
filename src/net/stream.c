/* stream.c - the part of every stream that does not depend on what is underneath. */
#include "net/stream.h"

#include <assert.h>

#include "net/stream_layer.h"

void stream_set_user(struct stream *s, struct stream_user *u)
{
	assert(!s->closed);
	s->user = u;
	if (!u)
		s->reading = false;
	s->ops->read(s, s->reading);
}

void stream_read(struct stream *s, bool on)
{
	assert(!s->closed && (s->user || !on));
	if (s->reading == on)
		return;
	s->reading = on;
	s->ops->read(s, on);
}

/* Whoever relays for two writes when one of them wants it; what the other did may end it first. */
static int after_shut(struct err *err)
{
	return err_set(err, ERR_INVALID, 0, "nothing may follow a half close");
}

static int may_write(struct stream *s, size_t n, struct err *err)
{
	assert(!s->closed);
	if (s->shut && n > 0)
		return after_shut(err);
	if (n > stream_room(s))
		return err_set(err, ERR_EXHAUSTED, 0, "write queue limit of %d bytes reached",
			       STREAM_QUEUE_MAX);
	return 0;
}

int stream_write(struct stream *s, struct bytes b, struct err *err)
{
	if (may_write(s, b.len, err) < 0)
		return -1;
	return b.len > 0 ? s->ops->write(s, b, NULL, err) : 0;
}

int stream_write_buf(struct stream *s, struct buf *b, struct err *err)
{
	if (may_write(s, b->len, err) < 0)
		return -1;
	if (b->len > 0 && s->ops->write(s, (struct bytes){ 0 }, b, err) < 0)
		return -1;
	buf_done(b);
	return 0;
}

enum stream_file stream_send_file(struct stream *s, int file, size_t max, size_t *ret_n,
				  struct err *err)
{
	assert(!s->closed && max > 0);
	if (s->shut) {
		(void)after_shut(err);
		return STREAM_FILE_FAILED;
	}
	return s->ops->send_file ? s->ops->send_file(s, file, max, ret_n, err) : STREAM_FILE_UNFIT;
}

void stream_shut(struct stream *s)
{
	assert(!s->closed);
	if (s->shut)
		return;
	s->shut = true;
	s->ops->shut(s);
}

static void stream_end(struct stream *s, bool graceful)
{
	assert(!s->closed);
	s->closed = true;
	s->user = NULL;
	s->ops->close(s, graceful);
}

void stream_close(struct stream *s)
{
	stream_end(s, true);
}

void stream_abort(struct stream *s)
{
	stream_end(s, false);
}

size_t stream_queued(struct stream *s)
{
	return s->ops->queued(s);
}

size_t stream_room(struct stream *s)
{
	size_t held = stream_queued(s);

	return held < STREAM_QUEUE_MAX ? STREAM_QUEUE_MAX - held : 0;
}

uint64_t stream_sent(struct stream *s)
{
	return s->ops->sent(s);
}

struct loop *stream_loop(const struct stream *s)
{
	return s->loop;
}
