/* test_http_both.c - our client and our server together, over TCP and through layers. */
#include "tests/unit/test_http_service.h"

#include <malloc.h>

#include "base/random.h"
#include "http/call.h"

struct both {
	struct loop *l;
	struct service sv;
	struct http_client *client;
};

static void both_open(struct both *b, size_t piece, uint8_t key)
{
	const struct http_limits lim = HTTP_LIMITS;
	struct stream *s[2];
	struct err err = { 0 };
	int fd[2];

	tcp_pair(fd);
	b->l = test_loop();
	for (int i = 0; i < 2; i++) {
		s[i] = test_stream(b->l, fd[i]);
		if (piece > 0)
			s[i] = bend_over(s[i], piece, key);
	}
	service_open(&b->sv, b->l, &lim);
	service_add(&b->sv, s[1]);
	if (http_client_open(s[0], &lim, &b->client, &err) < 0)
		fail_msg("%s", err.msg);
}

static void both_close(struct both *b)
{
	http_client_close(b->client);
	service_close(&b->sv);
	loop_free(b->l);
}

struct caller {
	struct http_call call;
	struct both *b;
	int done, wanted;
};

static const struct http_ask post = { .method = BYTES_LIT("POST"),
				      .target = BYTES_LIT("/echo"),
				      .host = BYTES_LIT("test") };

static void call_next(struct caller *c);

static void on_called(struct http_call *call, const struct http_call_result *ret,
		      const struct err *err)
{
	struct caller *c = CONTAINER_OF(call, struct caller, call);
	char want[32];

	if (err)
		fail_msg("%s", err->msg);
	(void)snprintf(want, sizeof(want), "request %d", c->done);
	assert_int_equal(ret->head->status, 200);
	assert_true(bytes_eq(ret->body, bytes_str(want)));
	c->done++;
	if (c->done < c->wanted)
		call_next(c);
}

static void call_next(struct caller *c)
{
	struct http_ask ask = post;
	char text[32];
	struct err err = { 0 };

	(void)snprintf(text, sizeof(text), "request %d", c->done);
	ask.body = bytes_str(text);
	ask.max_answer = 100;
	if (http_call_start(&c->call, c->b->client, &ask, on_called, &err) < 0)
		fail_msg("%s", err.msg);
}

static void a_thousand_requests_on_one_connection(void **state)
{
	static const struct {
		const char *name;
		size_t piece;
		uint8_t key;
	} rows[] = { { "plain", 0, 0 }, { "disguised, in pieces", 7, 0x33 } };

	(void)state;
	FOR_ROWS(row, rows) {
		struct both b;
		struct caller c = { .b = &b, .wanted = 1000 };

		both_open(&b, row->piece, row->key);
		call_next(&c);
		RUN_UNTIL(b.l, c.done == 1000);
		assert_int_equal(b.sv.requests, 1000);
		assert_int_equal(b.sv.http.n_conns, 1);
		assert_true(http_client_ready(b.client));
		both_close(&b);
	}
}

struct upload { /* sends a long text in chunks and reads it back, slowly */
	struct http_reply reply;
	struct http_exchange *x;
	struct bytes left;
	struct buf back;
	size_t most_queued;
	int ends, pauses;
	bool slow, sent;
	struct timer nap;
};

static void upload_push(struct upload *u)
{
	struct err err = { 0 };

	while (u->left.len > 0 && http_ask_queued(u->x) <= STREAM_LOW_WATER) {
		struct bytes next = bytes_head(u->left, 20011);

		if (http_ask_send(u->x, next, &err) < 0)
			fail_msg("%s", err.msg);
		u->left = bytes_tail(u->left, next.len);
		if (http_ask_queued(u->x) > u->most_queued)
			u->most_queued = http_ask_queued(u->x);
	}
	if (u->left.len == 0 && !u->sent) {
		u->sent = true;
		http_ask_finish(u->x);
	}
}

static void upload_on_head(struct http_reply *r, const struct http1_head *head)
{
	(void)r;
	assert_int_equal(head->status, 200);
}

static void upload_on_body(struct http_reply *r, struct bytes piece)
{
	struct upload *u = CONTAINER_OF(r, struct upload, reply);
	struct err err;

	assert_int_equal(buf_add(&u->back, piece, &err), 0);
	if (u->slow && ++u->pauses % 50 == 0) {
		http_ask_pause(u->x, true);
		timer_start(&u->nap, 1);
	}
}

static void upload_on_end(struct http_reply *r)
{
	CONTAINER_OF(r, struct upload, reply)->ends++;
}

static void upload_on_drain(struct http_reply *r)
{
	upload_push(CONTAINER_OF(r, struct upload, reply));
}

static void upload_on_fail(struct http_reply *r, const struct err *err)
{
	(void)r;
	fail_msg("%s", err->msg);
}

static void upload_wake(struct timer *t)
{
	http_ask_pause(CONTAINER_OF(t, struct upload, nap)->x, false);
}

