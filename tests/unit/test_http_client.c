/* test_http_client.c - the client against servers that answer well, badly, slowly or not at all. */
#include "tests/unit/test_net_layers.h"

#include "http/call.h"
#include "http/out.h"

struct asker { /* one who asks and writes down what comes back */
	struct http_reply reply;
	struct http_client *client;
	struct http_exchange *x;
	unsigned int status;
	struct buf body;
	size_t heads, ends, drains, fails;
	struct err why;
	struct stream *taken;
	struct buf early;
	bool ready_at_end;
	bool take, cancel_at_head, close_at_end, pause_at_body;
	const struct http_ask *again; /* asked in on_end, at once */
};

static void asker_on_head(struct http_reply *r, const struct http1_head *head)
{
	struct asker *a = CONTAINER_OF(r, struct asker, reply);

	a->heads++;
	a->status = head->status;
	if (a->take && head->status == 101)
		assert_int_equal(http_ask_take(a->x, &a->taken, &a->early, &a->why), 0);
	else if (a->cancel_at_head)
		http_ask_cancel(a->x);
}

static void asker_on_body(struct http_reply *r, struct bytes piece)
{
	struct asker *a = CONTAINER_OF(r, struct asker, reply);
	struct err err;

	assert_true(piece.len > 0);
	assert_int_equal(buf_add(&a->body, piece, &err), 0);
	if (a->pause_at_body)
		http_ask_pause(a->x, true);
}

static void asker_on_end(struct http_reply *r)
{
	struct asker *a = CONTAINER_OF(r, struct asker, reply);
	const struct http_ask *again = a->again;
	struct err err = { 0 };

	a->ends++;
	a->ready_at_end = http_client_ready(a->client);
	a->again = NULL;
	if (again && http_ask(a->client, again, &a->reply, &a->x, &err) < 0)
		fail_msg("%s", err.msg);
	if (!a->close_at_end)
		return;
	http_client_close(a->client);
	a->client = NULL;
}

static void asker_on_drain(struct http_reply *r)
{
	CONTAINER_OF(r, struct asker, reply)->drains++;
}

static void asker_on_fail(struct http_reply *r, const struct err *err)
{
	struct asker *a = CONTAINER_OF(r, struct asker, reply);

	a->fails++;
	a->why = *err;
}

struct scene {
	struct loop *l;
	struct ear server; /* the other end, played by the test */
	struct asker a;
};

static void scene_open(struct scene *sc, const struct http_limits *lim, size_t piece)
{
	static const struct http_reply_ops ops = { asker_on_head, asker_on_body, asker_on_end,
						   asker_on_drain, asker_on_fail };
	struct stream *s;
	struct err err = { 0 };
	int fd[2];

	*sc = (struct scene){ .l = test_loop() };
	unix_pair(fd);
	s = test_stream(sc->l, fd[0]);
	if (piece > 0)
		s = bend_over(s, piece, 0);
	sc->a.reply.ops = &ops;
	sc->a.body = BUF_MAX(EAR_MAX);
	if (http_client_open(s, lim, &sc->a.client, &err) < 0)
		fail_msg("%s", err.msg);
	ear_init(&sc->server, test_stream(sc->l, fd[1]));
	stream_read(sc->server.s, true);
}

static void scene_close(struct scene *sc)
{
	http_client_close(sc->a.client);
	if (sc->a.taken)
		stream_close(sc->a.taken);
	buf_done(&sc->a.early);
	buf_done(&sc->a.body);
	ear_done(&sc->server);
	loop_free(sc->l);
}

static void ask(struct scene *sc, const struct http_ask *what)
{
	struct err err = { 0 };

	if (http_ask(sc->a.client, what, &sc->a.reply, &sc->a.x, &err) < 0)
		fail_msg("%s", err.msg);
}

static void server_says(struct scene *sc, struct bytes text)
{
	struct err err = { 0 };

	if (stream_write(sc->server.s, text, &err) < 0)
		fail_msg("%s", err.msg);
}

