/* test_http_server.c - the server against clients of every kind, byte for byte. */
#include "tests/unit/test_http_service.h"

struct raw { /* a client that writes bytes as it likes */
	struct loop *l;
	struct service sv;
	struct ear client;
};

static void raw_open(struct raw *r, const struct http_limits *lim, size_t piece)
{
	struct stream *s;
	int fd[2];

	unix_pair(fd);
	r->l = test_loop();
	service_open(&r->sv, r->l, lim);
	s = test_stream(r->l, fd[1]);
	service_add(&r->sv, piece > 0 ? bend_over(s, piece, 0) : s);
	ear_init(&r->client, test_stream(r->l, fd[0]));
	stream_read(r->client.s, true);
}

static void raw_close(struct raw *r)
{
	ear_done(&r->client);
	service_close(&r->sv);
	loop_free(r->l);
}

static void raw_say(struct raw *r, struct bytes text)
{
	struct err err = { 0 };

	if (stream_write(r->client.s, text, &err) < 0)
		fail_msg("%s", err.msg);
}

static void some_turns(struct loop *l, int n)
{
	struct timer t;

	timer_init(&t, l, patience_over);
	while (n-- > 0) {
		timer_start(&t, 0);
		(void)loop_turn(l);
	}
	timer_stop(&t);
}

/* What the client heard, without the Date fields, which change. */
static const char *heard(struct raw *r)
{
	struct buf *b = &r->client.got;
	char *text, *date, *end;
	struct err err;

	assert_int_equal(buf_add(b, (struct bytes){ (const uint8_t *)"", 1 }, &err), 0);
	b->len--;
	text = (char *)b->ptr;
	while ((date = strstr(text, "date: ")) && (end = strstr(date, "\r\n")))
		memmove(date, end + 2, strlen(end + 2) + 1);
	b->len = strlen(text);
	return text;
}

enum { DATE_FIELD = sizeof("date: Sun, 06 Nov 1994 08:49:37 GMT\r\n") - 1 };

#define HOST           "host: x\r\n"
#define OK(n, text)    "HTTP/1.1 200 OK\r\ncontent-length: " n "\r\n\r\n" text
#define FINAL(n, text) "HTTP/1.1 200 OK\r\ncontent-length: " n "\r\nconnection: close\r\n\r\n" text
#define REFUSED(status, n, text)                                                      \
	"HTTP/1.1 " status "\r\ncontent-type: application/json\r\ncontent-length: " n \
	"\r\nconnection: close\r\n\r\n" text
#define FAILED(status, n, text)                                                       \
	"HTTP/1.1 " status "\r\ncontent-type: application/json\r\ncontent-length: " n \
	"\r\n\r\n" text

struct talk {
	const char *name, *says, *hears;
	bool closed; /* afterwards, by the server */
	size_t requests;
};