static void a_long_body_goes_there_and_back(void **state)
{
	static const struct http_reply_ops ops = { upload_on_head, upload_on_body, upload_on_end,
						   upload_on_drain, upload_on_fail };
	static const struct {
		const char *name;
		size_t size, piece;
		bool slow;
	} rows[] = {
		{ "fast", 5 * 1024 * 1024, 0, false },
		{ "slow reader", 5 * 1024 * 1024, 0, true },
		{ "in pieces", 300 * 1024, 100, true },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		uint8_t *text = malloc(row->size);
		struct upload u = { .reply = { &ops },
				    .left = { text, row->size },
				    .back = BUF_MAX(EAR_MAX),
				    .slow = row->slow };
		struct http_ask chunked = post;
		struct both b;
		struct err err;

		assert_non_null(text);
		random_fill(text, row->size);
		chunked.length = HTTP_CHUNKED;
		both_open(&b, row->piece, 9);
		b.sv.echo_slowly = true;
		timer_init(&u.nap, b.l, upload_wake);
		assert_int_equal(http_ask(b.client, &chunked, &u.reply, &u.x, &err), 0);
		upload_push(&u);
		RUN_UNTIL(b.l, u.ends == 1);
		assert_true(bytes_eq(buf_view(&u.back), (struct bytes){ text, row->size }));
		assert_true(http_client_ready(b.client));
		/* neither side ever held more than one read, or one piece, beyond the mark */
		assert_true(b.sv.most_queued <= STREAM_LOW_WATER + LOOP_READ_MAX + 64);
		assert_true(u.most_queued <= STREAM_LOW_WATER + 20011 + 64);
		both_close(&b);
		buf_done(&u.back);
		free(text);
	}
}

struct failing {
	struct http_reply reply;
	struct http_exchange *x;
	int fails, ends;
	struct err why;
	struct stream *taken;
	struct buf early;
};

static void failing_on_head(struct http_reply *r, const struct http1_head *head)
{
	struct failing *f = CONTAINER_OF(r, struct failing, reply);

	if (head->status == 101)
		assert_int_equal(http_ask_take(f->x, &f->taken, &f->early, &f->why), 0);
}

static void failing_on_body(struct http_reply *r, struct bytes piece)
{
	(void)r;
	(void)piece;
}

static void failing_on_end(struct http_reply *r)
{
	CONTAINER_OF(r, struct failing, reply)->ends++;
}

static void failing_on_fail(struct http_reply *r, const struct err *err)
{
	struct failing *f = CONTAINER_OF(r, struct failing, reply);

	f->fails++;
	f->why = *err;
}

static const struct http_reply_ops failing_ops = { failing_on_head, failing_on_body, failing_on_end,
						   upload_on_drain, failing_on_fail };

static void a_server_that_dies_in_its_answer_is_a_failure(void **state)
{
	static const struct {
		const char *name, *path;
		bool kill;
	} rows[] = { { "aborts", "/half", false },
		     { "promises too much", "/short", false },
		     { "is killed", "/hold", true } };

	(void)state;
	FOR_ROWS(row, rows) {
		struct failing f = { .reply = { &failing_ops } };
		struct http_ask get = post;
		struct both b;
		struct err err;

		get.method = BYTES_LIT("GET");
		get.target = bytes_str(row->path);
		both_open(&b, 0, 0);
		assert_int_equal(http_ask(b.client, &get, &f.reply, &f.x, &err), 0);
		RUN_UNTIL(b.l, b.sv.requests == 1);
		if (row->kill) {
			job_respond(b.sv.jobs, 200, HTTP_CHUNKED);
			job_send(b.sv.jobs, BYTES_LIT("first part"));
			http_server_done(&b.sv.http);
		}
		RUN_UNTIL(b.l, f.fails + f.ends > 0);
		assert_int_equal(f.fails, 1);
		assert_int_equal(f.why.code, ERR_UNAVAILABLE);
		assert_false(http_client_ready(b.client));
		both_close(&b);
	}
}

static void both_sides_switch_and_talk(void **state)
{
	struct failing f = { .reply = { &failing_ops } };
	struct http_ask chat = post;
	struct both b;
	struct ear e;
	struct err err;

	(void)state;
	chat.method = BYTES_LIT("GET");
	chat.target = BYTES_LIT("/switch");
	chat.upgrade = BYTES_LIT("chat");
	both_open(&b, 0, 0);
	assert_int_equal(http_ask(b.client, &chat, &f.reply, &f.x, &err), 0);
	RUN_UNTIL(b.l, f.taken && b.sv.taken.s);
	ear_init(&e, f.taken);
	stream_read(e.s, true);
	assert_int_equal(stream_write(e.s, BYTES_LIT("ping"), &err), 0);
	assert_int_equal(stream_write(b.sv.taken.s, BYTES_LIT("pong"), &err), 0);
	RUN_UNTIL(b.l, ear_heard(&e, "pong") && ear_heard(&b.sv.taken, "ping"));
	buf_done(&f.early);
	ear_done(&e);
	both_close(&b);
}

/* The allocator of the sanitizers does not count, so there this only runs the code. */
static void an_idle_connection_is_small(void **state)
{
	enum { N = 100, EACH_MAX = 4096 }; /* server, client, and both their streams */
	struct caller c[N] = { 0 };
	struct both b[N];
	size_t before, after;

	(void)state;
	both_open(&b[0], 0, 0); /* all of them on this loop */
	before = mallinfo2().uordblks;
	for (size_t i = 1; i < N; i++) {
		const struct http_limits lim = HTTP_LIMITS;
		struct err err;
		int fd[2];

		tcp_pair(fd);
		b[i].l = b[0].l;
		service_add(&b[0].sv, test_stream(b[0].l, fd[1]));
		assert_int_equal(
			http_client_open(test_stream(b[0].l, fd[0]), &lim, &b[i].client, &err), 0);
		c[i] = (struct caller){ .b = &b[i], .wanted = 1 };
		call_next(&c[i]);
		RUN_UNTIL(b[0].l, c[i].done == 1);
	}
	after = mallinfo2().uordblks;
	assert_true(after - before <= (size_t)N * EACH_MAX);
	for (size_t i = 1; i < N; i++)
		http_client_close(b[i].client);
	both_close(&b[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_requests_on_one_connection),
		cmocka_unit_test(a_long_body_goes_there_and_back),
		cmocka_unit_test(a_server_that_dies_in_its_answer_is_a_failure),
		cmocka_unit_test(both_sides_switch_and_talk),
		cmocka_unit_test(an_idle_connection_is_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
