/* test_http_turns.c - whoever sends very many very small things gets no more of a turn of the loop
 * than others, and is answered in few writes; and who gives way when there are too many.
 */
#include "tests/unit/test_http_service.h"

#include "http/client.h"
#include "http/out.h"
#include "http/refuse.h"

enum { CLIENTS = 3, CHUNKS = 4000, EACH = 6, ASKS = 64 };

#define HELLO   "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n"
#define CHUNKED "host: x\r\ntransfer-encoding: chunked\r\n\r\n"

struct crowd {
	struct loop *l;
	struct service sv;
	struct ear client[CLIENTS];
};

/* One write is one piece for whoever reads. */
static void packet_pair(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
}

static void crowd_open(struct crowd *c)
{
	const struct http_limits lim = HTTP_LIMITS;
	int fd[2];

	c->l = test_loop();
	service_open(&c->sv, c->l, &lim);
	for (size_t i = 0; i < CLIENTS; i++) {
		packet_pair(fd);
		service_add(&c->sv, test_stream(c->l, fd[1]));
		ear_init(&c->client[i], test_stream(c->l, fd[0]));
		stream_read(c->client[i].s, true);
	}
}

static void crowd_close(struct crowd *c)
{
	for (size_t i = 0; i < CLIENTS; i++)
		ear_done(&c->client[i]);
	service_close(&c->sv);
	loop_free(c->l);
}

static void say(struct ear *e, struct bytes text)
{
	struct err err = { 0 };

	if (stream_write(e->s, text, &err) < 0)
		fail_msg("%s", err.msg);
}

static bool has(const struct ear *e, const char *text)
{
	return e->got.len > 0 && memmem(e->got.ptr, e->got.len, text, strlen(text));
}

/* A body of chunks of one byte. */
static struct bytes tiny_chunks(void)
{
	static char text[CHUNKS * EACH + 1];

	for (size_t i = 0; i < CHUNKS; i++)
		(void)snprintf(text + i * EACH, EACH + 1, "1\r\n%c\r\n", (char)('a' + i % 26));
	return (struct bytes){ (const uint8_t *)text, sizeof(text) - 1 };
}

/* All of a read was worked off in one go: 8,000 chunks, before anybody else was looked at. */
static void a_body_of_tiny_chunks_does_not_hold_up_others(void **state)
{
	struct crowd c = { 0 };

	(void)state;
	crowd_open(&c);
	say(&c.client[0], BYTES_LIT("POST /length HTTP/1.1\r\n" CHUNKED));
	RUN_UNTIL(c.l, c.sv.requests == 1);
	say(&c.client[0], tiny_chunks());
	say(&c.client[0], BYTES_LIT("0\r\n\r\n"));
	say(&c.client[1], BYTES_LIT(HELLO));
	RUN_UNTIL(c.l, has(&c.client[1], "hello"));
	assert_int_equal(c.sv.bodies, 0);
	RUN_UNTIL(c.l, has(&c.client[0], "\r\n\r\n4000"));
	crowd_close(&c);
}

/* Nor a body that nobody wants. */
static void tiny_chunks_that_are_thrown_away_do_not_either(void **state)
{
	struct crowd c = { 0 };

	(void)state;
	crowd_open(&c);
	say(&c.client[0], BYTES_LIT("POST /early HTTP/1.1\r\n" CHUNKED));
	RUN_UNTIL(c.l, has(&c.client[0], "hello"));
	say(&c.client[0], tiny_chunks());
	say(&c.client[0], BYTES_LIT("0\r\n\r\nGET /forget HTTP/1.1\r\nhost: x\r\n\r\n"));
	say(&c.client[1], BYTES_LIT(HELLO));
	RUN_UNTIL(c.l, has(&c.client[1], "hello"));
	assert_false(has(&c.client[0], " 500 "));
	RUN_UNTIL(c.l, has(&c.client[0], " 500 "));
	crowd_close(&c);
}

/* Each was one write: a system call for a byte. */
static void tiny_chunks_are_passed_on_together(void **state)
{
	struct crowd c = { 0 };
	struct ear *e = &c.client[0];

	(void)state;
	crowd_open(&c);
	say(e, BYTES_LIT("POST /echo HTTP/1.1\r\n" CHUNKED));
	say(e, tiny_chunks());
	say(e, BYTES_LIT("0\r\n\r\n"));
	RUN_UNTIL(c.l, has(e, "\r\n0\r\n\r\n"));
	assert_true(e->pieces <= 2 * CHUNKS / HTTP_TURN_CHUNKS);
	crowd_close(&c);
}