static const struct talk talks[] = {
	{ "get", "GET /hello HTTP/1.1\r\n" HOST "\r\n", OK("5", "hello"), false, 1 },
	{ "head", "HEAD /hello HTTP/1.1\r\n" HOST "\r\n", OK("5", ""), false, 1 },
	{ "get and close", "GET /hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
	  FINAL("5", "hello"), true, 1 },
	{ "http/1.0", "GET /hello HTTP/1.0\r\n" HOST "\r\n", FINAL("5", "hello"), true, 1 },
	{ "http/1.0 has no chunks", "POST /echo HTTP/1.0\r\n" HOST "Content-Length: 3\r\n\r\nabc",
	  "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc", true, 1 },
	{ "post with a length", "POST /length HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc",
	  OK("1", "3"), false, 1 },
	{ "post of nothing", "POST /length HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n",
	  OK("1", "0"), false, 1 },
	{ "post without a body", "POST /length HTTP/1.1\r\n" HOST "\r\n", OK("1", "0"), false, 1 },
	{ "post in chunks",
	  "POST /length HTTP/1.1\r\n" HOST
	  "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
	  OK("1", "4"), false, 1 },
	{ "trailers are dropped",
	  "POST /length HTTP/1.1\r\n" HOST
	  "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n",
	  OK("1", "3"), false, 1 },
	{ "three in a row, one of them with a body",
	  "GET /hello HTTP/1.1\r\n" HOST "\r\n"
	  "POST /length HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nxy"
	  "GET /hello HTTP/1.1\r\n" HOST "\r\n",
	  OK("5", "hello") OK("1", "2") OK("5", "hello"), false, 3 },
	{ "nothing after close counts",
	  "GET /hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"
	  "GET /hello HTTP/1.1\r\n" HOST "\r\n",
	  FINAL("5", "hello"), true, 1 },
	{ "an unread body is thrown away",
	  "POST /early HTTP/1.1\r\n" HOST "Content-Length: 7\r\n\r\nignored"
	  "GET /hello HTTP/1.1\r\n" HOST "\r\n",
	  OK("5", "hello") OK("5", "hello"), false, 2 },
	{ "unread chunks, too",
	  "POST /early HTTP/1.1\r\n" HOST
	  "Transfer-Encoding: chunked\r\n\r\n7\r\nignored\r\n0\r\n\r\n"
	  "GET /hello HTTP/1.1\r\n" HOST "\r\n",
	  OK("5", "hello") OK("5", "hello"), false, 2 },
	{ "an unread body that is broken",
	  "POST /early HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	  OK("5", "hello"), true, 1 },
	{ "no continue for who does not read",
	  "POST /early HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
	  FINAL("5", "hello"), true, 1 },
	{ "unknown path", "GET /nowhere HTTP/1.1\r\n" HOST "\r\n",
	  FAILED("404 Not Found", "41", "{\"code\":404,\"message\":\"no such \\\"path\\\"\"}"),
	  false, 1 },
	{ "a handler that forgets", "GET /forget HTTP/1.1\r\n" HOST "\r\n",
	  FAILED("500 Internal Server Error", "52",
		 "{\"code\":500,\"message\":\"the request was not handled\"}"),
	  false, 1 },
	{ "a field that would end the head", "GET /field HTTP/1.1\r\n" HOST "\r\n",
	  FAILED("500 Internal Server Error", "53",
		 "{\"code\":500,\"message\":\"the answer could not be sent\"}"),
	  false, 1 },
	{ "no host", "GET /hello HTTP/1.1\r\n\r\n",
	  REFUSED("400 Bad Request", "37", "{\"code\":400,\"message\":\"missing host\"}"), true,
	  0 },
	{ "not http", "\x16\x03\x01 nonsense\r\n\r\n",
	  REFUSED("400 Bad Request", "41", "{\"code\":400,\"message\":\"malformed method\"}"), true,
	  0 },
	{ "newer http", "GET / HTTP/2.0\r\n" HOST "\r\n",
	  REFUSED("505 HTTP Version Not Supported", "44",
		  "{\"code\":505,\"message\":\"unsupported version\"}"),
	  true, 0 },
	{ "unknown coding", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n",
	  REFUSED("501 Not Implemented", "67",
		  "{\"code\":501,\"message\":\"transfer-encoding is not exactly `chunked`\"}"),
	  true, 0 },
	{ "two lengths",
	  "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
	  REFUSED("400 Bad Request", "48",
		  "{\"code\":400,\"message\":\"repeated content-length\"}"),
	  true, 0 },
	{ "broken chunks",
	  "POST /length HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	  REFUSED("400 Bad Request", "45", "{\"code\":400,\"message\":\"malformed chunk size\"}"),
	  true, 1 },
	{ "announced too large", "POST /limit HTTP/1.1\r\n" HOST "Content-Length: 11\r\n\r\n",
	  REFUSED("413 Content Too Large", "50",
		  "{\"code\":413,\"message\":\"the body is over 10 bytes\"}"),
	  true, 1 },
	{ "as large as may be",
	  "POST /limit HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n0123456789", OK("2", "10"),
	  false, 1 },
	{ "turned out too large",
	  "POST /limit HTTP/1.1\r\n" HOST
	  "Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n",
	  REFUSED("413 Content Too Large", "50",
		  "{\"code\":413,\"message\":\"the body is over 10 bytes\"}"),
	  true, 1 },
};

static void check_talk(struct raw *r, const struct talk *t)
{
	size_t want = strlen(t->hears);

	RUN_UNTIL(r->l, t->closed ? r->client.ends == 1 : strlen(heard(r)) >= want);
	some_turns(r->l, 5);
	assert_string_equal(heard(r), t->hears);
	assert_int_equal(r->client.ends, t->closed);
	assert_int_equal(r->client.fails, 0);
	assert_int_equal(r->sv.requests, t->requests);
	assert_int_equal(r->sv.http.n_conns, !t->closed);
}

static void every_kind_of_talk(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;

	(void)state;
	FOR_ROWS(t, talks) {
		for (size_t piece = 0; piece <= 1; piece++) { /* whole, and byte by byte */
			struct raw r;

			raw_open(&r, &lim, piece);
			raw_say(&r, bytes_str(t->says));
			check_talk(&r, t);
			raw_close(&r);
		}
	}
}

/* However the bytes are cut in two, the answer is the same. */
static void every_split_of_every_talk(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;

	(void)state;
	FOR_ROWS(t, talks) {
		struct bytes says = bytes_str(t->says);

		for (size_t at = 1; at < says.len; at++) {
			struct raw r;

			raw_open(&r, &lim, 0);
			raw_say(&r, bytes_head(says, at));
			some_turns(r.l, 3);
			if (!r.client.ends && !r.client.fails)
				raw_say(&r, bytes_tail(says, at));
			check_talk(&r, t);
			raw_close(&r);
		}
	}
}

static void continue_is_said_when_the_handler_reads(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct raw r;

	(void)state;
	raw_open(&r, &lim, 0);
	raw_say(&r, BYTES_LIT("POST /hold HTTP/1.1\r\n" HOST
			      "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
	RUN_UNTIL(r.l, r.sv.jobs);
	some_turns(r.l, 5);
	assert_string_equal(heard(&r), "");
	r.sv.jobs->kind = 'l';
	http_body_start(r.sv.jobs->rq, 100);
	RUN_UNTIL(r.l, r.client.got.len > 0);
	assert_string_equal(heard(&r), "HTTP/1.1 100 Continue\r\n\r\n");
	raw_say(&r, BYTES_LIT("abc"));
	RUN_UNTIL(r.l, r.sv.bodies == 1);
	some_turns(r.l, 5);
	assert_string_equal(heard(&r), "HTTP/1.1 100 Continue\r\n\r\n" OK("1", "3"));
	raw_close(&r);
}

static void continue_is_not_said_when_the_body_is_already_there(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct raw r;

	(void)state;
	raw_open(&r, &lim, 0);
	raw_say(&r, BYTES_LIT("POST /length HTTP/1.1\r\n" HOST
			      "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc"));
	RUN_UNTIL(r.l, r.sv.bodies == 1);
	some_turns(r.l, 5);
	assert_string_equal(heard(&r), OK("1", "3"));
	raw_close(&r);
}

static void the_next_request_waits_for_the_answer(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct raw r;

	(void)state;
	raw_open(&r, &lim, 0);
	raw_say(&r, BYTES_LIT("GET /hold HTTP/1.1\r\n" HOST "\r\n"
			      "GET /hello HTTP/1.1\r\n" HOST "\r\n"));
	RUN_UNTIL(r.l, r.sv.jobs);
	some_turns(r.l, 5);
	assert_int_equal(r.sv.requests, 1);
	job_answer_text(r.sv.jobs, "first");
	RUN_UNTIL(r.l, r.sv.requests == 2);
	some_turns(r.l, 5);
	assert_string_equal(heard(&r), OK("5", "first") OK("5", "hello"));
	raw_close(&r);
}

/* One that asks a lot and reads nothing: neither its questions nor the answers pile up. */
static void a_greedy_client_is_held_back(void **state)
{
	static const struct http_limits lim = { 0 };
	struct raw r;
	struct err err;
	size_t asked = 0;

	(void)state;
	raw_open(&r, &lim, 0);
	stream_read(r.client.s, false);
	for (int idle = 0; idle < 20; idle++) {
		while (stream_write(r.client.s, BYTES_LIT("GET /hello HTTP/1.1\r\n" HOST "\r\n"),
				    &err) == 0) {
			asked++;
			idle = 0;
		}
		some_turns(r.l, 1);
	}
	assert_true(r.sv.requests < asked);
	assert_true(stream_queued(r.client.s) > STREAM_QUEUE_MAX - 64);
	stream_read(r.client.s, true);
	RUN_UNTIL(r.l, r.sv.requests == asked);
	RUN_UNTIL(r.l, r.client.got.len == asked * (strlen(OK("5", "hello")) + DATE_FIELD));
	raw_close(&r);
}

static void a_slow_reader_costs_bounded_memory(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct raw r;

	(void)state;
	raw_open(&r, &lim, 0);
	r.client.stop_after = 1;
	raw_say(&r, BYTES_LIT("GET /big HTTP/1.1\r\n" HOST "\r\n"));
	RUN_UNTIL(r.l, r.client.got.len > 0);
	some_turns(r.l, 20);
	assert_non_null(r.sv.jobs);
	assert_true(r.sv.jobs->left > BIG_SIZE / 2);
	r.client.stop_after = 0;
	stream_read(r.client.s, true);
	RUN_UNTIL(r.l, r.client.got.len >= BIG_SIZE);
	assert_true(r.sv.most_queued > 0);
	assert_true(r.sv.most_queued <= STREAM_LOW_WATER + 16 * 1024);
	assert_null(r.sv.jobs);
	raw_close(&r);
}

static void a_handler_that_pauses_gets_no_more(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct raw r;
	struct job *j;
	uint64_t seen;

	(void)state;
	raw_open(&r, &lim, 0);
	raw_say(&r, BYTES_LIT("POST /hold HTTP/1.1\r\n" HOST
			      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"));
	RUN_UNTIL(r.l, r.sv.jobs);
	j = r.sv.jobs;
	http_body_start(j->rq, 100);
	RUN_UNTIL(r.l, j->seen == 3);
	http_body_pause(j->rq, true);
	seen = j->seen;
	raw_say(&r, BYTES_LIT("2\r\nde\r\n0\r\n\r\n"));
	some_turns(r.l, 10);
	assert_int_equal(j->seen, seen);
	assert_false(j->body_over);
	http_body_pause(j->rq, false);
	RUN_UNTIL(r.l, j->body_over);
	assert_int_equal(j->seen, 5);
	job_answer_text(j, "ok");
	RUN_UNTIL(r.l, r.client.got.len > 0);
	raw_close(&r);
}

struct patience { /* who is too slow, and what comes of it */
	const char *name, *says, *hears;
	struct http_limits lim;
	bool gone;
};

static void who_is_too_slow_is_cut_off(void **state)
{
	static const char late[] =
		REFUSED("408 Request Timeout", "59",
			"{\"code\":408,\"message\":\"the request did not arrive in time\"}");
	static const struct patience rows[] = {
		{ "half a head", "GET /hello HT", late, { .head_ms = 20 }, false },
		{ "no head at all", "", "", { .head_ms = 20 }, false },
		{ "half a body",
		  "POST /length HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc",
		  late,
		  { .body_stall_ms = 20 },
		  true },
		{ "half an unread body",
		  "POST /early HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc",
		  OK("5", "hello"),
		  { .head_ms = 20, .drain_max = 100 },
		  false },
		{ "idle after an answer",
		  "GET /hello HTTP/1.1\r\n" HOST "\r\n",
		  OK("5", "hello"),
		  { .idle_ms = 20 },
		  false },
		{ "half a second head",
		  "GET /hello HTTP/1.1\r\n" HOST "\r\nGET /he",
		  NULL,
		  { .head_ms = 20 },
		  false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct raw r;

		raw_open(&r, &row->lim, 0);
		raw_say(&r, bytes_str(row->says));
		RUN_UNTIL(r.l, r.client.ends == 1);
		if (row->hears)
			assert_string_equal(heard(&r), row->hears);
		else
			assert_non_null(strstr(heard(&r), "408"));
		assert_int_equal(r.sv.gone, row->gone);
		if (row->gone)
			assert_int_equal(r.sv.why.code, ERR_TIMEOUT);
		assert_int_equal(r.sv.http.n_conns, 0);
		raw_close(&r);
	}
}

/* A drip of bytes does not help: the head has its time as a whole. */
static void a_slow_drip_of_a_head_is_cut_off(void **state)
{
	static const struct http_limits lim = { .head_ms = 40 };
	struct raw r;
	struct timer t;

	(void)state;
	raw_open(&r, &lim, 0);
	timer_init(&t, r.l, patience_over);
	raw_say(&r, BYTES_LIT("GET /hello HTTP/1.1\r\nx: "));
	for (int i = 0; !r.client.ends && i < 200; i++) {
		raw_say(&r, BYTES_LIT("x"));
		timer_start(&t, 2);
		RUN_UNTIL(r.l, !t.active);
	}
	assert_non_null(strstr(heard(&r), "408"));
	raw_close(&r);
}

static void who_does_not_take_the_answer_is_cut_off(void **state)
{
	static const struct http_limits lim = { .write_stall_ms = 30 };
	struct raw r;

	(void)state;
	raw_open(&r, &lim, 0);
	stream_read(r.client.s, false);
	raw_say(&r, BYTES_LIT("GET /big HTTP/1.1\r\n" HOST "\r\n"));
	RUN_UNTIL(r.l, r.sv.gone == 1);
	assert_int_equal(r.sv.why.code, ERR_TIMEOUT);
	assert_int_equal(r.sv.http.n_conns, 0);
	raw_close(&r);
}

static void a_head_too_large_is_refused(void **state)
{
	static const struct {
		const char *name;
		size_t bytes, fields;
	} rows[] = { { "bytes", HTTP1_HEAD_MAX, 0 }, { "fields", 0, HTTP1_FIELDS_MAX + 1 } };
	const struct http_limits lim = HTTP_LIMITS;

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf b = BUF_MAX(100000);
		struct err err;
		struct raw r;

		assert_int_equal(buf_printf(&b, &err, "GET /hello HTTP/1.1\r\nx: "), 0);
		for (size_t i = 0; i < row->bytes; i++)
			assert_int_equal(buf_add(&b, BYTES_LIT("x"), &err), 0);
		for (size_t i = 0; i < row->fields; i++)
			assert_int_equal(buf_add(&b, BYTES_LIT("\r\nx: y"), &err), 0);
		assert_int_equal(buf_add(&b, BYTES_LIT("\r\n\r\n"), &err), 0);
		raw_open(&r, &lim, 0);
		raw_say(&r, buf_view(&b));
		RUN_UNTIL(r.l, r.client.ends == 1);
		assert_int_equal(strncmp(heard(&r), "HTTP/1.1 431 ", 13), 0);
		assert_int_equal(r.sv.requests, 0);
		raw_close(&r);
	}
}

/* More body than may be thrown away: the answer arrives, then the connection ends. */
static void a_large_unread_body_ends_the_connection(void **state)
{
	static const struct {
		const char *name, *says, *hears;
	} rows[] = {
		{ "announced", "POST /early HTTP/1.1\r\n" HOST "Content-Length: 200000\r\n\r\n",
		  FINAL("5", "hello") },
		{ "in chunks",
		  "POST /early HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n30d40\r\n",
		  OK("5", "hello") },
	};
	static const struct http_limits lim = { .drain_max = 100000 };
	uint8_t *body = calloc(1, 200000);

	(void)state;
	FOR_ROWS(row, rows) {
		struct raw r;

		raw_open(&r, &lim, 0);
		raw_say(&r, bytes_str(row->says));
		raw_say(&r, (struct bytes){ body, 200000 });
		RUN_UNTIL(r.l, r.client.ends == 1);
		assert_string_equal(heard(&r), row->hears);
		assert_int_equal(r.client.fails, 0);
		raw_close(&r);
	}
	free(body);
}

static void a_client_that_vanishes_is_noticed(void **state)
{
	static const struct {
		const char *name, *says;
		bool reset, half_close;
		size_t gone;
	} rows[] = {
		{ "closed, waiting for an answer", "GET /hold HTTP/1.1\r\n" HOST "\r\n", false,
		  false, 1 },
		{ "reset, waiting for an answer", "GET /hold HTTP/1.1\r\n" HOST "\r\n", true, false,
		  1 },
		{ "reset, half closes allowed", "GET /hold HTTP/1.1\r\n" HOST "\r\n", true, true,
		  1 },
		{ "closed inside the body",
		  "POST /length HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc", false, true, 1 },
		{ "reset in the middle of the answer", "GET /big HTTP/1.1\r\n" HOST "\r\n", true,
		  false, 1 },
		{ "closed inside a head", "GET /hel", false, false, 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct http_limits lim = HTTP_LIMITS;
		struct loop *l = test_loop();
		struct service sv;
		struct ear client;
		struct err err;
		int fd[2];

		lim.half_close = row->half_close;
		tcp_pair(fd);
		service_open(&sv, l, &lim);
		service_add(&sv, test_stream(l, fd[1]));
		ear_init(&client, test_stream(l, fd[0]));
		assert_int_equal(stream_write(client.s, bytes_str(row->says), &err), 0);
		if (row->gone > 0)
			RUN_UNTIL(l, sv.requests == 1);
		else
			some_turns(l, 5);
		if (row->reset) {
			stream_abort(client.s);
			client.s = NULL;
		}
		ear_done(&client);
		RUN_UNTIL(l, sv.http.n_conns == 0);
		assert_int_equal(sv.gone, row->gone);
		service_close(&sv);
		loop_free(l);
	}
}

static void a_half_closed_client_gets_its_answers_if_allowed(void **state)
{
	struct http_limits lim = HTTP_LIMITS;
	struct raw r;

	(void)state;
	lim.half_close = true;
	raw_open(&r, &lim, 0);
	raw_say(&r, BYTES_LIT("GET /hold HTTP/1.1\r\n" HOST "\r\n"
			      "GET /hello HTTP/1.1\r\n" HOST "\r\n"));
	stream_shut(r.client.s);
	RUN_UNTIL(r.l, r.sv.jobs);
	some_turns(r.l, 5);
	assert_int_equal(r.sv.gone, 0);
	job_answer_text(r.sv.jobs, "late");
	RUN_UNTIL(r.l, r.client.ends == 1);
	assert_string_equal(heard(&r), OK("4", "late") OK("5", "hello"));
	raw_close(&r);
}

static void an_answer_that_breaks_off_is_not_taken_for_whole(void **state)
{
	static const struct {
		const char *name, *says;
	} rows[] = { { "shorter than promised", "GET /short HTTP/1.1\r\n" HOST "\r\n" },
		     { "aborted", "GET /half HTTP/1.1\r\n" HOST "\r\n" } };
	const struct http_limits lim = HTTP_LIMITS;

	(void)state;
	FOR_ROWS(row, rows) {
		struct loop *l = test_loop();
		struct service sv;
		struct ear client;
		struct err err;
		int fd[2];

		tcp_pair(fd);
		service_open(&sv, l, &lim);
		service_add(&sv, test_stream(l, fd[1]));
		ear_init(&client, test_stream(l, fd[0]));
		stream_read(client.s, true);
		assert_int_equal(stream_write(client.s, bytes_str(row->says), &err), 0);
		RUN_UNTIL(l, client.fails == 1);
		assert_int_equal(client.ends, 0);
		ear_done(&client);
		service_close(&sv);
		loop_free(l);
	}
}

static void a_switched_connection_belongs_to_the_handler(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct err err;
	struct raw r;

	(void)state;
	raw_open(&r, &lim, 0);
	raw_say(&r,
		BYTES_LIT("GET /switch HTTP/1.1\r\n" HOST
			  "Connection: keep-alive, Upgrade\r\nUpgrade: chat\r\n\r\nearly bird"));
	RUN_UNTIL(r.l, r.sv.taken.s);
	assert_true(bytes_eq(buf_view(&r.sv.early), BYTES_LIT("early bird")));
	raw_say(&r, BYTES_LIT("more"));
	assert_int_equal(stream_write(r.sv.taken.s, BYTES_LIT("raw"), &err), 0);
	RUN_UNTIL(r.l, ear_heard(&r.sv.taken, "more"));
	some_turns(r.l, 3);
	assert_string_equal(heard(&r), "HTTP/1.1 101 Switching Protocols\r\n"
				       "connection: upgrade\r\nupgrade: chat\r\n\r\nraw");
	assert_int_equal(r.sv.http.n_conns, 0);
	raw_close(&r);

	raw_open(&r, &lim, 0); /* one that did not ask for it */
	raw_say(&r, BYTES_LIT("GET /switch HTTP/1.1\r\n" HOST "\r\n"));
	RUN_UNTIL(r.l, r.client.got.len > 0);
	assert_int_equal(strncmp(heard(&r), "HTTP/1.1 400 ", 13), 0);
	raw_close(&r);
}

static void a_server_that_goes_tells_its_handlers(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct raw r;

	(void)state;
	raw_open(&r, &lim, 0);
	raw_say(&r, BYTES_LIT("GET /hold HTTP/1.1\r\n" HOST "\r\n"));
	RUN_UNTIL(r.l, r.sv.jobs);
	http_server_done(&r.sv.http);
	assert_int_equal(r.sv.gone, 1);
	assert_null(r.sv.jobs);
	raw_close(&r);
}

static void a_server_that_drains_ends_each_connection_with_an_answer(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct raw r;

	(void)state;
	raw_open(&r, &lim, 0); /* idle, and its client asks once more */
	raw_say(&r, BYTES_LIT("GET /hello HTTP/1.1\r\n" HOST "\r\n"));
	RUN_UNTIL(r.l, r.client.got.len > 0);
	http_server_drain(&r.sv.http);
	some_turns(r.l, 3);
	assert_int_equal(r.client.ends, 0);
	raw_say(&r, BYTES_LIT("GET /hello HTTP/1.1\r\n" HOST "\r\n"));
	RUN_UNTIL(r.l, r.client.ends == 1);
	assert_string_equal(heard(&r), OK("5", "hello") FINAL("5", "hello"));
	assert_int_equal(r.sv.http.n_conns, 0);
	raw_close(&r);

	raw_open(&r, &lim, 0); /* in the middle of a request */
	raw_say(&r, BYTES_LIT("GET /hold HTTP/1.1\r\n" HOST "\r\n"));
	RUN_UNTIL(r.l, r.sv.jobs);
	http_server_drain(&r.sv.http);
	some_turns(r.l, 3);
	assert_int_equal(r.client.ends, 0);
	job_answer_text(r.sv.jobs, "held");
	RUN_UNTIL(r.l, r.client.ends == 1);
	assert_string_equal(heard(&r), FINAL("4", "held"));
	raw_close(&r);
}

static void a_server_that_drains_gives_a_client_time_to_ask(void **state)
{
	static const struct http_limits lim = { .drain_max = 100, .last_ms = 30 };
	uint64_t since_ms;
	struct raw r;

	(void)state;
	raw_open(&r, &lim, 0); /* idle, and stays so */
	raw_say(&r, BYTES_LIT("GET /hello HTTP/1.1\r\n" HOST "\r\n"));
	RUN_UNTIL(r.l, r.client.got.len > 0);
	some_turns(r.l, 3);
	http_server_drain(&r.sv.http);
	RUN_UNTIL(r.l, r.client.ends == 1);
	assert_string_equal(heard(&r), OK("5", "hello"));
	raw_close(&r);

	raw_open(&r, &lim, 0); /* its answer was promised to leave the connection open */
	raw_say(&r, BYTES_LIT("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nab"));
	RUN_UNTIL(r.l, r.client.got.len > 0);
	http_server_drain(&r.sv.http);
	raw_say(&r, BYTES_LIT("c"));
	RUN_UNTIL(r.l, !r.sv.jobs);
	since_ms = loop_now_ms(r.l);
	RUN_UNTIL(r.l, r.client.ends == 1);
	assert_true(loop_now_ms(r.l) - since_ms >= lim.last_ms - 1);
	assert_null(strstr(heard(&r), "connection: close"));
	raw_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_talk),
		cmocka_unit_test(every_split_of_every_talk),
		cmocka_unit_test(continue_is_said_when_the_handler_reads),
		cmocka_unit_test(continue_is_not_said_when_the_body_is_already_there),
		cmocka_unit_test(the_next_request_waits_for_the_answer),
		cmocka_unit_test(a_greedy_client_is_held_back),
		cmocka_unit_test(a_slow_reader_costs_bounded_memory),
		cmocka_unit_test(a_handler_that_pauses_gets_no_more),
		cmocka_unit_test(who_is_too_slow_is_cut_off),
		cmocka_unit_test(a_slow_drip_of_a_head_is_cut_off),
		cmocka_unit_test(who_does_not_take_the_answer_is_cut_off),
		cmocka_unit_test(a_head_too_large_is_refused),
		cmocka_unit_test(a_large_unread_body_ends_the_connection),
		cmocka_unit_test(a_client_that_vanishes_is_noticed),
		cmocka_unit_test(a_half_closed_client_gets_its_answers_if_allowed),
		cmocka_unit_test(an_answer_that_breaks_off_is_not_taken_for_whole),
		cmocka_unit_test(a_switched_connection_belongs_to_the_handler),
		cmocka_unit_test(a_server_that_goes_tells_its_handlers),
		cmocka_unit_test(a_server_that_drains_ends_each_connection_with_an_answer),
		cmocka_unit_test(a_server_that_drains_gives_a_client_time_to_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
