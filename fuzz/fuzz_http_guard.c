/* fuzz_http_guard.c - promises of http_guard: what passes is a row of requests, each for the one
 * host, each with our field once and no other of that name; how the bytes were split changes
 * nothing of it. */
#include "http/http_guard.h"

#include "fuzz/must.h"
#include "wire/http1_field.h"

enum { OUT_MAX = 4 * 1024 * 1024 };

static const struct http1_field ours = { BYTES_LIT("x-key"), BYTES_LIT("ours") };

static int pass(struct bytes in, size_t step, struct buf *out, bool *upgraded)
{
	char host[DOMAIN_SIZE] = "a.com";
	struct http_guard g;
	struct err err = { 0 };
	int rc = 0;

	http_guard_init(&g, host);
	http_guard_add(&g, &ours, 1);
	while (rc == 0 && in.len > 0) {
		rc = http_guard_feed(&g, bytes_head(in, step), out, &err);
		in = bytes_tail(in, step);
	}
	if (rc < 0)
		must_say_why(&err);
	*upgraded = http_guard_waits(&g);
	http_guard_done(&g);
	return rc;
}

/* One request off the front: false when it is not whole. */
static bool one_request(struct bytes *in)
{
	struct http1_head h;
	struct body_in body;
	struct bytes value, piece;
	size_t scanned = 0, used;
	struct err err;
	enum decode d;

	if (http1_head_end(*in, &scanned, &used, &err) != DECODE_OK)
		return false;
	if (http1_parse_request(bytes_head(*in, used), &h, &err) < 0) {
		MUST(err.code == ERR_EXHAUSTED); /* with ours it has more fields than we read */
		return false;
	}
	MUST(http1_find(&h, "x-key", &value) == 1 && bytes_eq(value, ours.value));
	MUST(http1_find(&h, "x_key", &value) == 0 && http1_find(&h, "x.key", &value) == 0);
	MUST(http1_find(&h, "host", &value) == 1 &&
	     bytes_eq_nocase(bytes_head(value, 5), BYTES_LIT("a.com")));
	MUST(!http1_list_has(&h, "upgrade", "h2c"));
	/* what asks for another protocol asks us as it asks the server; no hop takes ours out */
	MUST(http1_find(&h, "upgrade", &value) == 0 || http1_upgrade(&h).len > 0);
	MUST(!http1_list_has(&h, "connection", "x-key"));
	*in = bytes_tail(*in, used);
	body_in_init(&body, &h);
	do
		d = body_in_next(&body, in, &piece, &err);
	while (d == DECODE_OK && piece.len > 0);
	MUST(d != DECODE_BAD);
	return d == DECODE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf whole = BUF_MAX(OUT_MAX), split = BUF_MAX(OUT_MAX);
	struct bytes in = { data, size }, left;
	bool upgraded, also;
	int rc;

	if (size == 0 || size > HTTP1_HEAD_MAX)
		return 0;
	rc = pass(in, size, &whole, &upgraded);
	MUST(pass(in, size / 3 + 1, &split, &also) == rc && also == upgraded);
	left = buf_view(&whole);
	while (left.len > 0 && one_request(&left))
		;
	return 0;
}
