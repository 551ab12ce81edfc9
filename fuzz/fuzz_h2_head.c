/* fuzz_h2_head.c - promises of heads of HTTP/2. The input: a byte of which bit 0 says that no body
 * follows, then name=value of each field, one to a line.
 *
 * The one that matters: what is accepted, written as HTTP/1.1 for a sandbox, is read there as the
 * same request, and as one.
 */
#include "fuzz/http1_same.h"
#include "wire/h2_head.h"
#include "wire/http1_host.h"

#define KEY BYTES_LIT("AAAAAAAAAAAAAAAAAAAAAA==")

static int add_lines(struct h2_head_in *in, struct bytes text, struct err *err)
{
	struct bytes line, name;

	while (bytes_next(&text, '\n', &line)) {
		if (!bytes_cut(&line, '=', &name)) {
			name = line;
			line = (struct bytes){ 0 };
		}
		if (h2_head_add(in, name, line, err) < 0)
			return -1;
	}
	return 0;
}

static void must_be_sound(const struct http1_head *h, bool ended, bool tunnel)
{
	struct bytes value, name;
	uint16_t port;

	MUST(h->minor == 1 && h->status == 0 && h->n_fields <= HTTP1_FIELDS_MAX);
	MUST(h->method.len > 0 && h->method.len <= HTTP1_METHOD_MAX && is_plain(h->method));
	MUST(h->target.len > 0 && h->target.len <= HTTP1_TARGET_MAX && is_plain(h->target));
	MUST(http1_find(h, "host", &value) == 1 && http1_split_host(value, &name, &port));
	MUST(http1_find(h, "cookie", &value) <= 1 && http1_find(h, "content-length", &value) <= 1);
	MUST(http1_find(h, "transfer-encoding", &value) == 0);
	MUST(http1_find(h, "connection", &value) == (tunnel ? 1 : 0));
	MUST((http1_upgrade(h).len > 0) == tunnel);
	MUST(!ended || h->body == HTTP1_BODY_NONE || h->length == 0);
	MUST(h->body != HTTP1_BODY_CLOSE && (h->body == HTTP1_BODY_LENGTH || h->length == 0));
	MUST((h->form == HTTP1_ORIGIN) == (h->target.ptr[0] == '/'));
	for (size_t i = 0; i < h->n_fields; i++) {
		MUST(is_plain(h->fields[i].name) && is_plain(h->fields[i].value));
		MUST(h->fields[i].name.len > 0 && h->fields[i].name.ptr[0] != ':');
	}
}

static void must_be_one_request(const struct http1_head *h)
{
	AUTO(buf_done) struct buf again = BUF_MAX(4 * HTTP1_HEAD_MAX);
	struct http1_head read;
	struct err err = { 0 };
	size_t scanned = 0, used = 0;

	MUST(http1_put_request_line(&again, h->method, h->target, &err) == 0);
	for (size_t i = 0; i < h->n_fields; i++)
		MUST(http1_put_field(&again, h->fields[i].name, h->fields[i].value, &err) == 0);
	if (h->body == HTTP1_BODY_CHUNKED)
		MUST(http1_put_body(&again, h->body, 0, &err) == 0);
	MUST(http1_put_end(&again, &err) == 0);
	if (again.len > HTTP1_HEAD_MAX || h->n_fields == HTTP1_FIELDS_MAX)
		return;
	MUST(http1_head_end(buf_view(&again), &scanned, &used, &err) == DECODE_OK);
	MUST(used == again.len);
	MUST(http1_parse_request(buf_view(&again), &read, &err) == 0);
	MUST(bytes_eq(read.method, h->method) && bytes_eq(read.target, h->target));
	MUST(read.form == h->form);
	/* CONNECT has no body, whatever it says of one */
	MUST(read.body == h->body || h->form == HTTP1_AUTHORITY || http1_upgrade(h).len > 0);
	MUST(read.length == h->length || h->body == HTTP1_BODY_NONE);
	MUST(read.n_fields == h->n_fields + (h->body == HTTP1_BODY_CHUNKED));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool ended = size > 0 && (data[0] & 1);
	struct h2_head_in in = { 0 };
	struct http1_head h;
	struct err err = { 0 };
	struct h2_length body;

	if (add_lines(&in, bytes_tail((struct bytes){ data, size }, 1), &err) < 0 ||
	    h2_head_end(&in, ended, KEY, &h, &err) < 0) {
		must_say_why(&err);
		h2_head_done(&in);
		return 0;
	}
	MUST(in.list <= H2_LIST_MAX);
	must_be_sound(&h, ended, h2_head_is_tunnel(&in));
	must_be_one_request(&h);
	h2_length_init(&body, &h);
	MUST(h2_length_end(&body) == (h.body != HTTP1_BODY_LENGTH || h.length == 0));
	MUST(h.length == UINT64_MAX || h2_length_take(&body, h.length + 1) == !body.has_length);
	h2_head_done(&in);
	return 0;
}
