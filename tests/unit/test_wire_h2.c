/* test_wire_h2.c - heads of HTTP/2: what is taken, what is refused, and what becomes of it. */
#include "tests/unit/check.h"

#include "wire/h2_head.h"
#include "wire/http1_field.h"

#define KEY BYTES_LIT("AAAAAAAAAAAAAAAAAAAAAA==")

struct line {
	const char *name, *value;
};

struct row {
	const char *name;
	struct line lines[12];
	bool ended;
	enum err_code code;
	const char *why; /* of a failure: a part of it */
};

#define M(v) { ":method", v }
#define S    { ":scheme", "https" }
#define A(v) { ":authority", v }
#define P(v) { ":path", v }
#define GET  M("GET"), S, A("a.b"), P("/x?y=1")
#define WS   M("CONNECT"), S, A("a.b"), P("/x"), { ":protocol", "websocket" }

static const struct row rows[] = {
	{ "get", { GET }, true, ERR_NONE, NULL },
	{ "get with a host that agrees", { GET, { "host", "A.B" } }, true, ERR_NONE, NULL },
	{ "host alone", { M("GET"), S, P("/"), { "host", "a" } }, true, ERR_NONE, NULL },
	{ "options of all", { M("OPTIONS"), S, A("a"), P("*") }, true, ERR_NONE, NULL },
	{ "connect", { M("CONNECT"), A("a.b:443") }, false, ERR_NONE, NULL },
	{ "websocket", { WS }, false, ERR_NONE, NULL },
	{ "te: trailers", { GET, { "te", "trailers" } }, true, ERR_NONE, NULL },
	{ "a length of nothing", { GET, { "content-length", "0" } }, true, ERR_NONE, NULL },
	{ "nothing at all", { { 0 } }, true, ERR_INVALID, "missing" },
	{ "no method", { S, A("a"), P("/") }, true, ERR_INVALID, "pseudo-field is missing" },
	{ "no path", { M("GET"), S, A("a") }, true, ERR_INVALID, "pseudo-field is missing" },
	{ "no scheme", { M("GET"), A("a"), P("/") }, true, ERR_INVALID, "pseudo-field is missing" },
	{ "no host", { M("GET"), S, P("/") }, true, ERR_INVALID, "missing host" },
	{ "empty path", { M("GET"), S, A("a"), P("") }, true, ERR_INVALID, "empty" },
	{ "another scheme",
	  { M("GET"), { ":scheme", "ftp" }, A("a"), P("/") },
	  true,
	  ERR_INVALID,
	  "scheme" },
	{ "two methods", { M("GET"), M("GET"), S, A("a"), P("/") }, true, ERR_INVALID, "repeated" },
	{ "a response's", { GET, { ":status", "200" } }, true, ERR_INVALID, "unknown" },
	{ "pseudo behind",
	  { M("GET"), S, A("a"), { "x", "y" }, P("/") },
	  true,
	  ERR_INVALID,
	  "behind" },
	{ "upper case", { GET, { "X-Y", "z" } }, true, ERR_INVALID, "field name" },
	{ "no name", { GET, { "", "z" } }, true, ERR_INVALID, "field name" },
	{ "a blank in a name", { GET, { "x y", "z" } }, true, ERR_INVALID, "field name" },
	{ "line feed", { GET, { "x", "a\nb" } }, true, ERR_INVALID, "field value" },
	{ "blank before", { GET, { "x", " a" } }, true, ERR_INVALID, "field value" },
	{ "blank behind", { GET, { "x", "a\t" } }, true, ERR_INVALID, "field value" },
	{ "connection", { GET, { "connection", "close" } }, true, ERR_INVALID, "connection" },
	{ "transfer-encoding",
	  { GET, { "transfer-encoding", "chunked" } },
	  false,
	  ERR_INVALID,
	  "connection" },
	{ "upgrade", { GET, { "upgrade", "h2c" } }, true, ERR_INVALID, "connection" },
	{ "keep-alive", { GET, { "keep-alive", "1" } }, true, ERR_INVALID, "connection" },
	{ "proxy-connection",
	  { GET, { "proxy-connection", "x" } },
	  true,
	  ERR_INVALID,
	  "connection" },
	{ "te", { GET, { "te", "gzip" } }, true, ERR_INVALID, "te" },
	{ "two hosts", { GET, { "host", "a.b" }, { "host", "a.b" } }, true, ERR_INVALID, "host" },
	{ "another host", { GET, { "host", "c.d" } }, true, ERR_INVALID, "disagree" },
	{ "user in authority", { M("GET"), S, A("u@a"), P("/") }, true, ERR_INVALID, "host" },
	{ "a fragment", { M("GET"), S, A("a"), P("/#x") }, true, ERR_INVALID, "path" },
	{ "a blank in a path", { M("GET"), S, A("a"), P("/ x") }, true, ERR_INVALID, "path" },
	{ "another form", { M("GET"), S, A("a"), P("http://a/") }, true, ERR_INVALID, "form" },
	{ "star", { M("GET"), S, A("a"), P("*") }, true, ERR_INVALID, "form" },
	{ "bad method", { M("G T"), S, A("a"), P("/") }, true, ERR_INVALID, "method" },
	{ "the preface's method", { M("PRI"), S, A("a"), P("/") }, true, ERR_INVALID, "method" },
	{ "connect with a path",
	  { M("CONNECT"), A("a:1"), P("/") },
	  false,
	  ERR_INVALID,
	  "CONNECT" },
	{ "connect without a port", { M("CONNECT"), A("a") }, false, ERR_INVALID, "port" },
	{ "a protocol of GET",
	  { GET, { ":protocol", "websocket" } },
	  false,
	  ERR_INVALID,
	  "without CONNECT" },
	{ "another protocol",
	  { M("CONNECT"), S, A("a"), P("/"), { ":protocol", "connect-udp" } },
	  false,
	  ERR_NOT_FOUND,
	  "websocket" },
	{ "a websocket that ends", { WS }, true, ERR_INVALID, "tunnel" },
	{ "less than promised", { GET, { "content-length", "1" } }, true, ERR_INVALID, "shorter" },
	{ "two lengths",
	  { GET, { "content-length", "1" }, { "content-length", "1" } },
	  false,
	  ERR_INVALID,
	  "content-length" },
	{ "a length that is none",
	  { GET, { "content-length", "+1" } },
	  false,
	  ERR_INVALID,
	  "content-length" },
};

