/* fuzz_connect.c - promises of the Connect envelope and of the errors put into it. */
#include "fuzz/must.h"
#include "wire/connect.h"
#include "wire/json.h"

enum { LIMIT = 128 * 1024 };

/* Any bytes at all can be reported as an error, and the report is JSON. */
static void check_report(struct bytes message)
{
	AUTO(buf_done) struct buf out = BUF_MAX(16 * 1024);
	AUTO(json_decrefp) json_t *v = NULL;
	struct bytes code = { 0 }, text = { 0 };
	enum connect_code want = message.len % (CONNECT_CODES - 1) + 1;
	json_t *error = NULL;
	struct err err = { 0 };
	struct envelope e;
	size_t used = 0;

	MUST(connect_put_end_error(&out, want, message, &err) == 0);
	MUST(envelope_decode(buf_view(&out), out.len, &e, &used, &err) == DECODE_OK);
	MUST(used == out.len && e.end);
	MUST(json_decode(e.body, e.body.len, 2, &v, &err) == 0);
	MUST(json_want_object(v, "error", &error, &err) == 0);
	MUST(json_want_string(error, "code", &code, &err) == 0);
	MUST(json_want_string(error, "message", &text, &err) == 0);
	MUST(bytes_eq(code, bytes_str(connect_code_name(want))));
	MUST(text.len == message.len || text.len == CONNECT_MESSAGE_MAX);
}

/* The answer, worked out another way. */
static enum decode expected(struct bytes in)
{
	uint64_t len = 0;

	if (in.len > 0 && in.ptr[0] != 0 && in.ptr[0] != ENVELOPE_END)
		return DECODE_BAD;
	if (in.len < ENVELOPE_HEAD)
		return DECODE_MORE;
	for (size_t i = 1; i < ENVELOPE_HEAD; i++)
		len = len * 256 + in.ptr[i];
	if (len > LIMIT)
		return DECODE_BAD;
	return in.len >= ENVELOPE_HEAD + len ? DECODE_OK : DECODE_MORE;
}

/* Whole or byte by byte, it ends between two messages or it does not. */
static void check_follow(struct bytes in)
{
	struct envelope_place whole = { 0 }, slow = { 0 };
	bool between = true;
	struct bytes left = in;

	envelope_follow(&whole, in);
	for (size_t i = 0; i < in.len; i++)
		envelope_follow(&slow, bytes_head(bytes_tail(in, i), 1));
	while (left.len > 0 && between) {
		uint64_t len = ENVELOPE_HEAD;

		for (size_t i = 1, n = 0; i < ENVELOPE_HEAD && left.len >= ENVELOPE_HEAD; i++) {
			n = n * 256 + left.ptr[i];
			len = ENVELOPE_HEAD + n;
		}
		between = left.len >= len && !(left.ptr[0] & ENVELOPE_END);
		left = bytes_tail(left, len);
	}
	MUST(envelope_between(&whole) == between && envelope_between(&slow) == between);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	AUTO(buf_done) struct buf again = BUF_MAX(LIMIT + ENVELOPE_HEAD);
	struct envelope e, shorter;
	struct err err = { 0 };
	size_t used = 0, unused;
	enum decode got;

	check_report(in);
	check_follow(in);
	got = envelope_decode(in, LIMIT, &e, &used, &err);
	MUST(got == expected(in));
	switch (got) {
	case DECODE_MORE:
		MUST(err.code == ERR_NONE);
		return 0;
	case DECODE_BAD:
		must_say_why(&err);
		return 0;
	case DECODE_OK:
		break;
	}
	MUST(used <= size && e.body.len == used - ENVELOPE_HEAD && inside(e.body, in));
	for (size_t n = 0; n < used; n++)
		MUST(envelope_decode(bytes_head(in, n), LIMIT, &shorter, &unused, &err) ==
		     DECODE_MORE);
	MUST(envelope_put(&again, &e, &err) == 0);
	MUST(bytes_eq(buf_view(&again), bytes_head(in, used)));
	return 0;
}