static void pipelined_requests_get_a_few_answers_in_a_turn(void **state)
{
	static char asks[ASKS * (sizeof(HELLO) - 1)];
	struct crowd c = { 0 };
	struct ear *e = &c.client[0];

	(void)state;
	crowd_open(&c);
	for (size_t i = 0; i < ASKS; i++)
		memcpy(asks + i * (sizeof(HELLO) - 1), HELLO, sizeof(HELLO) - 1);
	say(e, (struct bytes){ (const uint8_t *)asks, sizeof(asks) });
	say(&c.client[1], BYTES_LIT(HELLO));
	for (size_t seen = 0; c.sv.requests < ASKS + 1; seen = c.sv.requests) {
		assert_true(loop_turn(c.l));
		assert_true(c.sv.requests - seen <= HTTP_TURN_REQUESTS + 1);
		assert_true(has(&c.client[1], "hello") || c.sv.requests < ASKS / 2);
	}
	RUN_UNTIL(c.l, e->got.len == ASKS * c.client[1].got.len);
	assert_true(e->pieces <=
		    ASKS / HTTP_TURN_REQUESTS + 1); /* the answers of a turn, together */
	crowd_close(&c);
}

/* The head, a body of several chunks and its end were as many writes. */
static void an_answer_given_at_once_is_one_write(void **state)
{
	struct crowd c = { 0 };
	struct job *j;

	(void)state;
	crowd_open(&c);
	say(&c.client[0], BYTES_LIT("GET /hold HTTP/1.1\r\nhost: x\r\n\r\n"));
	RUN_UNTIL(c.l, c.sv.jobs);
	j = c.sv.jobs;
	job_respond(j, 200, HTTP_CHUNKED);
	job_send(j, BYTES_LIT("one"));
	job_send(j, BYTES_LIT("two"));
	http_finish(j->rq);
	job_free(j);
	RUN_UNTIL(c.l, has(&c.client[0], "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"));
	assert_int_equal(c.client[0].pieces, 1);
	crowd_close(&c);
}

struct asker {
	struct http_reply reply;
	struct buf body;
	size_t pieces;
	bool over, failed;
};

static void on_head(struct http_reply *r, const struct http1_head *head)
{
	(void)r, (void)head;
}

static void on_body(struct http_reply *r, struct bytes piece)
{
	struct asker *a = CONTAINER_OF(r, struct asker, reply);
	struct err err;

	a->pieces++;
	assert_int_equal(buf_add(&a->body, piece, &err), 0);
}

static void on_end(struct http_reply *r)
{
	CONTAINER_OF(r, struct asker, reply)->over = true;
}

static void on_drain(struct http_reply *r)
{
	(void)r;
}

static void on_fail(struct http_reply *r, const struct err *err)
{
	struct asker *a = CONTAINER_OF(r, struct asker, reply);

	(void)err;
	a->over = a->failed = true;
}

/* `last` follows the tiny chunks: what came before it is heard in any case. */
static void check_answer(struct bytes last, bool fails)
{
	static const struct http_reply_ops ops = { on_head, on_body, on_end, on_drain, on_fail };
	const struct http_limits lim = HTTP_LIMITS;
	const struct http_ask get = { .method = BYTES_LIT("GET"),
				      .target = BYTES_LIT("/"),
				      .host = BYTES_LIT("x") };
	struct asker a = { .reply = { &ops }, .body = BUF_MAX(CHUNKS) };
	struct loop *l = test_loop();
	struct http_exchange *x;
	struct http_client *client;
	struct ear server;
	struct err err = { 0 };
	int fd[2];

	unix_pair(fd);
	assert_int_equal(http_client_open(test_stream(l, fd[0]), &lim, &client, &err), 0);
	ear_init(&server, test_stream(l, fd[1]));
	assert_int_equal(http_ask(client, &get, &a.reply, &x, &err), 0);
	say(&server, BYTES_LIT("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"));
	say(&server, tiny_chunks());
	say(&server, last);
	for (size_t seen = 0; !a.over; seen = a.body.len) {
		assert_true(loop_turn(l));
		assert_true(a.body.len - seen <= HTTP_TURN_CHUNKS);
	}
	assert_int_equal(a.failed, fails);
	assert_int_equal(a.body.len, CHUNKS);
	for (size_t i = 0; i < CHUNKS; i++)
		assert_int_equal(a.body.ptr[i], 'a' + i % 26);
	assert_true(a.pieces <= 2 * CHUNKS / HTTP_TURN_CHUNKS);
	http_client_close(client);
	ear_done(&server);
	buf_done(&a.body);
	loop_free(l);
}

