/* fuzz_chunked.c - promises of the chunked decoder; the first byte says how the input is split. */
#include "fuzz/must.h"
#include "wire/chunked.h"

struct result {
	enum decode end;
	size_t used; /* when the body is over */
	struct buf body;
	struct err err;
};

static void result_done(struct result *r)
{
	buf_done(&r->body);
}

/* Decode `in`, given in pieces of `piece` bytes. */
static void decode(struct bytes in, size_t piece, struct result *ret)
{
	struct chunked c = { 0 };
	struct err err = { 0 };
	size_t at = 0;

	ret->end = DECODE_MORE;
	while (at < in.len && ret->end == DECODE_MORE) {
		struct bytes part = bytes_head(bytes_tail(in, at), piece), left = part, span;

		while ((ret->end = chunked_next(&c, &left, &span, &ret->err)) == DECODE_OK &&
		       span.len > 0) {
			MUST(inside(span, part));
			MUST(buf_add(&ret->body, span, &err) == 0);
		}
		MUST(ret->end != DECODE_MORE || left.len == 0);
		MUST(left.len <= part.len);
		at += part.len - left.len;
	}
	ret->used = at;
}

static bool take(struct bytes *in, struct bytes text)
{
	bool ok = bytes_starts(*in, text);

	*in = ok ? bytes_tail(*in, text.len) : *in;
	return ok;
}

/* The size at the front, read by the C library. */
static uint64_t take_size(struct bytes *in)
{
	char digits[CHUNKED_DIGITS_MAX + 1];
	size_t n = 0;

	while (n < in->len && memchr("0123456789abcdefABCDEF", in->ptr[n], 22))
		n++;
	MUST(n > 0 && bytes_to_str(bytes_head(*in, n), digits, sizeof(digits)));
	*in = bytes_tail(*in, n);
	return strtoull(digits, NULL, 16);
}

/* A simpler reader, which sees the coding whole, finds the same payload in it. */
static void must_read_the_same(struct bytes coded, struct bytes body)
{
	struct bytes line;
	uint64_t n;

	while ((n = take_size(&coded)) > 0) {
		MUST(take(&coded, BYTES_LIT("\r\n")) && take(&coded, bytes_head(body, n)));
		MUST(n <= body.len && take(&coded, BYTES_LIT("\r\n")));
		body = bytes_tail(body, n);
	}
	MUST(body.len == 0 && take(&coded, BYTES_LIT("\r\n")));
	MUST(coded.len <= CHUNKED_TRAILER_MAX);
	while (bytes_cut(&coded, '\n', &line))
		MUST(line.len > 0 && line.ptr[line.len - 1] == '\r');
	MUST(line.len == 1 && coded.len == 0);
}

/* What the encoder writes, the decoder reads back. */
static void must_invert(struct bytes body, size_t piece)
{
	AUTO(result_done) struct result r = { .body = BUF_MAX(body.len) };
	AUTO(buf_done) struct buf coded = BUF_MAX((body.len + 1) * 32);
	struct err err = { 0 };

	for (size_t at = 0; at < body.len; at += piece) {
		struct bytes part = bytes_head(bytes_tail(body, at), piece);

		MUST(chunked_put_head(&coded, part.len, &err) == 0);
		MUST(buf_add(&coded, part, &err) == 0);
		MUST(chunked_put_tail(&coded, &err) == 0);
	}
	MUST(chunked_put_last(&coded, &err) == 0);
	decode(buf_view(&coded), 7, &r);
	MUST(r.end == DECODE_OK && r.used == coded.len);
	MUST(bytes_eq(buf_view(&r.body), body));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_tail((struct bytes){ data, size }, 1);
	AUTO(result_done) struct result whole = { .body = BUF_MAX(in.len) };
	AUTO(result_done) struct result split = { .body = BUF_MAX(in.len) };
	size_t piece = size > 0 ? (size_t)data[0] % 16 + 1 : 1;

	decode(in, SIZE_MAX, &whole);
	decode(in, piece, &split);
	MUST(whole.end == split.end && whole.used == split.used);
	MUST(bytes_eq(buf_view(&whole.body), buf_view(&split.body)));
	MUST(strcmp(whole.err.msg, split.err.msg) == 0);
	if (whole.end == DECODE_BAD)
		must_say_why(&whole.err);
	else
		MUST(whole.err.code == ERR_NONE);
	if (whole.end == DECODE_OK)
		must_read_the_same(bytes_head(in, whole.used), buf_view(&whole.body));
	must_invert(buf_view(&whole.body), piece);
	return 0;
}
