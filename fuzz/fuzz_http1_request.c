/* fuzz_http1_request.c - promises of the request head parser. */
#include "fuzz/http1_same.h"
#include "wire/http1_host.h"

/* The host is there once, and it is one that can be split. */
static void must_have_host(const struct http1_head *h)
{
	struct bytes host = { 0 }, name = { 0 };
	size_t n = http1_find(h, "HOST", &host);
	uint16_t port = 0;

	MUST(n == 1 || (n == 0 && h->minor == 0));
	if (n == 0)
		return;
	MUST(http1_split_host(host, &name, &port));
	MUST(inside(name, host) && name.len > 0);
	MUST(port > 0 || name.len == host.len);
	if (h->form == HTTP1_AUTHORITY)
		MUST(bytes_eq_nocase(h->target, host));
	if (h->form == HTTP1_ABSOLUTE) /* http://host or https://host */
		MUST(bytes_eq_nocase(bytes_head(bytes_tail(h->target, 7), host.len), host) ||
		     bytes_eq_nocase(bytes_head(bytes_tail(h->target, 8), host.len), host));
}

/* What was accepted can be written, and what was written is read the same. */
static void must_survive_a_relay(const struct http1_head *h)
{
	AUTO(buf_done) struct buf again = BUF_MAX(2 * HTTP1_HEAD_MAX);
	struct http1_head read;
	struct err err = { 0 };
	size_t used = 0;

	if (h->minor == 0) /* is written as 1.1, where other rules hold */
		return;
	MUST(http1_put_request_line(&again, h->method, h->target, &err) == 0);
	must_put_fields(&again, h);
	if (again.len <= HTTP1_HEAD_MAX) {
		MUST(must_end_alike(buf_view(&again), &used) == DECODE_OK);
		MUST(used == again.len);
	}
	MUST(http1_parse_request(buf_view(&again), &read, &err) == 0);
	must_be_same(h, &read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct http1_head h;
	struct err err = { 0 };
	size_t used = 0;

	if (must_end_alike(in, &used) != DECODE_OK)
		return 0;
	in = bytes_head(in, used);
	if (http1_parse_request(in, &h, &err) < 0) {
		must_say_why(&err);
		return 0;
	}
	must_be_plain(&h, in);
	must_frame_once(&h);
	must_close_when_told(&h);
	must_have_host(&h);
	MUST(h.body != HTTP1_BODY_CLOSE && h.status == 0);
	MUST(h.target.len > 0 && h.target.len <= HTTP1_TARGET_MAX);
	MUST((h.form == HTTP1_ORIGIN) == (h.target.ptr[0] == '/'));
	MUST(inside(http1_upgrade(&h), in));
	MUST(!http1_expects_continue(&h) || h.minor == 1);
	must_survive_a_relay(&h);
	return 0;
}