static void tiny_chunks_of_a_server_are_put_together(void **state)
{
	(void)state;
	check_answer(BYTES_LIT("0\r\n\r\n"), false);
	check_answer(BYTES_LIT("zz"), true);
	check_answer(BYTES_LIT("00000000000000000000000001\r\n"), true);
}

/* --- who gives way --------------------------------------------------------------------------- */

static void who_waited_the_longest_gives_way(void **state)
{
	struct crowd c = { 0 };

	(void)state;
	crowd_open(&c);
	say(&c.client[1], BYTES_LIT("GET /hold HTTP/1.1\r\nhost: x\r\n\r\n"));
	RUN_UNTIL(c.l, c.sv.jobs);
	say(&c.client[0], BYTES_LIT(HELLO)); /* waits for less long than the third from now on */
	RUN_UNTIL(c.l, has(&c.client[0], "hello"));
	assert_true(http_server_shed(&c.sv.http, 0));
	RUN_UNTIL(c.l, c.client[2].fails + c.client[2].ends == 1);
	assert_true(http_server_shed(&c.sv.http, 0));
	RUN_UNTIL(c.l, c.client[0].fails + c.client[0].ends == 1);
	assert_false(http_server_shed(&c.sv.http, 0)); /* it is we who keep this one waiting */
	job_answer_text(c.sv.jobs, "late");
	RUN_UNTIL(c.l, has(&c.client[1], "late"));
	assert_true(http_server_shed(&c.sv.http, 0));
	crowd_close(&c);
}

/* Who has just come gets time to say what it wants; who was answered has had it. */
static void who_was_answered_gives_way_before_who_has_just_come(void **state)
{
	struct crowd c = { 0 };

	(void)state;
	crowd_open(&c);
	assert_false(http_server_shed(&c.sv.http, TEST_PATIENCE_MS));
	say(&c.client[1], BYTES_LIT(HELLO));
	RUN_UNTIL(c.l, has(&c.client[1], "hello"));
	assert_true(http_server_shed(&c.sv.http, TEST_PATIENCE_MS));
	RUN_UNTIL(c.l, c.client[1].fails + c.client[1].ends == 1);
	assert_false(http_server_shed(&c.sv.http, TEST_PATIENCE_MS));
	crowd_close(&c);
}

static void who_drips_a_body_gives_way_and_its_handler_is_told(void **state)
{
	struct crowd c = { 0 };

	(void)state;
	crowd_open(&c);
	assert_true(http_server_shed(&c.sv.http, 0));
	assert_true(http_server_shed(&c.sv.http, 0));
	say(&c.client[2],
	    BYTES_LIT("POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nab"));
	RUN_UNTIL(c.l, c.sv.jobs && c.sv.jobs->seen == 2);
	assert_true(http_server_shed(&c.sv.http, 0));
	assert_int_equal(c.sv.gone, 1);
	assert_false(http_server_shed(&c.sv.http, 0));
	crowd_close(&c);
}

static void who_is_not_served_is_told_why(void **state)
{
	struct loop *l = test_loop();
	struct ear e;
	int fd[2];

	(void)state;
	unix_pair(fd);
	ear_init(&e, test_stream(l, fd[0]));
	stream_read(e.s, true);
	say(&e, BYTES_LIT(HELLO));
	http_refuse(test_stream(l, fd[1]), 429, "too many");
	RUN_UNTIL(l, e.ends == 1);
	assert_true(has(&e, "HTTP/1.1 429 ") && has(&e, "connection: close") &&
		    has(&e, "{\"code\":429,\"message\":\"too many\"}"));
	ear_done(&e);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_of_tiny_chunks_does_not_hold_up_others),
		cmocka_unit_test(tiny_chunks_that_are_thrown_away_do_not_either),
		cmocka_unit_test(tiny_chunks_are_passed_on_together),
		cmocka_unit_test(pipelined_requests_get_a_few_answers_in_a_turn),
		cmocka_unit_test(an_answer_given_at_once_is_one_write),
		cmocka_unit_test(tiny_chunks_of_a_server_are_put_together),
		cmocka_unit_test(who_waited_the_longest_gives_way),
		cmocka_unit_test(who_was_answered_gives_way_before_who_has_just_come),
		cmocka_unit_test(who_drips_a_body_gives_way_and_its_handler_is_told),
		cmocka_unit_test(who_is_not_served_is_told_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
