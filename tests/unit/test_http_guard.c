/* test_http_guard.c - requests on their way out: one host, fields set in the place of others. */
#include "tests/unit/check.h"

#include "http/http_guard.h"

#define HOST  "Host: api.example.com\r\n"
#define TOKEN "authorization: Bearer 123\r\nx-who: us\r\n"

static const struct http1_field ours[] = {
	{ BYTES_LIT("authorization"), BYTES_LIT("Bearer 123") },
	{ BYTES_LIT("x-who"), BYTES_LIT("us") },
};

/* In pieces of `step` bytes. The code of the failure, or ERR_NONE. */
static enum err_code pass(const char *in, size_t step, bool add, struct buf *out, struct err *err)
{
	char host[DOMAIN_SIZE] = "api.example.com";
	struct bytes left = bytes_str(in);
	struct http_guard g;
	int rc = 0;

	*err = (struct err){ 0 };
	http_guard_init(&g, host);
	if (add)
		http_guard_add(&g, ours, COUNT(ours));
	while (rc == 0 && left.len > 0) {
		rc = http_guard_feed(&g, bytes_head(left, step), out, err);
		left = bytes_tail(left, step);
	}
	http_guard_done(&g);
	return rc < 0 ? err->code : ERR_NONE;
}

struct row {
	const char *name, *in, *out; /* out: NULL when it is refused */
	enum err_code code;
};

