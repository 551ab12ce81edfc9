/* body.c - a body is a length, a row of chunks, or what comes before the end. */
#include "http/body.h"

enum { GATHER_BELOW = HTTP_OUT_ALONE }; /* bytes; a larger chunk is not copied */

void body_in_init(struct body_in *b, const struct http1_head *h)
{
	*b = (struct body_in){ .kind = h->body, .left = h->length };
	if (h->body == HTTP1_BODY_NONE || (h->body == HTTP1_BODY_LENGTH && h->length == 0))
		b->over = true;
}

static enum decode next_of_length(struct body_in *b, struct bytes *in, struct bytes *ret)
{
	*ret = bytes_head(*in, b->left < SIZE_MAX ? (size_t)b->left : SIZE_MAX);
	*in = bytes_tail(*in, ret->len);
	b->left -= ret->len;
	if (ret->len > 0)
		return DECODE_OK;
	return DECODE_MORE;
}

enum decode body_in_next(struct body_in *b, struct bytes *in, struct bytes *ret, struct err *err)
{
	enum decode d = DECODE_OK;

	*ret = (struct bytes){ 0 };
	if (b->over)
		return DECODE_OK;
	if (in->len == 0)
		return DECODE_MORE;
	if (b->kind == HTTP1_BODY_LENGTH) {
		d = next_of_length(b, in, ret);
		b->over = b->left == 0;
	} else if (b->kind == HTTP1_BODY_CHUNKED) {
		d = chunked_next(&b->chunked, in, ret, err);
		b->over = d == DECODE_OK && ret->len == 0;
	} else {
		*ret = *in;
		*in = (struct bytes){ 0 };
	}
	if (d == DECODE_OK)
		b->seen += ret->len;
	return d;
}

/* Is there another small chunk behind `first`, and may it be looked at? */
static bool may_gather(const struct body_in *b, struct bytes in, struct bytes first, size_t left)
{
	return b->kind == HTTP1_BODY_CHUNKED && first.len > 0 && first.len < GATHER_BELOW &&
	       in.len > 2 && left > 0;
}

enum decode body_in_gather(struct body_in *b, struct bytes *in, struct buf *room, size_t *left,
			   struct bytes *ret, struct err *err)
{
	enum decode d = body_in_next(b, in, ret, err);
	struct bytes next = *ret;
	uint8_t *all;

	*left -= *left > 0;
	if (d != DECODE_OK || !may_gather(b, *in, next, *left) ||
	    buf_reserve(room, next.len + in->len, &all, err) < 0) /* no memory: one at a time */
		return d;
	/* a refusal or the end that is found here comes again with the next call */
	while (d == DECODE_OK && next.len > 0) {
		memcpy(all + room->len, next.ptr, next.len);
		buf_claim(room, next.len);
		if (!may_gather(b, *in, next, *left))
			break;
		d = body_in_next(b, in, &next, err);
		(*left)--;
	}
	*ret = buf_view(room);
	return DECODE_OK;
}

/* Kept free behind every piece, so that ending a body never fails for want of room. */
enum { LAST_ROOM = 16 };

static int send_chunk(struct http_out *to, struct bytes piece, struct err *err)
{
	AUTO(buf_done) struct buf b = BUF_MAX(STREAM_QUEUE_MAX);
	size_t room_left = http_out_room(to), extra = CHUNKED_HEAD_MAX + 2 + LAST_ROOM;
	uint8_t *room;

	if (room_left < extra || piece.len > room_left - extra)
		return err_set(err, ERR_EXHAUSTED, 0, "no room for a piece of %zu bytes",
			       piece.len);
	/* all of it at once, so that the buffer is not grown step by step */
	if (buf_reserve(&b, piece.len + CHUNKED_HEAD_MAX + 2, &room, err) < 0 ||
	    chunked_put_head(&b, piece.len, err) < 0 || buf_add(&b, piece, err) < 0 ||
	    chunked_put_tail(&b, err) < 0)
		return -1;
	return http_out_write_buf(to, &b, err);
}

static int send_chunk_buf(struct http_out *to, struct buf *piece, struct err *err)
{
	size_t room_left = http_out_room(to), extra = 2 + LAST_ROOM;

	if (room_left < extra || piece->len > room_left - extra)
		return err_set(err, ERR_EXHAUSTED, 0, "no room for a piece of %zu bytes",
			       piece->len);
	chunked_fill_front(piece->ptr, piece->len - BODY_FRONT);
	if (chunked_put_tail(piece, err) < 0)
		return -1;
	return http_out_write_buf(to, piece, err);
}

int body_out_send_buf(struct body_out *b, struct http_out *to, struct buf *piece, struct err *err)
{
	AUTO(buf_done) struct buf own = *piece;

	*piece = (struct buf){ 0 };
	if (b->kind == HTTP1_BODY_CHUNKED && !b->silent && own.len > BODY_FRONT)
		return send_chunk_buf(to, &own, err);
	return body_out_send(b, to, bytes_tail(buf_view(&own), BODY_FRONT), err);
}

struct body_out body_out_answer(const struct http1_head *asked, unsigned int status, int64_t length)
{
	struct body_out b = { .silent = bytes_eq(asked->method, BYTES_LIT("HEAD")) };

	if (status == 204 || status == 304) {
		b.kind = HTTP1_BODY_NONE;
	} else if (length != HTTP_CHUNKED) {
		b.kind = HTTP1_BODY_LENGTH;
		b.left = (uint64_t)length;
	} else if (asked->minor >= 1) {
		b.kind = HTTP1_BODY_CHUNKED;
	} else {
		b.kind = HTTP1_BODY_CLOSE;
	}
	return b;
}

int body_out_send(struct body_out *b, struct http_out *to, struct bytes piece, struct err *err)
{
	if (piece.len == 0)
		return 0;
	if (b->kind == HTTP1_BODY_NONE || (b->kind == HTTP1_BODY_LENGTH && piece.len > b->left))
		return err_set(err, ERR_INVALID, 0, "the body is longer than was promised");
	if (!b->silent) {
		int rc = b->kind == HTTP1_BODY_CHUNKED ? send_chunk(to, piece, err)
						       : http_out_write(to, piece, err);
		if (rc < 0)
			return -1;
	}
	if (b->kind == HTTP1_BODY_LENGTH)
		b->left -= piece.len;
	return 0;
}

int body_out_finish(struct body_out *b, struct http_out *to, struct err *err)
{
	AUTO(buf_done) struct buf last = BUF_MAX(LAST_ROOM);

	if (b->kind == HTTP1_BODY_LENGTH && b->left > 0 && !b->silent)
		return err_set(err, ERR_INVALID, 0, "the body is shorter than was promised");
	if (b->kind != HTTP1_BODY_CHUNKED || b->silent)
		return 0;
	if (chunked_put_last(&last, err) < 0)
		return -1;
	return http_out_write(to, buf_view(&last), err);
}