static const struct http_ask get = { .method = BYTES_LIT("GET"),
				     .target = BYTES_LIT("/a?b"),
				     .host = BYTES_LIT("h:1") };

static void requests_are_written_as_asked(void **state)
{
	static const struct http1_field fields[] = { { BYTES_LIT("X-A"), BYTES_LIT("1") } };
	static const struct {
		const char *name;
		struct http_ask ask;
		const char *sends;
	} rows[] = {
		{ "get",
		  { .method = BYTES_LIT("GET"), .target = BYTES_LIT("/"), .host = BYTES_LIT("h") },
		  "GET / HTTP/1.1\r\nHost: h\r\n\r\n" },
		{ "fields",
		  { .method = BYTES_LIT("GET"),
		    .target = BYTES_LIT("/"),
		    .host = BYTES_LIT("h"),
		    .fields = fields,
		    .n_fields = 1 },
		  "GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n\r\n" },
		{ "post of nothing",
		  { .method = BYTES_LIT("POST"), .target = BYTES_LIT("/"), .host = BYTES_LIT("h") },
		  "POST / HTTP/1.1\r\nHost: h\r\ncontent-length: 0\r\n\r\n" },
		{ "body at once",
		  { .method = BYTES_LIT("PUT"),
		    .target = BYTES_LIT("/"),
		    .host = BYTES_LIT("h"),
		    .body = BYTES_LIT("abc") },
		  "PUT / HTTP/1.1\r\nHost: h\r\ncontent-length: 3\r\n\r\nabc" },
		{ "upgrade",
		  { .method = BYTES_LIT("GET"),
		    .target = BYTES_LIT("/"),
		    .host = BYTES_LIT("h"),
		    .upgrade = BYTES_LIT("websocket") },
		  "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: "
		  "websocket\r\n\r\n" },
	};
	const struct http_limits lim = HTTP_LIMITS;

	(void)state;
	FOR_ROWS(row, rows) {
		struct scene sc;

		scene_open(&sc, &lim, 0);
		ask(&sc, &row->ask);
		RUN_UNTIL(sc.l, sc.server.got.len >= strlen(row->sends));
		assert_true(ear_heard(&sc.server, row->sends));
		assert_false(http_client_ready(sc.a.client));
		scene_close(&sc);
	}
}

