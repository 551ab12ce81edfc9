/* fuzz_gunzip.c - promises of the gzip stream; the first byte says how the input is split. */
#include "agent/files/gunzip.h"
#include "fuzz/must.h"

enum { LIMIT = 4 * 1024 * 1024 }; /* of content: a small body may hold a lot */

struct result {
	enum decode end;
	bool whole;
	struct buf content;
	struct err err;
};

static void result_done(struct result *r)
{
	buf_done(&r->content);
}

static void unzip(struct bytes in, size_t piece, struct result *ret)
{
	struct gunzip *g = NULL;
	struct err err = { 0 };

	MUST(gunzip_open(&g, &err) == 0);
	ret->end = DECODE_MORE;
	while (in.len > 0 && ret->end == DECODE_MORE) {
		struct bytes part = bytes_head(in, piece), span;

		in = bytes_tail(in, piece);
		while ((ret->end = gunzip_next(g, &part, &span, &ret->err)) == DECODE_OK) {
			MUST(span.len > 0 && span.len <= GUNZIP_PIECE_MAX);
			if (buf_add(&ret->content, span, &err) < 0)
				break; /* enough */
		}
		MUST(ret->end != DECODE_MORE || part.len == 0);
	}
	ret->whole = gunzip_is_whole(g);
	gunzip_close(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_tail((struct bytes){ data, size }, 1);
	AUTO(result_done) struct result whole = { .content = BUF_MAX(LIMIT) };
	AUTO(result_done) struct result split = { .content = BUF_MAX(LIMIT) };

	unzip(in, SIZE_MAX, &whole);
	unzip(in, size > 0 ? (size_t)data[0] % 16 + 1 : 1, &split);
	if (whole.end == DECODE_OK || split.end == DECODE_OK) /* too much to compare */
		return 0;
	MUST(whole.end == split.end && whole.whole == split.whole);
	/* broken input may have been given out to different points before it was found broken */
	if (whole.end == DECODE_MORE)
		MUST(bytes_eq(buf_view(&whole.content), buf_view(&split.content)));
	else
		must_say_why(&whole.err);
	return 0;
}
