/* fuzz_http1_response.c - promises of the response head parser; the first byte picks the method. */
#include "fuzz/http1_same.h"

static void must_survive_a_relay(const struct http1_head *h, struct bytes method)
{
	AUTO(buf_done) struct buf again = BUF_MAX(2 * HTTP1_HEAD_MAX);
	struct http1_head read;
	struct err err = { 0 };

	MUST(http1_put_status_line(&again, h->status, &err) == 0);
	must_put_fields(&again, h);
	MUST(http1_parse_response(buf_view(&again), method, &read, &err) == 0);
	MUST(bytes_eq(read.reason, bytes_str(http1_reason(h->status))));
	must_be_same(h, &read);
}

/* The answers that have no body, whatever their fields say. */
static bool is_bodiless(const struct http1_head *h, struct bytes method)
{
	return h->status < 200 || h->status == 204 || h->status == 304 ||
	       bytes_eq(method, BYTES_LIT("HEAD")) ||
	       (h->status < 300 && bytes_eq(method, BYTES_LIT("CONNECT")));
}

static void must_announce_nothing(const struct http1_head *h)
{
	struct bytes value = BYTES_LIT("0");
	uint64_t length = 0;

	MUST(http1_find(h, "transfer-encoding", &value) == 0);
	http1_find(h, "content-length", &value);
	MUST(bytes_to_u64(value, &length) && length == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const methods[] = { "GET", "HEAD", "CONNECT", "POST" };
	struct bytes in = bytes_tail((struct bytes){ data, size }, 1);
	struct bytes method = bytes_str(methods[size > 0 ? data[0] % COUNT(methods) : 0]);
	struct http1_head h;
	struct err err = { 0 };
	size_t used = 0;

	if (must_end_alike(in, &used) != DECODE_OK)
		return 0;
	in = bytes_head(in, used);
	if (http1_parse_response(in, method, &h, &err) < 0) {
		must_say_why(&err);
		return 0;
	}
	must_be_plain(&h, in);
	must_frame_once(&h);
	must_close_when_told(&h);
	MUST(h.status >= 100 && h.status <= 599 && h.method.len == 0 && h.target.len == 0);
	MUST((h.body == HTTP1_BODY_NONE) == is_bodiless(&h, method));
	if (h.status < 200 || h.status == 204)
		must_announce_nothing(&h);
	must_survive_a_relay(&h, method);
	return 0;
}