static void requests_that_cannot_be_written_are_refused(void **state)
{
	static const struct http1_field framing[] = { { BYTES_LIT("content-length"),
							BYTES_LIT("1") } };
	static const struct http1_field split[] = { { BYTES_LIT("x"), BYTES_LIT("1\r\ny: 2") } };
	static const struct {
		const char *name;
		struct bytes target;
		const struct http1_field *fields;
	} rows[] = {
		{ "framing is the client's", BYTES_LIT("/"), framing },
		{ "a value that would end the line", BYTES_LIT("/"), split },
		{ "a target that would end the line", BYTES_LIT("/ HTTP/1.1\r\nx: y"), NULL },
	};
	const struct http_limits lim = HTTP_LIMITS;

	(void)state;
	FOR_ROWS(row, rows) {
		struct http_ask bad = get;
		struct scene sc;
		struct err err = { 0 };

		bad.target = row->target;
		bad.fields = row->fields;
		bad.n_fields = row->fields ? 1 : 0;
		scene_open(&sc, &lim, 0);
		assert_int_equal(http_ask(sc.a.client, &bad, &sc.a.reply, &sc.a.x, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_true(http_client_ready(sc.a.client)); /* nothing was sent */
		scene_close(&sc);
	}
}

struct answer {
	const char *name, *says;
	unsigned int status;
	const char *body; /* NULL: fails */
	bool ends;        /* the server closes after it */
	bool reusable;
};

static const struct answer answers[] = {
	{ "length", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", 200, "abc", false, true },
	{ "nothing", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", false, true },
	{ "no reason", "HTTP/1.1 404 \r\ncontent-length: 0\r\n\r\n", 404, "", false, true },
	{ "chunks",
	  "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
	  200, "abc", false, true },
	{ "until the end", "HTTP/1.1 200 OK\r\n\r\nabc", 200, "abc", true, false },
	{ "close", "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na", 200, "a",
	  false, false },
	{ "old server", "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", 200, "a", false, false },
	{ "interim answers first",
	  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
	  "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
	  200, "a", false, true },
	{ "more than was asked for", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab", 200, "a",
	  false, false },
	{ "two answers", "HTTP/1.1 204 N\r\n\r\nHTTP/1.1 204 N\r\n\r\n", 204, "", false, false },
	{ "short length", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc", 200, NULL, true,
	  false },
	{ "unfinished chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
	  200, NULL, true, false },
	{ "broken chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", 200,
	  NULL, false, false },
	{ "no answer", "", 0, NULL, true, false },
	{ "half a head", "HTTP/1.1 200 OK\r\ncontent-le", 0, NULL, true, false },
	{ "not http", "SSH-2.0-OpenSSH_9.2\r\n\r\n", 0, NULL, false, false },
	{ "both framings",
	  "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", 0, NULL,
	  false, false },
	{ "an unasked switch", "HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", 0,
	  NULL, false, false },
};

static void check_answer(struct scene *sc, const struct answer *row)
{
	RUN_UNTIL(sc->l, sc->a.ends + sc->a.fails == 1);
	assert_int_equal(sc->a.ends, row->body != NULL);
	assert_int_equal(sc->a.status, row->status);
	if (row->body)
		assert_true(bytes_eq(buf_view(&sc->a.body), bytes_str(row->body)));
	assert_int_equal(sc->a.ready_at_end, row->reusable);
	assert_int_equal(http_client_ready(sc->a.client), row->reusable);
}

static void every_kind_of_answer(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;

	(void)state;
	FOR_ROWS(row, answers) {
		for (size_t piece = 0; piece <= 1; piece++) { /* whole, and byte by byte */
			struct scene sc;

			/* byte by byte, what comes too much comes when nobody asks any more */
			if (piece == 1 &&
			    (strstr(row->name, "more than") || strstr(row->name, "two answers")))
				continue;
			scene_open(&sc, &lim, piece);
			ask(&sc, &get);
			server_says(&sc, bytes_str(row->says));
			if (row->ends)
				stream_shut(sc.server.s);
			check_answer(&sc, row);
			scene_close(&sc);
		}
	}
}

static void a_head_has_no_body_whatever_it_says(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct http_ask head = get;
	struct scene sc;

	(void)state;
	head.method = BYTES_LIT("HEAD");
	scene_open(&sc, &lim, 0);
	ask(&sc, &head);
	server_says(&sc, BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"));
	RUN_UNTIL(sc.l, sc.a.ends == 1);
	assert_int_equal(sc.a.body.len, 0);
	assert_true(http_client_ready(sc.a.client));
	scene_close(&sc);
}

static void what_nobody_asked_for_ends_the_connection(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct scene sc;
	struct err err;

	(void)state;
	scene_open(&sc, &lim, 0);
	assert_true(http_client_ready(sc.a.client));
	server_says(&sc, BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
	RUN_UNTIL(sc.l, !http_client_ready(sc.a.client));
	assert_int_equal(http_ask(sc.a.client, &get, &sc.a.reply, &sc.a.x, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	scene_close(&sc);

	scene_open(&sc, &lim, 0); /* and so does a server that closes an idle one */
	stream_shut(sc.server.s);
	RUN_UNTIL(sc.l, !http_client_ready(sc.a.client));
	scene_close(&sc);
}

static void endless_interim_answers_fail(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct scene sc;

	(void)state;
	scene_open(&sc, &lim, 0);
	ask(&sc, &get);
	for (int i = 0; i <= HTTP_INTERIM_MAX; i++)
		server_says(&sc, BYTES_LIT("HTTP/1.1 102 Processing\r\n\r\n"));
	RUN_UNTIL(sc.l, sc.a.fails == 1);
	assert_int_equal(sc.a.why.code, ERR_INVALID);
	scene_close(&sc);
}

static void an_endless_head_fails(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct scene sc;
	char line[1000];

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "a: ", 3);
	memcpy(line + sizeof(line) - 2, "\r\n", 2);
	scene_open(&sc, &lim, 0);
	ask(&sc, &get);
	server_says(&sc, BYTES_LIT("HTTP/1.1 200 OK\r\n"));
	for (int i = 0; i < 40; i++)
		server_says(&sc, (struct bytes){ (uint8_t *)line, sizeof(line) });
	RUN_UNTIL(sc.l, sc.a.fails == 1);
	assert_int_equal(sc.a.why.code, ERR_EXHAUSTED);
	scene_close(&sc);
}

static void who_is_too_slow_fails(void **state)
{
	static const struct {
		const char *name, *says;
		struct http_limits lim;
		uint64_t deadline_ms;
		const char *why;
	} rows[] = {
		{ "no answer", "", { .reply_ms = 20 }, 0, "no answer in time" },
		{ "half a head", "HTTP/1.1 200", { .reply_ms = 20 }, 0, "no answer in time" },
		{ "half a body",
		  "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
		  { .body_stall_ms = 20 },
		  0,
		  "the answer stalled" },
		{ "past the deadline",
		  "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
		  { 0 },
		  20,
		  "the deadline of the exchange passed" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct http_ask timed = get;
		struct scene sc;

		timed.deadline_ms = row->deadline_ms;
		scene_open(&sc, &row->lim, 0);
		ask(&sc, &timed);
		server_says(&sc, bytes_str(row->says));
		RUN_UNTIL(sc.l, sc.a.fails == 1);
		assert_int_equal(sc.a.why.code, ERR_TIMEOUT);
		assert_string_equal(sc.a.why.msg, row->why);
		RUN_UNTIL(sc.l, sc.server.ends + sc.server.fails > 0); /* hung up on */
		scene_close(&sc);
	}
}

static void who_does_not_take_the_request_fails(void **state)
{
	static const struct http_limits lim = { .write_stall_ms = 20 };
	struct http_ask put = get;
	uint8_t *block = calloc(1, 50000);
	struct scene sc;
	struct err err;

	(void)state;
	put.length = HTTP_CHUNKED;
	scene_open(&sc, &lim, 0);
	stream_read(sc.server.s, false);
	ask(&sc, &put);
	while (http_ask_send(sc.a.x, (struct bytes){ block, 50000 }, &err) == 0)
		;
	assert_int_equal(err.code, ERR_EXHAUSTED);
	assert_true(http_ask_queued(sc.a.x) <= STREAM_QUEUE_MAX);
	RUN_UNTIL(sc.l, sc.a.fails == 1);
	assert_int_equal(sc.a.why.code, ERR_TIMEOUT);
	free(block);
	scene_close(&sc);
}

static void a_body_is_sent_in_pieces(void **state)
{
	static const struct {
		const char *name;
		int64_t length;
		const char *sends;
	} rows[] = {
		{ "of known length", 5,
		  "GET /a?b HTTP/1.1\r\nHost: h:1\r\ncontent-length: 5\r\n\r\nabcde" },
		{ "in chunks", HTTP_CHUNKED,
		  "GET /a?b HTTP/1.1\r\nHost: h:1\r\ntransfer-encoding: chunked\r\n\r\n"
		  "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" },
	};
	const struct http_limits lim = HTTP_LIMITS;

	(void)state;
	FOR_ROWS(row, rows) {
		struct http_ask put = get;
		struct scene sc;
		struct err err;

		put.length = row->length;
		scene_open(&sc, &lim, 0);
		ask(&sc, &put);
		assert_int_equal(http_ask_send(sc.a.x, BYTES_LIT("abc"), &err), 0);
		assert_int_equal(http_ask_send(sc.a.x, BYTES_LIT(""), &err), 0);
		assert_int_equal(http_ask_send(sc.a.x, BYTES_LIT("de"), &err), 0);
		if (row->length == 5)
			assert_int_equal(http_ask_send(sc.a.x, BYTES_LIT("f"), &err), -1);
		http_ask_finish(sc.a.x);
		RUN_UNTIL(sc.l, sc.server.got.len >= strlen(row->sends));
		assert_true(ear_heard(&sc.server, row->sends));
		server_says(&sc, BYTES_LIT("HTTP/1.1 204 No\r\n\r\n"));
		RUN_UNTIL(sc.l, sc.a.ends == 1);
		assert_true(http_client_ready(sc.a.client));
		scene_close(&sc);
	}
}

static void a_body_shorter_than_promised_fails_the_exchange(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct http_ask put = get;
	struct scene sc;
	struct err err;

	(void)state;
	put.length = 5;
	scene_open(&sc, &lim, 0);
	ask(&sc, &put);
	assert_int_equal(http_ask_send(sc.a.x, BYTES_LIT("abc"), &err), 0);
	http_ask_finish(sc.a.x);
	assert_int_equal(sc.a.fails, 0); /* not from inside the call */
	RUN_UNTIL(sc.l, sc.a.fails == 1);
	assert_int_equal(sc.a.why.code, ERR_INVALID);
	scene_close(&sc);
}

/* An upload that is refused half way: the answer counts, the connection is not used again. */
static void an_early_answer_ends_the_exchange(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct http_ask put = get;
	struct scene sc;
	struct err err;

	(void)state;
	put.length = 1000;
	scene_open(&sc, &lim, 0);
	ask(&sc, &put);
	assert_int_equal(http_ask_send(sc.a.x, BYTES_LIT("abc"), &err), 0);
	server_says(&sc, BYTES_LIT("HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno"));
	RUN_UNTIL(sc.l, sc.a.ends == 1);
	assert_int_equal(sc.a.status, 413);
	assert_false(http_client_ready(sc.a.client));
	scene_close(&sc);
}

/* The same by a server that does not wait for the rest: there is nobody left to take the last
 * chunk. */
static void an_answer_is_heard_whatever_became_of_the_request(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	static const uint8_t large[HTTP_OUT_ALONE]; /* a smaller piece waits for others */
	struct http_ask put = get;
	struct scene sc;
	struct err err;

	(void)state;
	put.length = HTTP_CHUNKED;
	for (int lost = 0; lost <= 1; lost++) {
		scene_open(&sc, &lim, 0);
		ask(&sc, &put);
		RUN_UNTIL(sc.l, sc.server.got.len > 0);
		server_says(&sc, BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
		stream_abort(TAKE(sc.server.s));
		if (lost)
			assert_int_equal(
				http_ask_send(sc.a.x, (struct bytes){ large, sizeof(large) }, &err),
				-1);
		http_ask_finish(sc.a.x);
		RUN_UNTIL(sc.l, sc.a.ends + sc.a.fails == 1);
		assert_int_equal(sc.a.ends, 1);
		assert_int_equal(sc.a.status, 200);
		assert_true(bytes_eq(buf_view(&sc.a.body), BYTES_LIT("ok")));
		assert_false(http_client_ready(sc.a.client));
		scene_close(&sc);
	}
}

static void a_paused_answer_waits(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	static const uint8_t large[HTTP_OUT_ALONE] = { 'a' };
	struct scene sc;

	(void)state;
	scene_open(&sc, &lim, 0);
	sc.a.pause_at_body = true;
	ask(&sc, &get);
	server_says(&sc, BYTES_LIT("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
				   "2000\r\n"));
	server_says(&sc, (struct bytes){ large, sizeof(large) }); /* too large to be put together */
	server_says(&sc, BYTES_LIT("\r\n1\r\nb\r\n0\r\n\r\n"));
	RUN_UNTIL(sc.l, sc.a.body.len == sizeof(large));
	for (int i = 0; i < 5; i++) {
		struct timer t;

		timer_init(&t, sc.l, patience_over);
		timer_start(&t, 0);
		(void)loop_turn(sc.l);
		timer_stop(&t);
	}
	assert_int_equal(sc.a.body.len, sizeof(large));
	http_ask_pause(sc.a.x, false);
	RUN_UNTIL(sc.l, sc.a.body.len == sizeof(large) + 1);
	sc.a.pause_at_body = false;
	http_ask_pause(sc.a.x, false);
	RUN_UNTIL(sc.l, sc.a.ends == 1);
	scene_close(&sc);
}

static void callers_may_leave_at_any_time(void **state)
{
	static const struct {
		const char *name;
		bool cancel_at_head, close_at_end, close_now;
	} rows[] = {
		{ "cancel in on_head", true, false, false },
		{ "close in on_end", false, true, false },
		{ "close while waiting", false, false, true },
	};
	const struct http_limits lim = HTTP_LIMITS;

	(void)state;
	FOR_ROWS(row, rows) {
		struct scene sc;

		scene_open(&sc, &lim, 0);
		sc.a.cancel_at_head = row->cancel_at_head;
		sc.a.close_at_end = row->close_at_end;
		ask(&sc, &get);
		RUN_UNTIL(sc.l, sc.server.got.len > 0);
		if (row->close_now) {
			http_client_close(sc.a.client);
			sc.a.client = NULL;
		} else {
			server_says(&sc,
				    BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc"));
		}
		RUN_UNTIL(sc.l, sc.server.ends + sc.server.fails > 0);
		assert_int_equal(sc.a.fails, 0);
		assert_int_equal(sc.a.ends, row->close_at_end);
		assert_int_equal(sc.a.heads, !row->close_now);
		scene_close(&sc);
	}
}

static void one_may_ask_again_in_on_end(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct scene sc;

	(void)state;
	scene_open(&sc, &lim, 0);
	sc.a.again = &get;
	ask(&sc, &get);
	server_says(&sc, BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na"));
	RUN_UNTIL(sc.l, sc.a.ends == 1);
	server_says(&sc, BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nb"));
	RUN_UNTIL(sc.l, sc.a.ends == 2);
	assert_true(bytes_eq(buf_view(&sc.a.body), BYTES_LIT("ab")));
	scene_close(&sc);
}

static void a_switched_connection_belongs_to_the_caller(void **state)
{
	static const struct {
		const char *name;
		bool take;
	} rows[] = { { "taken", true }, { "not taken", false } };
	const struct http_limits lim = HTTP_LIMITS;

	(void)state;
	FOR_ROWS(row, rows) {
		struct http_ask chat = get;
		struct scene sc;

		chat.upgrade = BYTES_LIT("chat");
		scene_open(&sc, &lim, 0);
		sc.a.take = row->take;
		ask(&sc, &chat);
		server_says(&sc, BYTES_LIT("HTTP/1.1 101 Switching\r\nconnection: upgrade\r\n"
					   "upgrade: chat\r\n\r\nfirst words"));
		RUN_UNTIL(sc.l, sc.a.heads == 1);
		if (row->take) {
			assert_non_null(sc.a.taken);
			assert_true(bytes_eq(buf_view(&sc.a.early), BYTES_LIT("first words")));
			assert_int_equal(sc.a.fails, 0);
		} else {
			assert_int_equal(sc.a.fails, 1);
		}
		assert_false(http_client_ready(sc.a.client));
		scene_close(&sc);
	}
}

struct caller {
	struct http_call call;
	int dones;
	unsigned int status;
	struct buf body;
	struct err why;
};

static void on_called(struct http_call *c, const struct http_call_result *ret,
		      const struct err *err)
{
	struct caller *me = CONTAINER_OF(c, struct caller, call);
	struct err bad;

	me->dones++;
	if (err)
		me->why = *err;
	else
		me->status = ret->head->status;
	assert_int_equal(buf_add(&me->body, err ? (struct bytes){ 0 } : ret->body, &bad), 0);
}

static void a_call_is_one_callback(void **state)
{
	static const struct {
		const char *name, *says;
		unsigned int status; /* 0: fails */
		const char *body;
		enum err_code why;
	} rows[] = {
		{ "well", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine", 200, "fine",
		  ERR_NONE },
		{ "an error status", "HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\nno", 500, "no",
		  ERR_NONE },
		{ "too much", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123456789", 0, "",
		  ERR_EXHAUSTED },
		{ "cut short", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234", 0, "",
		  ERR_UNAVAILABLE },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct loop *l = test_loop();
		struct caller me = { .body = BUF_MAX(100) };
		struct http_ask ask = get;
		struct ear server;
		struct err err = { 0 };
		int fd[2];

		unix_pair(fd);
		ear_init(&server, test_stream(l, fd[1]));
		stream_read(server.s, true);
		ask.body = BYTES_LIT("x");
		ask.max_answer = 8;
		assert_int_equal(
			http_call_stream(&me.call, test_stream(l, fd[0]), &ask, on_called, &err),
			0);
		assert_int_equal(stream_write(server.s, bytes_str(row->says), &err), 0);
		stream_shut(server.s);
		RUN_UNTIL(l, me.dones == 1);
		assert_int_equal(me.status, row->status);
		assert_int_equal(me.why.code, row->why);
		assert_true(bytes_eq(buf_view(&me.body), bytes_str(row->body)));
		RUN_UNTIL(l, server.ends + server.fails > 0); /* the stream was closed for us */
		buf_done(&me.body);
		ear_done(&server);
		loop_free(l);
	}
}

/* On a connection that is not the call's own, nothing of it may stay behind. */
static void a_call_that_fails_leaves_the_shared_client(void **state)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct caller me = { .body = BUF_MAX(100) };
	struct http_ask ask = get;
	struct scene sc;
	struct err err;

	(void)state;
	scene_open(&sc, &lim, 1);
	ask.max_answer = 2;
	assert_int_equal(http_call_start(&me.call, sc.a.client, &ask, on_called, &err), 0);
	server_says(&sc, BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123456789"));
	RUN_UNTIL(sc.l, me.dones == 1);
	assert_int_equal(me.why.code, ERR_EXHAUSTED);
	RUN_UNTIL(sc.l, sc.server.ends + sc.server.fails > 0);
	assert_int_equal(me.dones, 1);
	assert_false(http_client_ready(sc.a.client));
	scene_close(&sc);
	buf_done(&me.body);
}

static void a_cancelled_call_is_silent(void **state)
{
	struct loop *l = test_loop();
	struct caller me = { 0 };
	struct ear server;
	struct err err;
	int fd[2];

	(void)state;
	unix_pair(fd);
	ear_init(&server, test_stream(l, fd[1]));
	stream_read(server.s, true);
	assert_int_equal(http_call_stream(&me.call, test_stream(l, fd[0]), &get, on_called, &err),
			 0);
	http_call_cancel(&me.call);
	http_call_cancel(&me.call);
	RUN_UNTIL(l, server.ends + server.fails > 0);
	assert_int_equal(me.dones, 0);
	ear_done(&server);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_written_as_asked),
		cmocka_unit_test(requests_that_cannot_be_written_are_refused),
		cmocka_unit_test(every_kind_of_answer),
		cmocka_unit_test(a_head_has_no_body_whatever_it_says),
		cmocka_unit_test(what_nobody_asked_for_ends_the_connection),
		cmocka_unit_test(endless_interim_answers_fail),
		cmocka_unit_test(an_endless_head_fails),
		cmocka_unit_test(who_is_too_slow_fails),
		cmocka_unit_test(who_does_not_take_the_request_fails),
		cmocka_unit_test(a_body_is_sent_in_pieces),
		cmocka_unit_test(a_body_shorter_than_promised_fails_the_exchange),
		cmocka_unit_test(an_early_answer_ends_the_exchange),
		cmocka_unit_test(an_answer_is_heard_whatever_became_of_the_request),
		cmocka_unit_test(a_paused_answer_waits),
		cmocka_unit_test(callers_may_leave_at_any_time),
		cmocka_unit_test(one_may_ask_again_in_on_end),
		cmocka_unit_test(a_switched_connection_belongs_to_the_caller),
		cmocka_unit_test(a_call_is_one_callback),
		cmocka_unit_test(a_call_that_fails_leaves_the_shared_client),
		cmocka_unit_test(a_cancelled_call_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