static const struct row rows[] = {
	{ "added", "GET / HTTP/1.1\r\n" HOST "A: b\r\n\r\n",
	  "GET / HTTP/1.1\r\n" HOST "A: b\r\n" TOKEN "\r\n", ERR_NONE },
	{ "its own is taken away, in every spelling",
	  "GET / HTTP/1.1\r\n" HOST
	  "Authorization: mine\r\nAUTHORIZATION: mine\r\nX_Who: me\r\nX.who: me\r\n\r\n",
	  "GET / HTTP/1.1\r\n" HOST TOKEN "\r\n", ERR_NONE },
	{ "every request, not just the first",
	  "GET /1 HTTP/1.1\r\n" HOST "\r\nGET /2 HTTP/1.1\r\n" HOST "x-who: me\r\n\r\n",
	  "GET /1 HTTP/1.1\r\n" HOST TOKEN "\r\nGET /2 HTTP/1.1\r\n" HOST TOKEN "\r\n", ERR_NONE },
	{ "a body passes, whatever it looks like",
	  "POST / HTTP/1.1\r\n" HOST "Content-Length: 15\r\n\r\nx-who: me\r\n\r\nGE"
	  "GET / HTTP/1.1\r\n" HOST "\r\n",
	  "POST / HTTP/1.1\r\n" HOST "Content-Length: 15\r\n" TOKEN "\r\nx-who: me\r\n\r\nGE"
	  "GET / HTTP/1.1\r\n" HOST TOKEN "\r\n",
	  ERR_NONE },
	{ "HTTP/2 is not asked for",
	  "GET / HTTP/1.1\r\n" HOST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
	  "HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
	  "GET / HTTP/1.1\r\n" HOST "Connection: keep-alive\r\n" TOKEN "\r\n", ERR_NONE },
	{ "nor under its other names",
	  "GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket, H2C-14\r\n\r\n",
	  "GET / HTTP/1.1\r\n" HOST "Connection: keep-alive\r\n" TOKEN "\r\n", ERR_NONE },
	{ "nor is TLS, in which it goes on",
	  "GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n\r\n",
	  "GET / HTTP/1.1\r\n" HOST "Connection: keep-alive\r\n" TOKEN "\r\n", ERR_NONE },
	{ "an upgrade asked for twice is none",
	  "GET / HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: websocket\r\n"
	  "Upgrade: tcp\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
	  "GET / HTTP/1.1\r\n" HOST "Connection: keep-alive\r\n" TOKEN
	  "\r\nGET / HTTP/1.1\r\n" HOST TOKEN "\r\n",
	  ERR_NONE },
	{ "nor is one that Connection does not speak of",
	  "GET / HTTP/1.1\r\n" HOST "Upgrade: tcp\r\n\r\n", "GET / HTTP/1.1\r\n" HOST TOKEN "\r\n",
	  ERR_NONE },
	{ "a field of ours is not for one hop",
	  "GET / HTTP/1.1\r\n" HOST "Connection: close, Authorization, x-who\r\n\r\n",
	  "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n" TOKEN "\r\n", ERR_NONE },
	{ "an upgrade keeps its word",
	  "GET / HTTP/1.1\r\n" HOST "Connection: keep-alive, Upgrade, X-Who\r\n"
	  "Upgrade: websocket\r\n\r\n",
	  "GET / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\nConnection: Upgrade\r\n" TOKEN "\r\n",
	  ERR_NONE },
	{ "another host", "GET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n", NULL, ERR_DENIED },
	{ "another host behind it",
	  "GET / HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n", NULL,
	  ERR_DENIED },
	{ "an echo", "TRACE / HTTP/1.1\r\n" HOST "\r\n", NULL, ERR_DENIED },
	{ "an echo, for who does not mind", "Trace / HTTP/1.1\r\n" HOST "\r\n", NULL, ERR_DENIED },
	{ "a proxy", "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n",
	  NULL, ERR_DENIED },
	{ "a length for others",
	  "POST / HTTP/1.1\r\n" HOST
	  "Content-Length: 5\r\nTransfer_Encoding: chunked\r\n\r\n0\r\n\r\n",
	  NULL, ERR_INVALID },
	{ "another one", "POST / HTTP/1.1\r\n" HOST "content_length: 9\r\n\r\n", NULL,
	  ERR_INVALID },
	{ "no HTTP", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", NULL, ERR_INVALID },
};

static void each_request_gets_our_fields_and_loses_its_own(void **state)
{
	struct err err;

	(void)state;
	FOR_ROWS(row, rows) {
		for (size_t step = 1; step < 4096; step *= 7) {
			AUTO(buf_done) struct buf out = BUF_MAX(64 * 1024);

			assert_int_equal(pass(row->in, step, true, &out, &err), row->code);
			if (!row->out)
				continue;
			assert_int_equal(out.len, strlen(row->out));
			assert_memory_equal(out.ptr, row->out, out.len);
		}
	}
}

static void fields_behind_a_body_do_not_pass(void **state)
{
	static const char in[] = "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
				 "5\r\nhello\r\n0\r\nAuthorization: mine\r\n\r\n"
				 "GET / HTTP/1.1\r\n" HOST "\r\n";
	static const char wanted[] =
		"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" TOKEN
		"\r\n5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n" HOST TOKEN "\r\n";
	AUTO(buf_done) struct buf out = BUF_MAX(64 * 1024);
	struct err err;

	(void)state;
	assert_int_equal(pass(in, sizeof(in), true, &out, &err), ERR_NONE);
	assert_int_equal(out.len, strlen(wanted));
	assert_memory_equal(out.ptr, wanted, out.len);
}

static void without_fields_it_passes_as_it_was_written(void **state)
{
	static const char in[] = "POST / HTTP/1.1\r\n" HOST "X-Who:  me\r\n"
				 "Transfer-Encoding: chunked\r\n\r\n"
				 "5\r\nhello\r\n0\r\nTail: 1\r\n\r\n";
	AUTO(buf_done) struct buf out = BUF_MAX(64 * 1024);
	struct err err;

	(void)state;
	assert_int_equal(pass(in, 10, false, &out, &err), ERR_NONE);
	assert_int_equal(out.len, strlen(in));
	assert_memory_equal(out.ptr, in, out.len);
}

/* Small requests become large ones: what would pass at once is bounded. */
static void a_row_of_requests_is_bounded(void **state)
{
	AUTO(buf_done) struct buf in = BUF_MAX(64 * 1024), out = BUF_MAX(4096);
	struct err err;

	(void)state;
	for (int i = 0; i < 200; i++)
		assert_int_equal(buf_printf(&in, &err, "GET / HTTP/1.1\r\n" HOST "\r\n"), 0);
	assert_int_equal(buf_add(&in, (struct bytes){ (const uint8_t *)"", 1 }, &err), 0);
	assert_int_equal(pass((const char *)in.ptr, in.len, true, &out, &err), ERR_EXHAUSTED);
}

static void some_fields_are_not_for_rules(void **state)
{
	(void)state;
	assert_true(http_rewrite_may_set(BYTES_LIT("Authorization")));
	assert_true(http_rewrite_may_set(BYTES_LIT("Cookie")));
	assert_false(http_rewrite_may_set(BYTES_LIT("Host")));
	assert_false(http_rewrite_may_set(BYTES_LIT("Content_Length")));
	assert_false(http_rewrite_may_set(BYTES_LIT("transfer-encoding")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_request_gets_our_fields_and_loses_its_own),
		cmocka_unit_test(fields_behind_a_body_do_not_pass),
		cmocka_unit_test(without_fields_it_passes_as_it_was_written),
		cmocka_unit_test(a_row_of_requests_is_bounded),
		cmocka_unit_test(some_fields_are_not_for_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
