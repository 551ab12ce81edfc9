/* test_http_refusal.c - why a request went nowhere: lines for programs, a page for browsers. */
#include "tests/unit/check.h"

#include "http/refusal.h"
#include "wire/http1_head.h"

#define GET(accept) "GET / HTTP/1.1\r\nHost: a.com\r\n" accept "\r\n"

static const struct {
	const char *name, *first;
	enum refusal_form form;
} rows[] = {
	{ "a browser",
	  GET("Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"),
	  REFUSAL_PAGE },
	{ "in any case, with blanks", GET("accept: image/png , TEXT/HTML ;q=0.5\r\n"),
	  REFUSAL_PAGE },
	{ "a picture of one", GET("Accept: image/avif,image/webp,*/*\r\n"), REFUSAL_LINES },
	{ "curl", GET("Accept: */*\r\n"), REFUSAL_LINES },
	{ "a longer word", GET("Accept: text/htmlx, xtext/html\r\n"), REFUSAL_LINES },
	{ "nothing said", GET(""), REFUSAL_LINES },
	{ "said twice", GET("Accept: text/html\r\nAccept: text/html\r\n"), REFUSAL_LINES },
	{ "with a body behind it", GET("Accept: text/html\r\nContent-Length: 3\r\n") "abc",
	  REFUSAL_PAGE },
	{ "not whole", "GET / HTTP/1.1\r\nAccept: text/html\r\n", REFUSAL_LINES },
	{ "no request", "\x16\x03\x01", REFUSAL_LINES },
	{ "nothing", "", REFUSAL_LINES },
};

static void it_is_told_as_it_wants_to(void **state)
{
	(void)state;
	FOR_ROWS(row, rows)
		assert_int_equal(refusal_form(bytes_str(row->first)), row->form);
}

/* The answer, NUL-terminated; its head must be right. */
static struct buf put(const struct refusal *r, enum refusal_form form)
{
	struct buf out = BUF_MAX(2 * REFUSAL_MAX);
	struct http1_head h;
	size_t scanned = 0, used;
	struct err err;

	assert_int_equal(refusal_put(&out, r, form, &err), 0);
	assert_int_equal(http1_head_end(buf_view(&out), &scanned, &used, &err), DECODE_OK);
	assert_int_equal(
		http1_parse_response(bytes_head(buf_view(&out), used), BYTES_LIT("GET"), &h, &err),
		0);
	assert_int_equal(h.status, r->status);
	assert_int_equal(h.body, HTTP1_BODY_LENGTH);
	assert_int_equal(h.length, out.len - used);
	assert_int_equal(buf_add(&out, (struct bytes){ (const uint8_t *)"", 1 }, &err), 0);
	return out;
}

static const char *body_of(const struct buf *answer)
{
	return strstr((const char *)answer->ptr, "\r\n\r\n") + 4;
}

static void programs_read_lines(void **state)
{
	const struct refusal no = { 403, "a.com", "operator: not listed", "ask him" },
			     gone = { 502, "a.com", "nobody is there", NULL };
	AUTO(buf_done)
	struct buf first = put(&no, REFUSAL_LINES), second = put(&gone, REFUSAL_LINES);

	(void)state;
	assert_string_equal(body_of(&first),
			    "hotcell: not allowed: operator: not listed\nhotcell: fix: ask him\n");
	assert_string_equal(body_of(&second), "hotcell: not reached: nobody is there\n");
}

static void people_read_a_page(void **state)
{
	const struct refusal no = { 403, "a.com", "operator: not listed", "ask him" },
			     gone = { 502, "", "nobody is there", NULL };
	AUTO(buf_done) struct buf first = put(&no, REFUSAL_PAGE), second = put(&gone, REFUSAL_PAGE);
	const char *page = (const char *)first.ptr;

	(void)state;
	assert_non_null(strstr(page, "content-type: text/html; charset=utf-8\r\n"));
	assert_non_null(strstr(page, "content-security-policy: default-src 'none'"));
	assert_non_null(strstr(page, "<title>Refused: a.com</title>"));
	assert_non_null(strstr(page, "<dt>Why</dt><dd>operator: not listed</dd>"));
	assert_non_null(strstr(page, "<dt>Fix</dt><dd>ask him</dd>"));
	assert_non_null(strstr(page, "<code>hotcell-why a.com</code>"));
	page = (const char *)second.ptr;
	assert_non_null(strstr(page, "<title>Not reached: this request</title>"));
	assert_null(strstr(page, "<dt>Fix</dt>"));
	assert_null(strstr(page, "hotcell-why"));
}

static void whatever_it_says_is_text(void **state)
{
	const struct refusal evil = { 403, "<b>", "\"><script>alert('&')</script>\r\n\x80",
				      "</dd>" };
	AUTO(buf_done) struct buf out = put(&evil, REFUSAL_PAGE);
	const char *page = (const char *)out.ptr;

	(void)state;
	assert_null(strstr(page, "<b>"));
	assert_null(strstr(page, "<script"));
	assert_non_null(strstr(page, "<dd>&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script"
				     "&gt;???"
				     "</dd>"));
	assert_non_null(strstr(page, "<dd>&lt;/dd&gt;</dd>"));
}

static void it_has_an_end(void **state)
{
	AUTO(auto_free) char *why = malloc(REFUSAL_MAX);
	AUTO(buf_done) struct buf out = BUF_MAX(2 * REFUSAL_MAX);
	const struct refusal r = { 403, "a.com", why, NULL };
	struct err err;

	(void)state;
	memset(why, '<', REFUSAL_MAX - 1);
	why[REFUSAL_MAX - 1] = '\0';
	assert_int_equal(refusal_put(&out, &r, REFUSAL_PAGE, &err), -1);
	assert_int_equal(out.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_told_as_it_wants_to),
		cmocka_unit_test(programs_read_lines),
		cmocka_unit_test(people_read_a_page),
		cmocka_unit_test(whatever_it_says_is_text),
		cmocka_unit_test(it_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
