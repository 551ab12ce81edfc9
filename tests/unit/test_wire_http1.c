/* test_wire_http1.c - HTTP/1 heads: what is read, what is refused, what cannot be written. */
#include "tests/unit/check.h"

#include "wire/http1_encode.h"
#include "wire/http1_field.h"
#include "wire/http1_host.h"

#define H "Host: a\r\n"

struct row {
	const char *name;
	struct bytes in;
	const char *why; /* empty: good */
	enum http1_body body;
	uint64_t length;
};

static const struct row good_requests[] = {
	{ "plain", BYTES_LIT("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "" },
	{ "name in any case", BYTES_LIT("GET / HTTP/1.1\r\nhOsT: a\r\n\r\n"), "" },
	{ "no blank after the colon", BYTES_LIT("GET / HTTP/1.1\r\nHost:a\r\n\r\n"), "" },
	{ "many blanks", BYTES_LIT("GET / HTTP/1.1\r\nHost:   a  \r\n\r\n"), "" },
	{ "host and port", BYTES_LIT("GET / HTTP/1.1\r\nHost: a.b-c_d:65535\r\n\r\n"), "" },
	{ "host is IPv6", BYTES_LIT("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), "" },
	{ "1.0 without host", BYTES_LIT("GET / HTTP/1.0\r\n\r\n"), "" },
	{ "empty value", BYTES_LIT("GET / HTTP/1.1\r\n" H "X:\r\n\r\n"), "" },
	{ "value of blanks", BYTES_LIT("GET / HTTP/1.1\r\n" H "X:   \r\n\r\n"), "" },
	{ "tab inside a value", BYTES_LIT("GET / HTTP/1.1\r\n" H "X: a\tb\r\n\r\n"), "" },
	{ "obs-text", BYTES_LIT("GET / HTTP/1.1\r\n" H "X: \xff\x80\r\n\r\n"), "" },
	{ "odd token", BYTES_LIT("M-X!|~ / HTTP/1.1\r\n" H "!#$%&'*+-.^_`|~: 1\r\n\r\n"), "" },
	{ "absolute", BYTES_LIT("GET http://A/x HTTP/1.1\r\n" H "\r\n"), "" },
	{ "absolute, query only", BYTES_LIT("GET HTTPS://a?x=/ HTTP/1.1\r\n" H "\r\n"), "" },
	{ "asterisk", BYTES_LIT("OPTIONS * HTTP/1.1\r\n" H "\r\n"), "" },
	{ "connect", BYTES_LIT("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"), "" },
	{ "length", BYTES_LIT("PUT / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\n"), "",
	  HTTP1_BODY_LENGTH, 5 },
	{ "length 0", BYTES_LIT("PUT / HTTP/1.1\r\n" H "content-length:0\r\n\r\n"), "",
	  HTTP1_BODY_LENGTH, 0 },
	{ "length with zeros", BYTES_LIT("PUT / HTTP/1.1\r\n" H "Content-Length: 007\r\n\r\n"), "",
	  HTTP1_BODY_LENGTH, 7 },
	{ "largest length",
	  BYTES_LIT("PUT / HTTP/1.1\r\n" H "Content-Length: 18446744073709551615\r\n\r\n"), "",
	  HTTP1_BODY_LENGTH, UINT64_MAX },
	{ "chunked", BYTES_LIT("PUT / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"), "",
	  HTTP1_BODY_CHUNKED },
	{ "Chunked", BYTES_LIT("PUT / HTTP/1.1\r\n" H "transfer-encoding:CHUNKED \r\n\r\n"), "",
	  HTTP1_BODY_CHUNKED },
	{ "1.0 with a length", BYTES_LIT("PUT / HTTP/1.0\r\nContent-Length: 1\r\n\r\n"), "",
	  HTTP1_BODY_LENGTH, 1 },
};

#define LENGTHS  "both content-length and transfer-encoding"
#define CODING   "transfer-encoding is not exactly `chunked`"
#define NAME     "malformed field name"
#define VALUE    "malformed field value"
#define CHUNKED1 "Transfer-Encoding: chunked\r\n"

static const struct row smuggling[] = {
	{ "CL.TE", BYTES_LIT("POST / HTTP/1.1\r\n" H "Content-Length: 4\r\n" CHUNKED1 "\r\n"),
	  LENGTHS },
	{ "TE.CL", BYTES_LIT("POST / HTTP/1.1\r\n" H CHUNKED1 "Content-Length: 4\r\n\r\n"),
	  LENGTHS },
	{ "CL.CL differ",
	  BYTES_LIT("POST / HTTP/1.1\r\n" H "Content-Length: 4\r\nContent-Length: 5\r\n\r\n"),
	  "repeated content-length" },
	{ "CL.CL same",
	  BYTES_LIT("POST / HTTP/1.1\r\n" H "Content-Length: 4\r\nContent-Length: 4\r\n\r\n"),
	  "repeated content-length" },
	{ "CL list", BYTES_LIT("POST / HTTP/1.1\r\n" H "Content-Length: 4, 4\r\n\r\n"),
	  "malformed content-length" },
	{ "CL signed", BYTES_LIT("POST / HTTP/1.1\r\n" H "Content-Length: +4\r\n\r\n"),
	  "malformed content-length" },
	{ "CL negative", BYTES_LIT("POST / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n"),
	  "malformed content-length" },
	{ "CL hexadecimal", BYTES_LIT("POST / HTTP/1.1\r\n" H "Content-Length: 0x4\r\n\r\n"),
	  "malformed content-length" },
	{ "CL empty", BYTES_LIT("POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n"),
	  "malformed content-length" },
	{ "CL in two words", BYTES_LIT("POST / HTTP/1.1\r\n" H "Content-Length: 4 4\r\n\r\n"),
	  "malformed content-length" },
	{ "CL is 2^64",
	  BYTES_LIT("POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551616\r\n\r\n"),
	  "malformed content-length" },
	{ "TE.TE", BYTES_LIT("POST / HTTP/1.1\r\n" H CHUNKED1 CHUNKED1 "\r\n"),
	  "repeated transfer-encoding" },
	{ "TE gzip, chunked",
	  BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n"), CODING },
	{ "TE chunked, identity",
	  BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, identity\r\n\r\n"),
	  CODING },
	{ "TE identity", BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n"),
	  CODING },
	{ "TE xchunked", BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n"),
	  CODING },
	{ "TE quoted", BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n"),
	  CODING },
	{ "TE empty", BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n"), CODING },
	{ "TE with a parameter",
	  BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked;q=1\r\n\r\n"), CODING },
	{ "TE after a tab",
	  BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding:\tchunked\r\n\r\n"), VALUE },
	{ "TE before a tab",
	  BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\t\r\n\r\n"), VALUE },
	{ "TE after a vertical tab",
	  BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: \vchunked\r\n\r\n"), VALUE },
	{ "TE and a blank before the colon",
	  BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n"), NAME },
	{ "TE after a blank",
	  BYTES_LIT("POST / HTTP/1.1\r\n" H " Transfer-Encoding: chunked\r\n\r\n"), NAME },
	{ "TE folded", BYTES_LIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n chunked\r\n\r\n"),
	  NAME },
	{ "TE in 1.0", BYTES_LIT("POST / HTTP/1.0\r\n" H CHUNKED1 "\r\n"),
	  "transfer-encoding in HTTP/1.0" },
	{ "CR alone", BYTES_LIT("POST / HTTP/1.1\r\n" H "X: a\rTransfer-Encoding: chunked\r\n\r\n"),
	  VALUE },
	{ "NUL in a value", BYTES_LIT("GET / HTTP/1.1\r\n" H "X: a\0b\r\n\r\n"), VALUE },
	{ "DEL in a value", BYTES_LIT("GET / HTTP/1.1\r\n" H "X: \x7f\r\n\r\n"), VALUE },
	{ "NUL in a name", BYTES_LIT("GET / HTTP/1.1\r\n" H "X\0: a\r\n\r\n"), NAME },
	{ "obs-text in a name", BYTES_LIT("GET / HTTP/1.1\r\n" H "X\xc3: a\r\n\r\n"), NAME },
	{ "no name", BYTES_LIT("GET / HTTP/1.1\r\n" H ": a\r\n\r\n"), NAME },
	{ "no colon", BYTES_LIT("GET / HTTP/1.1\r\n" H "X\r\n\r\n"), NAME },
	{ "folding", BYTES_LIT("GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n"), NAME },
	{ "folding with a tab", BYTES_LIT("GET / HTTP/1.1\r\n" H "X: a\r\n\tb\r\n\r\n"), NAME },
	{ "no host", BYTES_LIT("GET / HTTP/1.1\r\n\r\n"), "missing host" },
	{ "two hosts", BYTES_LIT("GET / HTTP/1.1\r\n" H "host: b\r\n\r\n"), "repeated host" },
	{ "two hosts in 1.0", BYTES_LIT("GET / HTTP/1.0\r\n" H H "\r\n"), "repeated host" },
	{ "empty host", BYTES_LIT("GET / HTTP/1.1\r\nHost:\r\n\r\n"), "malformed host" },
	{ "host list", BYTES_LIT("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"), "malformed host" },
	{ "host with a path", BYTES_LIT("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), "malformed host" },
	{ "host with a user", BYTES_LIT("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"), "malformed host" },
	{ "host and two ports", BYTES_LIT("GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n"),
	  "malformed host" },
	{ "host and no port", BYTES_LIT("GET / HTTP/1.1\r\nHost: a:\r\n\r\n"), "malformed host" },
	{ "host and port 0", BYTES_LIT("GET / HTTP/1.1\r\nHost: a:0\r\n\r\n"), "malformed host" },
	{ "host and 65536", BYTES_LIT("GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"),
	  "malformed host" },
	{ "host [::1", BYTES_LIT("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"), "malformed host" },
	{ "absolute and another host", BYTES_LIT("GET http://b/ HTTP/1.1\r\n" H "\r\n"),
	  "host and target disagree" },
	{ "absolute and another port", BYTES_LIT("GET http://a:81/ HTTP/1.1\r\n" H "\r\n"),
	  "host and target disagree" },
	{ "absolute with a user", BYTES_LIT("GET http://u@a/ HTTP/1.0\r\n\r\n"),
	  "malformed host in the target" },
	{ "absolute of nobody", BYTES_LIT("GET http:///x HTTP/1.0\r\n\r\n"),
	  "malformed host in the target" },
	{ "connect to more than a host", BYTES_LIT("CONNECT a:1/x HTTP/1.1\r\nHost: a:1\r\n\r\n"),
	  "malformed host in the target" },
	{ "connect to a scheme", BYTES_LIT("CONNECT http://a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"),
	  "malformed host in the target" },
	{ "connect elsewhere", BYTES_LIT("CONNECT b:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"),
	  "host and target disagree" },
};

static const struct row bad_lines[] = {
	{ "nothing", { 0 }, "malformed method" },
	{ "empty line", BYTES_LIT("\r\n"), "malformed method" },
	{ "lower HTTP", BYTES_LIT("GET / http/1.1\r\n" H "\r\n"), "unsupported version" },
	{ "HTTP/0.9", BYTES_LIT("GET /\r\n\r\n"), "malformed target" },
	{ "HTTP/1.2", BYTES_LIT("GET / HTTP/1.2\r\n" H "\r\n"), "unsupported version" },
	{ "HTTP/2.0", BYTES_LIT("GET / HTTP/2.0\r\n" H "\r\n"), "unsupported version" },
	{ "HTTP/1.10", BYTES_LIT("GET / HTTP/1.10\r\n" H "\r\n"), "malformed request line" },
	{ "space after version", BYTES_LIT("GET / HTTP/1.1 \r\n" H "\r\n"),
	  "malformed request line" },
	{ "preface", BYTES_LIT("PRI * HTTP/2.0\r\n\r\n"), "reserved method" },
	{ "two spaces", BYTES_LIT("GET  / HTTP/1.1\r\n" H "\r\n"), "malformed target" },
	{ "tab for a space", BYTES_LIT("GET\t/ HTTP/1.1\r\n" H "\r\n"), "malformed method" },
	{ "space in the target", BYTES_LIT("GET /a b HTTP/1.1\r\n" H "\r\n"),
	  "unsupported version" },
	{ "obs-text in the target", BYTES_LIT("GET /\xc3 HTTP/1.1\r\n" H "\r\n"),
	  "malformed target" },
	{ "fragment", BYTES_LIT("GET /#a HTTP/1.1\r\n" H "\r\n"), "malformed target" },
	{ "leading space", BYTES_LIT(" GET / HTTP/1.1\r\n" H "\r\n"), "malformed method" },
	{ "asterisk for GET", BYTES_LIT("GET * HTTP/1.1\r\n" H "\r\n"),
	  "target of an unknown form" },
	{ "authority for GET", BYTES_LIT("GET a:1 HTTP/1.1\r\n" H "\r\n"),
	  "target of an unknown form" },
	{ "another scheme", BYTES_LIT("GET ftp://a/ HTTP/1.1\r\n" H "\r\n"),
	  "target of an unknown form" },
	{ "path for CONNECT", BYTES_LIT("CONNECT / HTTP/1.1\r\n" H "\r\n"),
	  "malformed host in the target" },
	{ "CONNECT without port", BYTES_LIT("CONNECT a HTTP/1.1\r\n" H "\r\n"),
	  "CONNECT without a port" },
	{ "long method", BYTES_LIT("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n" H "\r\n"),
	  "method over 32 bytes" },
	{ "no end", BYTES_LIT("GET / HTTP/1.1\r\n" H), NAME },
	{ "more than a head", BYTES_LIT("GET / HTTP/1.1\r\n" H "\r\nX"), "bytes after the head" },
};

static void parse_row(const struct row *row)
{
	struct http1_head h;
	struct err err = { 0 };
	int r = http1_parse_request(row->in, &h, &err);

	assert_string_equal(err.msg, row->why);
	assert_int_equal(r, row->why[0] ? -1 : 0);
	if (r == 0) {
		assert_int_equal(h.body, row->body);
		assert_true(h.length == row->length);
	}
}

static void good_requests_are_read(void **state)
{
	(void)state;
	FOR_ROWS(row, good_requests)
		parse_row(row);
}

static void nothing_is_smuggled(void **state)
{
	(void)state;
	FOR_ROWS(row, smuggling)
		parse_row(row);
}

static void bad_request_lines_are_refused(void **state)
{
	(void)state;
	FOR_ROWS(row, bad_lines)
		parse_row(row);
}

static void the_parts_of_a_request_are_told_apart(void **state)
{
	struct http1_head h;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		http1_parse_request(BYTES_LIT("PUT /a?b HTTP/1.0\r\nX:  y z \r\n\r\n"), &h, &err),
		0);
	assert_true(bytes_eq(h.method, BYTES_LIT("PUT")));
	assert_true(bytes_eq(h.target, BYTES_LIT("/a?b")));
	assert_int_equal(h.form, HTTP1_ORIGIN);
	assert_int_equal(h.minor, 0);
	assert_int_equal(h.status, 0);
	assert_int_equal(h.n_fields, 1);
	assert_true(bytes_eq(h.fields[0].name, BYTES_LIT("X")));
	assert_true(bytes_eq(h.fields[0].value, BYTES_LIT("y z")));
}

static const struct {
	const char *name;
	const char *method;
	struct bytes in;
	const char *why;
	unsigned int status;
	enum http1_body body;
	uint64_t length;
} responses[] = {
	{ "until close", "GET", BYTES_LIT("HTTP/1.1 200 OK\r\n\r\n"), "", 200, HTTP1_BODY_CLOSE },
	{ "length", "GET", BYTES_LIT("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), "", 200,
	  HTTP1_BODY_LENGTH, 3 },
	{ "chunked", "GET", BYTES_LIT("HTTP/1.1 200 OK\r\n" CHUNKED1 "\r\n"), "", 200,
	  HTTP1_BODY_CHUNKED },
	{ "no reason", "GET", BYTES_LIT("HTTP/1.1 404 \r\n\r\n"), "", 404, HTTP1_BODY_CLOSE },
	{ "no space before no reason", "GET", BYTES_LIT("HTTP/1.1 404\r\n\r\n"), "", 404,
	  HTTP1_BODY_CLOSE },
	{ "HTTP/1.0", "GET", BYTES_LIT("HTTP/1.0 500 \xe4h\tm\r\n\r\n"), "", 500,
	  HTTP1_BODY_CLOSE },
	{ "continue", "PUT", BYTES_LIT("HTTP/1.1 100 Continue\r\n\r\n"), "", 100, HTTP1_BODY_NONE },
	{ "upgrade", "GET", BYTES_LIT("HTTP/1.1 101 x\r\nUpgrade: a\r\n\r\n"), "", 101,
	  HTTP1_BODY_NONE },
	{ "no content", "GET", BYTES_LIT("HTTP/1.1 204 x\r\n\r\n"), "", 204, HTTP1_BODY_NONE },
	{ "no content, 0", "GET", BYTES_LIT("HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n"), "", 204,
	  HTTP1_BODY_NONE },
	{ "no content, 1", "GET", BYTES_LIT("HTTP/1.1 204 x\r\nContent-Length: 1\r\n\r\n"),
	  "a body announced by status 204" },
	{ "no content, chunked", "GET", BYTES_LIT("HTTP/1.1 204 x\r\n" CHUNKED1 "\r\n"),
	  "a body announced by status 204" },
	{ "continue, 1", "GET", BYTES_LIT("HTTP/1.1 100 x\r\nContent-Length: 1\r\n\r\n"),
	  "a body announced by status 100" },
	{ "not modified", "GET", BYTES_LIT("HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n"), "", 304,
	  HTTP1_BODY_NONE },
	{ "HEAD", "HEAD", BYTES_LIT("HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\n"), "", 200,
	  HTTP1_BODY_NONE },
	{ "HEAD, chunked", "HEAD", BYTES_LIT("HTTP/1.1 200 x\r\n" CHUNKED1 "\r\n"), "", 200,
	  HTTP1_BODY_NONE },
	{ "HEAD, two lengths", "HEAD",
	  BYTES_LIT("HTTP/1.1 200 x\r\nContent-Length: 9\r\nContent-Length: 9\r\n\r\n"),
	  "repeated content-length" },
	{ "CONNECT", "CONNECT", BYTES_LIT("HTTP/1.1 200 x\r\n\r\n"), "", 200, HTTP1_BODY_NONE },
	{ "CONNECT, length", "CONNECT", BYTES_LIT("HTTP/1.1 200 x\r\nContent-Length: 2\r\n\r\n"),
	  "a body announced by status 200" },
	{ "CONNECT refused", "CONNECT", BYTES_LIT("HTTP/1.1 403 x\r\nContent-Length: 2\r\n\r\n"),
	  "", 403, HTTP1_BODY_LENGTH, 2 },
	{ "two lengths", "GET",
	  BYTES_LIT("HTTP/1.1 200 x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n"),
	  "repeated content-length" },
	{ "length and chunked", "GET",
	  BYTES_LIT("HTTP/1.1 200 x\r\nContent-Length: 2\r\n" CHUNKED1 "\r\n"), LENGTHS },
	{ "gzip", "GET", BYTES_LIT("HTTP/1.1 200 x\r\nTransfer-Encoding: gzip\r\n\r\n"), CODING },
	{ "chunked in 1.0", "GET", BYTES_LIT("HTTP/1.0 200 x\r\n" CHUNKED1 "\r\n"),
	  "transfer-encoding in HTTP/1.0" },
	{ "status 99", "GET", BYTES_LIT("HTTP/1.1 099 x\r\n\r\n"),
	  "status is not a number from 100 to 599" },
	{ "status 600", "GET", BYTES_LIT("HTTP/1.1 600 x\r\n\r\n"),
	  "status is not a number from 100 to 599" },
	{ "status 2000", "GET", BYTES_LIT("HTTP/1.1 2000 x\r\n\r\n"),
	  "status is not a number from 100 to 599" },
	{ "status 20", "GET", BYTES_LIT("HTTP/1.1 20 x\r\n\r\n"),
	  "status is not a number from 100 to 599" },
	{ "two spaces", "GET", BYTES_LIT("HTTP/1.1  200 x\r\n\r\n"),
	  "status is not a number from 100 to 599" },
	{ "NUL in the reason", "GET", BYTES_LIT("HTTP/1.1 200 \0\r\n\r\n"), "malformed reason" },
	{ "letters after status", "GET", BYTES_LIT("HTTP/1.1 200x\r\n\r\n"), "malformed reason" },
	{ "ICY", "GET", BYTES_LIT("ICY 200 OK\r\n\r\n"), "unsupported version" },
	{ "folding", "GET", BYTES_LIT("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"), NAME },
};

static void responses_end_where_the_request_says(void **state)
{
	(void)state;
	FOR_ROWS(row, responses) {
		struct http1_head h;
		struct err err = { 0 };
		int r = http1_parse_response(row->in, bytes_str(row->method), &h, &err);

		assert_string_equal(err.msg, row->why);
		assert_int_equal(r, row->why[0] ? -1 : 0);
		if (r < 0)
			continue;
		assert_int_equal(h.status, row->status);
		assert_int_equal(h.body, row->body);
		assert_true(h.length == row->length);
	}
}

static const struct {
	const char *name;
	struct bytes in;
	enum decode want;
	size_t used;
	const char *why;
} ends[] = {
	{ "nothing", { 0 }, DECODE_MORE, 0, "" },
	{ "half", BYTES_LIT("GET / HT"), DECODE_MORE, 0, "" },
	{ "all but one", BYTES_LIT("a\r\n\r"), DECODE_MORE, 0, "" },
	{ "whole", BYTES_LIT("a\r\n\r\n"), DECODE_OK, 5, "" },
	{ "whole and more", BYTES_LIT("a\r\nb\r\n\r\n\r\n\r\n"), DECODE_OK, 8, "" },
	{ "line feed alone", BYTES_LIT("a\nb"), DECODE_BAD, 0,
	  "a line of the head does not end in CRLF" },
	{ "line feed first", BYTES_LIT("\n"), DECODE_BAD, 0,
	  "a line of the head does not end in CRLF" },
	{ "CRLF LF", BYTES_LIT("a\r\n\n"), DECODE_BAD, 0,
	  "a line of the head does not end in CRLF" },
	{ "LF CRLF", BYTES_LIT("a\n\r\n"), DECODE_BAD, 0,
	  "a line of the head does not end in CRLF" },
	{ "empty line first", BYTES_LIT("\r\na\r\n\r\n"), DECODE_BAD, 0,
	  "an empty line before the head" },
	{ "CR CR LF", BYTES_LIT("a\r\n\r\r\n"), DECODE_MORE, 0, "" }, /* the parser's to refuse */
};

static void the_end_of_a_head_is_found_however_it_arrives(void **state)
{
	(void)state;
	FOR_ROWS(row, ends) {
		enum decode got = DECODE_MORE;
		struct err err = { 0 };
		size_t used = 0, scanned = 0;

		for (size_t n = 0; n <= row->in.len && got == DECODE_MORE; n++)
			got = http1_head_end(bytes_head(row->in, n), &scanned, &used, &err);
		assert_int_equal(got, row->want);
		assert_int_equal(used, row->used);
		assert_string_equal(err.msg, row->why);

		used = scanned = 0;
		got = http1_head_end(row->in, &scanned, &used, &err);
		assert_int_equal(got, row->want);
		assert_int_equal(used, row->used);
	}
}

static void repeat(struct buf *b, char c, size_t n)
{
	struct err err = { 0 };

	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_add(b, (struct bytes){ (uint8_t *)&c, 1 }, &err), 0);
}

static void a_head_over_its_limit_is_refused_while_it_arrives(void **state)
{
	AUTO(buf_done) struct buf b = BUF_MAX(HTTP1_HEAD_MAX + 8);
	struct err err = { 0 };
	size_t used = 0, scanned = 0;

	(void)state;
	repeat(&b, 'x', HTTP1_HEAD_MAX - 4);
	assert_int_equal(http1_head_end(buf_view(&b), &scanned, &used, &err), DECODE_MORE);
	assert_int_equal(buf_add(&b, BYTES_LIT("\r\n\r\n"), &err), 0);
	assert_int_equal(http1_head_end(buf_view(&b), &scanned, &used, &err), DECODE_OK);
	assert_int_equal(used, HTTP1_HEAD_MAX);

	buf_clear(&b);
	scanned = used = 0;
	repeat(&b, 'x', HTTP1_HEAD_MAX - 3);
	assert_int_equal(buf_add(&b, BYTES_LIT("\r\n\r\n"), &err), 0);
	assert_int_equal(http1_head_end(buf_view(&b), &scanned, &used, &err), DECODE_BAD);
	assert_string_equal(err.msg, "head over 32 KiB");
	assert_int_equal(err.code, ERR_EXHAUSTED);
}

static int parse_with(struct buf *b, struct http1_head *h, struct err *err)
{
	if (buf_add(b, BYTES_LIT("\r\n"), err) < 0)
		return -1;
	return http1_parse_request(buf_view(b), h, err);
}

static void counts_and_lengths_have_limits(void **state)
{
	static const struct {
		const char *name;
		size_t target, field_name, fields;
		const char *why;
	} rows[] = {
		{ "all at the limit", HTTP1_TARGET_MAX, HTTP1_NAME_MAX, HTTP1_FIELDS_MAX, "" },
		{ "target", HTTP1_TARGET_MAX + 1, 1, 2, "target over 8192 bytes" },
		{ "name", 1, HTTP1_NAME_MAX + 1, 2, "field name over 256 bytes" },
		{ "fields", 1, 1, HTTP1_FIELDS_MAX + 1, "more than 100 fields" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf b = BUF_MAX(HTTP1_HEAD_MAX);
		struct http1_head h;
		struct err err = { 0 };

		assert_int_equal(buf_add(&b, BYTES_LIT("GET "), &err), 0);
		repeat(&b, '/', row->target);
		assert_int_equal(buf_add(&b, BYTES_LIT(" HTTP/1.1\r\n" H), &err), 0);
		repeat(&b, 'n', row->field_name);
		assert_int_equal(buf_add(&b, BYTES_LIT(":\r\n"), &err), 0);
		for (size_t i = 2; i < row->fields; i++)
			assert_int_equal(buf_add(&b, BYTES_LIT("a:\r\n"), &err), 0);
		assert_int_equal(parse_with(&b, &h, &err), row->why[0] ? -1 : 0);
		assert_string_equal(err.msg, row->why);
	}
}

static const struct {
	const char *name;
	struct bytes in;
	bool keep, expects;
	const char *upgrade;
} questions[] = {
	{ "1.1", BYTES_LIT("GET / HTTP/1.1\r\n" H "\r\n"), true, false, "" },
	{ "1.1 close", BYTES_LIT("GET / HTTP/1.1\r\n" H "Connection: x, CLOSE\r\n\r\n"), false,
	  false, "" },
	{ "close first", BYTES_LIT("GET / HTTP/1.1\r\n" H "Connection: close , x\r\n\r\n"), false,
	  false, "" },
	{ "close beats keep-alive",
	  BYTES_LIT("GET / HTTP/1.1\r\n" H "Connection: keep-alive\r\nConnection: close\r\n\r\n"),
	  false, false, "" },
	{ "closed is not close", BYTES_LIT("GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n"),
	  true, false, "" },
	{ "1.0", BYTES_LIT("GET / HTTP/1.0\r\n\r\n"), false, false, "" },
	{ "1.0 keep-alive", BYTES_LIT("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), true,
	  false, "" },
	{ "connect", BYTES_LIT("CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n"), false, false, "" },
	{ "expects", BYTES_LIT("PUT / HTTP/1.1\r\n" H "Expect: 100-Continue\r\n\r\n"), true, true,
	  "" },
	{ "expects in 1.0", BYTES_LIT("PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"), false,
	  false, "" },
	{ "websocket",
	  BYTES_LIT("GET / HTTP/1.1\r\n" H "Connection: keep-alive,\tUpgrade\r\nUpgrade: "
		    "websocket\r\n\r\n"),
	  true, false, "websocket" },
	{ "upgrade not of this connection",
	  BYTES_LIT("GET / HTTP/1.1\r\n" H "Upgrade: websocket\r\n\r\n"), true, false, "" },
	{ "two upgrades",
	  BYTES_LIT("GET / HTTP/1.1\r\n" H
		    "Connection: upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n\r\n"),
	  true, false, "" },
};

static void fields_answer_questions(void **state)
{
	(void)state;
	FOR_ROWS(row, questions) {
		struct http1_head h;
		struct err err = { 0 };

		assert_int_equal(http1_parse_request(row->in, &h, &err), 0);
		assert_int_equal(http1_keep_alive(&h), row->keep);
		assert_int_equal(http1_expects_continue(&h), row->expects);
		assert_true(bytes_eq(http1_upgrade(&h), bytes_str(row->upgrade)));
	}
}

static void a_body_until_close_ends_the_connection(void **state)
{
	struct http1_head h;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(http1_parse_response(BYTES_LIT("HTTP/1.1 200 OK\r\n\r\n"),
					      BYTES_LIT("GET"), &h, &err),
			 0);
	assert_false(http1_keep_alive(&h));
}

static void hop_fields_are_the_fixed_and_the_named(void **state)
{
	struct http1_head h;
	struct err err = { 0 };
	struct http1_hops hops;
	struct bytes value;

	(void)state;
	assert_int_equal(http1_parse_request(BYTES_LIT("GET / HTTP/1.1\r\n" H
						       "Connection: X-One\r\nX-One: 1\r\nx-two: "
						       "2\r\nX-Two: 3\r\n\r\n"),
					     &h, &err),
			 0);
	http1_hops_cut(&h, &hops);
	assert_true(http1_is_hop_field(&hops, BYTES_LIT("x-one")));
	assert_true(http1_is_hop_field(&hops, BYTES_LIT("TE")));
	assert_true(http1_is_hop_field(&hops, BYTES_LIT("Transfer-Encoding")));
	assert_false(http1_is_hop_field(&hops, BYTES_LIT("x-two")));
	assert_false(http1_is_hop_field(&hops, BYTES_LIT("host")));
	assert_int_equal(http1_find(&h, "X-TWO", &value), 2);
	assert_true(bytes_eq(value, BYTES_LIT("2")));
	assert_int_equal(http1_find(&h, "x-three", &value), 0);
}

/* A list of `n` elements over two lines, in a request or an answer. */
static int parse_list(const char *first_line, const char *name, size_t n, struct http1_head *h,
		      struct err *err)
{
	static char text[HTTP1_HEAD_MAX];
	size_t at = (size_t)snprintf(text, sizeof(text), "%s\r\nHost: a\r\n%s: x\r\n%s: y",
				     first_line, name, name);

	for (size_t i = 2; i < n; i++)
		text[at++] = ',';
	at += (size_t)snprintf(text + at, sizeof(text) - at, "\r\n\r\n");
	if (first_line[0] == 'G')
		return http1_parse_request((struct bytes){ (uint8_t *)text, at }, h, err);
	return http1_parse_response((struct bytes){ (uint8_t *)text, at }, BYTES_LIT("GET"), h,
				    err);
}

/* 100 fields, each looked for in a list of 15,000 elements, took 38 ms. */
static void a_list_has_so_many_elements_and_no_more(void **state)
{
	static const char *const names[] = { "Connection", "upgrade", "EXPECT" };
	static const char *const lines[] = { "GET / HTTP/1.1", "HTTP/1.1 200 OK" };
	struct http1_hops hops;
	struct http1_head h;
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(names) * COUNT(lines); i++) {
		const char *name = names[i / 2], *line = lines[i % 2];

		assert_int_equal(parse_list(line, name, HTTP1_LIST_MAX, &h, &err), 0);
		http1_hops_cut(&h, &hops);
		assert_int_equal(hops.n, i / 2 == 0 ? 2 : 0);
		err = (struct err){ 0 };
		assert_int_equal(parse_list(line, name, HTTP1_LIST_MAX + 1, &h, &err), -1);
		assert_int_equal(err.code, ERR_EXHAUSTED);
		assert_int_equal(parse_list(line, name, 30000, &h, &err), -1);
	}
	assert_int_equal(parse_list(lines[0], "accept", 30000, &h, &err), 0); /* not ours to read */
}

static void a_whole_head_is_written(void **state)
{
	AUTO(buf_done) struct buf b = BUF_MAX(1024);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(http1_put_request_line(&b, BYTES_LIT("GET"), BYTES_LIT("/a"), &err), 0);
	assert_int_equal(http1_put_field(&b, BYTES_LIT("host"), BYTES_LIT("a"), &err), 0);
	assert_int_equal(http1_put_field(&b, BYTES_LIT("x"), (struct bytes){ 0 }, &err), 0);
	assert_int_equal(http1_put_end(&b, &err), 0);
	assert_true(bytes_eq(buf_view(&b), BYTES_LIT("GET /a HTTP/1.1\r\nhost: a\r\nx: \r\n\r\n")));
	buf_clear(&b);
	assert_int_equal(http1_put_status_line(&b, 404, &err), 0);
	assert_true(bytes_eq(buf_view(&b), BYTES_LIT("HTTP/1.1 404 Not Found\r\n")));
	buf_clear(&b);
	assert_int_equal(http1_put_body(&b, HTTP1_BODY_NONE, 1, &err), 0);
	assert_int_equal(http1_put_body(&b, HTTP1_BODY_CLOSE, 1, &err), 0);
	assert_int_equal(http1_put_body(&b, HTTP1_BODY_LENGTH, UINT64_MAX, &err), 0);
	assert_int_equal(http1_put_body(&b, HTTP1_BODY_CHUNKED, 1, &err), 0);
	assert_true(bytes_eq(buf_view(&b), BYTES_LIT("content-length: 18446744073709551615\r\n"
						     "transfer-encoding: chunked\r\n")));
	assert_string_equal(http1_reason(299), "Unknown");
}

static void text_cannot_add_a_field(void **state)
{
	static const struct {
		const char *name;
		struct bytes field, value;
	} rows[] = {
		{ "CRLF in a value", BYTES_LIT("a"), BYTES_LIT("b\r\nc: d") },
		{ "LF in a value", BYTES_LIT("a"), BYTES_LIT("b\nc") },
		{ "CR in a value", BYTES_LIT("a"), BYTES_LIT("b\rc") },
		{ "NUL in a value", BYTES_LIT("a"), BYTES_LIT("b\0c") },
		{ "blank before a value", BYTES_LIT("a"), BYTES_LIT(" b") },
		{ "tab after a value", BYTES_LIT("a"), BYTES_LIT("b\t") },
		{ "no name", { 0 }, BYTES_LIT("b") },
		{ "colon in a name", BYTES_LIT("a:"), BYTES_LIT("b") },
		{ "CRLF in a name", BYTES_LIT("a\r\nb"), BYTES_LIT("b") },
		{ "blank in a name", BYTES_LIT("a "), BYTES_LIT("b") },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf b = BUF_MAX(256);
		struct err err = { 0 };

		assert_int_equal(http1_put_field(&b, row->field, row->value, &err), -1);
		assert_int_equal(b.len, 0);
	}
}

static void text_cannot_end_a_request_line(void **state)
{
	static const struct {
		const char *name;
		struct bytes method, target;
	} rows[] = {
		{ "CRLF in the target", BYTES_LIT("GET"), BYTES_LIT("/\r\nA: b") },
		{ "space in the target", BYTES_LIT("GET"), BYTES_LIT("/ HTTP/1.1") },
		{ "no target", BYTES_LIT("GET"), { 0 } },
		{ "no method", { 0 }, BYTES_LIT("/") },
		{ "space in the method", BYTES_LIT("GET /a"), BYTES_LIT("/") },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf b = BUF_MAX(256);
		struct err err = { 0 };

		assert_int_equal(http1_put_request_line(&b, row->method, row->target, &err), -1);
		assert_int_equal(b.len, 0);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

static void a_full_buffer_is_left_as_it_was(void **state)
{
	struct err err = { 0 };

	(void)state;
	for (size_t max = 0; max < 40; max++) {
		AUTO(buf_done) struct buf b = BUF_MAX(max);
		int line = http1_put_request_line(&b, BYTES_LIT("GET"), BYTES_LIT("/"), &err);

		assert_int_equal(line, max < 16 ? -1 : 0);
		assert_int_equal(b.len, max < 16 ? 0 : 16);
		if (line < 0)
			continue;
		assert_int_equal(http1_put_field(&b, BYTES_LIT("host"), BYTES_LIT("a"), &err),
				 max < 25 ? -1 : 0);
		assert_int_equal(b.len, max < 25 ? 16 : 25);
	}
}

static void a_host_is_split_from_its_port(void **state)
{
	struct bytes host;
	uint16_t port;

	(void)state;
	assert_true(http1_split_host(BYTES_LIT("8080-x.y.z:443"), &host, &port));
	assert_true(bytes_eq(host, BYTES_LIT("8080-x.y.z")));
	assert_int_equal(port, 443);
	assert_true(http1_split_host(BYTES_LIT("[fe80::1]"), &host, &port));
	assert_true(bytes_eq(host, BYTES_LIT("[fe80::1]")));
	assert_int_equal(port, 0);
	assert_false(http1_split_host(BYTES_LIT("[]:1"), &host, &port));
	assert_false(http1_split_host(BYTES_LIT("::1"), &host, &port));
	assert_false(http1_split_host(BYTES_LIT("a:000080"), &host, &port));
	assert_false(http1_split_host(BYTES_LIT("[::1]x"), &host, &port));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_requests_are_read),
		cmocka_unit_test(nothing_is_smuggled),
		cmocka_unit_test(bad_request_lines_are_refused),
		cmocka_unit_test(the_parts_of_a_request_are_told_apart),
		cmocka_unit_test(responses_end_where_the_request_says),
		cmocka_unit_test(the_end_of_a_head_is_found_however_it_arrives),
		cmocka_unit_test(a_head_over_its_limit_is_refused_while_it_arrives),
		cmocka_unit_test(counts_and_lengths_have_limits),
		cmocka_unit_test(fields_answer_questions),
		cmocka_unit_test(a_body_until_close_ends_the_connection),
		cmocka_unit_test(hop_fields_are_the_fixed_and_the_named),
		cmocka_unit_test(a_list_has_so_many_elements_and_no_more),
		cmocka_unit_test(a_whole_head_is_written),
		cmocka_unit_test(text_cannot_add_a_field),
		cmocka_unit_test(text_cannot_end_a_request_line),
		cmocka_unit_test(a_full_buffer_is_left_as_it_was),
		cmocka_unit_test(a_host_is_split_from_its_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
