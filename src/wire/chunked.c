/* chunked.c - the chunked transfer coding, one byte of coding at a time, payload in spans. */
#include "wire/chunked.h"

#include <assert.h>

#include "wire/http1_chars.h"

static int step_size(struct chunked *c, uint8_t b, struct err *err)
{
	int digit = hex_value(b);

	if (digit < 0 && b == '\r' && c->digits > 0) {
		c->state = CHUNKED_SIZE_LF;
		return 0;
	}
	if (digit < 0 && b == ';' && c->digits > 0)
		return err_set(err, ERR_INVALID, 0, "chunk extensions are refused");
	if (digit < 0)
		return err_set(err, ERR_INVALID, 0, "malformed chunk size");
	if (c->digits == CHUNKED_DIGITS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "chunk size over %d digits",
			       CHUNKED_DIGITS_MAX);
	c->digits++;
	c->left = c->left * 16 + (uint64_t)digit; /* 16 digits are 64 bits */
	return 0;
}

static int step_mark(struct chunked *c, uint8_t b, uint8_t want, enum chunked_state next,
		     struct err *err)
{
	if (b != want)
		return err_set(err, ERR_INVALID, 0, "malformed end of a line in chunked coding");
	c->state = next;
	return 0;
}

static int step_trailer(struct chunked *c, uint8_t b, struct err *err)
{
	if (c->state == CHUNKED_LINE && b == '\r')
		c->state = CHUNKED_END_LF;
	else if (c->state == CHUNKED_NAME && b == ':')
		c->state = CHUNKED_VALUE;
	else if (c->state == CHUNKED_VALUE && b == '\r')
		c->state = CHUNKED_VALUE_LF;
	else if (c->state != CHUNKED_VALUE && is_tchar(b))
		c->state = CHUNKED_NAME;
	else if (c->state != CHUNKED_VALUE || !is_text(b))
		return err_set(err, ERR_INVALID, 0, "malformed trailer");
	return 0;
}

static int step(struct chunked *c, uint8_t b, struct err *err)
{
	if (c->state >= CHUNKED_LINE && c->trailer == CHUNKED_TRAILER_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "trailer over %d bytes", CHUNKED_TRAILER_MAX);
	c->trailer += c->state >= CHUNKED_LINE;
	switch (c->state) {
	case CHUNKED_SIZE:
		return step_size(c, b, err);
	case CHUNKED_SIZE_LF:
		return step_mark(c, b, '\n', c->left > 0 ? CHUNKED_DATA : CHUNKED_LINE, err);
	case CHUNKED_DATA_CR:
		return step_mark(c, b, '\r', CHUNKED_DATA_LF, err);
	case CHUNKED_DATA_LF:
		c->digits = 0;
		return step_mark(c, b, '\n', CHUNKED_SIZE, err);
	case CHUNKED_LINE:
	case CHUNKED_NAME:
	case CHUNKED_VALUE:
		return step_trailer(c, b, err);
	case CHUNKED_VALUE_LF:
		return step_mark(c, b, '\n', CHUNKED_LINE, err);
	case CHUNKED_END_LF:
		return step_mark(c, b, '\n', CHUNKED_DONE, err);
	case CHUNKED_DATA:
	case CHUNKED_DONE:
		break;
	}
	abort();
}

enum decode chunked_next(struct chunked *c, struct bytes *in, struct bytes *ret, struct err *err)
{
	while (in->len > 0 && c->state != CHUNKED_DATA && c->state != CHUNKED_DONE) {
		if (step(c, in->ptr[0], err) < 0)
			return DECODE_BAD;
		*in = bytes_tail(*in, 1);
	}
	if (c->state == CHUNKED_DONE) {
		*ret = (struct bytes){ 0 };
		return DECODE_OK;
	}
	if (in->len == 0)
		return DECODE_MORE;
	*ret = bytes_head(*in, c->left);
	*in = bytes_tail(*in, ret->len);
	c->left -= ret->len;
	if (c->left == 0)
		c->state = CHUNKED_DATA_CR;
	return DECODE_OK;
}

int chunked_put_head(struct buf *out, size_t n, struct err *err)
{
	assert(n > 0);
	return buf_printf(out, err, "%zx\r\n", n);
}

void chunked_fill_front(uint8_t front[static CHUNKED_FRONT], size_t n)
{
	static const char digits[] = "0123456789abcdef";

	assert(n > 0 && n <= UINT32_MAX);
	for (size_t i = CHUNKED_FRONT - 2; i > 0; i--, n >>= 4)
		front[i - 1] = (uint8_t)digits[n & 15];
	memcpy(front + CHUNKED_FRONT - 2, "\r\n", 2);
}

int chunked_put_tail(struct buf *out, struct err *err)
{
	return buf_add(out, BYTES_LIT("\r\n"), err);
}

int chunked_put_last(struct buf *out, struct err *err)
{
	return buf_add(out, BYTES_LIT("0\r\n\r\n"), err);
}