static int read_lines(struct h2_head_in *in, const struct line *lines, size_t n, bool ended,
		      struct http1_head *head, struct err *err)
{
	for (size_t i = 0; i < n && lines[i].name; i++)
		if (h2_head_add(in, bytes_str(lines[i].name), bytes_str(lines[i].value), err) < 0)
			return -1;
	return h2_head_end(in, ended, KEY, head, err);
}

static void every_row(void **state)
{
	(void)state;
	FOR_ROWS(row, rows) {
		struct h2_head_in in = { 0 };
		struct http1_head head;
		struct err err = { 0 };

		(void)!read_lines(&in, row->lines, COUNT(row->lines), row->ended, &head, &err);
		if (err.code != row->code || (row->why && !strstr(err.msg, row->why)))
			fail_msg("%s: %s", row->name, err.msg);
		h2_head_done(&in);
	}
}

static void what_becomes_of_it(void **state)
{
	static const struct line lines[] = { GET,
					     { "cookie", "a=1" },
					     { "x", "y" },
					     { "cookie", "b=2" },
					     { "content-length", "7" } };
	struct h2_head_in in = { 0 };
	struct http1_head head;
	struct h2_length body;
	struct bytes value;
	struct err err;

	(void)state;
	assert_int_equal(read_lines(&in, lines, COUNT(lines), false, &head, &err), 0);
	assert_true(bytes_eq(head.method, BYTES_LIT("GET")));
	assert_true(bytes_eq(head.target, BYTES_LIT("/x?y=1")));
	assert_int_equal(http1_find(&head, "host", &value), 1);
	assert_true(bytes_eq(value, BYTES_LIT("a.b")));
	assert_int_equal(http1_find(&head, "cookie", &value), 1);
	assert_true(bytes_eq(value, BYTES_LIT("a=1; b=2")));
	assert_int_equal(head.body, HTTP1_BODY_LENGTH);
	assert_int_equal(head.length, 7);
	h2_length_init(&body, &head);
	assert_true(h2_length_take(&body, 6));
	assert_false(h2_length_end(&body));
	assert_false(h2_length_take(&body, 2));
	assert_true(h2_length_take(&body, 1));
	assert_true(h2_length_end(&body));
	h2_head_done(&in);
}

static void a_websocket_becomes_an_upgrade(void **state)
{
	static const struct line lines[] = { WS,
					     { "sec-websocket-key", "theirs" },
					     { "sec-websocket-version", "13" } };
	struct h2_head_in in = { 0 };
	struct http1_head head;
	struct bytes value;
	struct err err;

	(void)state;
	assert_int_equal(read_lines(&in, lines, COUNT(lines), false, &head, &err), 0);
	assert_true(h2_head_is_tunnel(&in));
	assert_true(bytes_eq(head.method, BYTES_LIT("GET")));
	assert_true(bytes_eq(http1_upgrade(&head), BYTES_LIT("websocket")));
	assert_int_equal(http1_find(&head, "sec-websocket-key", &value), 1);
	assert_true(bytes_eq(value, KEY));
	assert_int_equal(http1_find(&head, "sec-websocket-version", &value), 1);
	assert_int_equal(head.body, HTTP1_BODY_NONE);
	h2_head_done(&in);
}

static void too_much_is_refused(void **state)
{
	static char long_value[H2_LIST_MAX];
	struct h2_head_in in = { 0 };
	struct http1_head head;
	struct err err = { 0 };
	char name[16];

	(void)state;
	memset(long_value, 'a', sizeof(long_value) - 1);
	assert_int_equal(h2_head_add(&in, BYTES_LIT("x"), bytes_str(long_value), &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	h2_head_done(&in);
	for (int i = 0; i <= HTTP1_FIELDS_MAX; i++) {
		snprintf(name, sizeof(name), "x%d", i);
		assert_int_equal(h2_head_add(&in, bytes_str(name), BYTES_LIT("y"), &err), 0);
	}
	assert_int_equal(h2_head_end(&in, true, KEY, &head, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	h2_head_done(&in);
}

static void answers_are_lower_case(void **state)
{
	AUTO(buf_done) struct buf room = BUF_MAX(100);
	struct bytes name;
	struct err err;

	(void)state;
	assert_int_equal(h2_lower_name(BYTES_LIT("X-Y"), BYTES_LIT("Z"), &room, &name, &err), 0);
	assert_true(bytes_eq(name, BYTES_LIT("x-y")));
	assert_int_equal(h2_lower_name(BYTES_LIT("X Y"), BYTES_LIT("Z"), &room, &name, &err), -1);
	assert_int_equal(h2_lower_name(BYTES_LIT("X"), BYTES_LIT("a\r\nb"), &room, &name, &err),
			 -1);
	assert_int_equal(h2_lower_name(BYTES_LIT(":status"), BYTES_LIT("1"), &room, &name, &err),
			 -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
		cmocka_unit_test(what_becomes_of_it),
		cmocka_unit_test(a_websocket_becomes_an_upgrade),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(answers_are_lower_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
