/* test_gateway_signed.c - signed URLs that name no sandbox, and how often one may try. */
#include "tests/unit/gateway_world.h"

#define SIGNATURE "v1_gUtH%2Fs9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"
#define INVALID   "{\"code\":401,\"message\":\"invalid signature\"}"

/* From a new client, without any header that names a sandbox. */
static void ask_signed(struct world *w, const char *method, const char *query, const char *more)
{
	char text[1024];

	world_client(w);
	(void)snprintf(text, sizeof(text), "%s /files?%s HTTP/1.1\r\nhost: gw.test\r\n%s\r\n",
		       method, query, more);
	say(w, text);
}

static void world_with_agent(struct world *w)
{
	world_open(w);
	w->g.guests->agent_port = w->port;
}

/* The guest of these tests answers what it was asked. */
static void who_signed_it_gets_it(void **state)
{
	static const struct script answer = { BYTES_LIT(
		"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello") };
	struct world w;

	(void)state;
	world_with_agent(&w);
	w.script = &answer;
	ask_signed(&w, "GET", "path=a&signature=" SIGNATURE, "");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	assert_int_equal(w.node.n_calls, 2); /* who, and a socket */
	assert_int_equal(w.node.signed_flags, 0);
	assert_true(heard(&w.peers->ear, "GET /files?path=a&signature=" SIGNATURE " HTTP/1.1\r\n"));
	ask_signed(&w, "POST", "path=a&signature=" SIGNATURE, "content-length: 3\r\n");
	say(&w, "abc");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	assert_int_equal(w.node.signed_flags, NODE_WRITE);
	RUN_UNTIL(w.l, heard(&w.peers->ear, "\r\n\r\nabc"));
	world_close(&w);
}

static void what_node_does_not_know(void **state)
{
	static const struct {
		const char *name;
		enum node_mood mood;
		const char *want;
	} rows[] = {
		{ "nobody signed it", NODE_REFUSES, "\r\n\r\n" INVALID },
		{ "node is away", NODE_AWAY, "HTTP/1.1 503 " },
		{ "too many calls", NODE_FULL, "HTTP/1.1 429 " },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct world w;

		world_with_agent(&w);
		w.node.mood = row->mood;
		ask_signed(&w, "GET", "path=a&signature=" SIGNATURE, "");
		RUN_UNTIL(w.l, heard(&w.client, row->want));
		assert_int_equal(w.node.n_calls, 1);
		assert_int_equal(w.n_accepted, 0);
		world_close(&w);
	}
}

static void what_node_is_not_asked(void **state)
{
	static const struct {
		const char *name, *method, *query, *want;
	} rows[] = {
		{ "no shape", "GET", "path=a&signature=v1_", "\r\n\r\n" INVALID },
		{ "empty", "GET", "signature=", "\r\n\r\n" INVALID },
		{ "twice", "GET", "path=a&path=b&signature=" SIGNATURE, "HTTP/1.1 400 " },
		{ "broken", "GET", "path=%2&signature=" SIGNATURE, "HTTP/1.1 400 " },
		{ "expires when?", "GET", "signature_expiration=x&signature=" SIGNATURE,
		  "signature_expiration is not a number" },
		{ "method", "DELETE", "path=a&signature=" SIGNATURE, "HTTP/1.1 405 " },
	};
	struct world w;

	(void)state;
	world_with_agent(&w);
	FOR_ROWS(row, rows) {
		ask_signed(&w, row->method, row->query, "");
		RUN_UNTIL(w.l, heard(&w.client, row->want));
		assert_int_equal(w.node.n_calls, 0);
	}
	/* a browser's question needs no sandbox */
	ask_signed(&w, "OPTIONS", "path=a&signature=" SIGNATURE,
		   "origin: http://a.test\r\naccess-control-request-method: POST\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "access-control-allow-methods"));
	world_close(&w);
}

static void clients_that_leave_leave_nothing(void **state)
{
	struct world w;

	(void)state;
	world_with_agent(&w);
	w.node.mood = NODE_SILENT;
	ask_signed(&w, "GET", "path=a&signature=" SIGNATURE, "");
	RUN_UNTIL(w.l, w.node.calls);
	ear_done(&w.client);
	RUN_UNTIL(w.l, !w.node.calls);
	world_close(&w);
}

static size_t count(const struct ear *e, const char *part)
{
	struct bytes rest = buf_view(&e->got);
	size_t n = 0;

	for (;;) {
		const uint8_t *at = rest.len ? memmem(rest.ptr, rest.len, part, strlen(part)) : 0;

		if (!at)
			return n;
		n++;
		rest = bytes_tail(rest, (size_t)(at - rest.ptr) + 1);
	}
}

static void nobody_may_try_too_often(void **state)
{
	enum { ASKED = 300, BURST = 100 };
	struct world w;

	(void)state;
	world_with_agent(&w);
	world_client(&w);
	for (size_t i = 0; i < ASKED; i++)
		say(&w, "GET /files?signature=v1_ HTTP/1.1\r\nhost: a\r\n\r\n");
	RUN_UNTIL(w.l, count(&w.client, "HTTP/1.1 ") == ASKED);
	assert_true(count(&w.client, "HTTP/1.1 401 ") >= BURST);
	assert_true(count(&w.client, "HTTP/1.1 429 ") > 0);
	assert_int_equal(count(&w.client, "retry-after: 1\r\n"), count(&w.client, "HTTP/1.1 429 "));
	world_close(&w);
}

/* --- the table of rates ------------------------------------------------------------------- */

static const struct rate rate = { .per_second = 10, .burst = 3 };

static bool take(struct address_rates *r, const char *ip, uint64_t now_ms)
{
	struct addr a;
	struct err err = { 0 };

	if (addr_ip(ip, 1, &a, &err) < 0)
		fail_msg("%s", err.msg);
	return address_rates_take(r, &rate, &a, now_ms);
}

static void buckets_empty_and_fill(void **state)
{
	static struct address_rates r;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_true(take(&r, "192.0.2.1", 1000));
	assert_false(take(&r, "192.0.2.1", 1000));
	assert_true(take(&r, "192.0.2.2", 1000)); /* another address */
	assert_false(take(&r, "192.0.2.1", 1099));
	assert_true(take(&r, "192.0.2.1", 1100));
	assert_false(take(&r, "192.0.2.1", 1100));
	for (size_t i = 0; i < 3; i++) /* no more than the burst, however long one waits */
		assert_true(take(&r, "192.0.2.1", UINT64_MAX));
	assert_false(take(&r, "192.0.2.1", UINT64_MAX));
	assert_false(take(&r, "192.0.2.1", 5)); /* clocks that go back give nothing */
}

static void one_network_is_one_client(void **state)
{
	static struct address_rates r;

	(void)state;
	assert_true(take(&r, "2001:db8::1", 0));
	assert_true(take(&r, "2001:db8::2", 0));
	assert_true(take(&r, "2001:db8::ffff:3", 0));
	assert_false(take(&r, "2001:db8::4", 0));
	assert_true(take(&r, "2001:db8:0:1::1", 0));
	for (size_t i = 0; i < 3; i++)
		assert_true(take(&r, "::ffff:192.0.2.1", 0));
	assert_false(take(&r, "192.0.2.1", 0)); /* the same in other clothes */
	assert_true(take(&r, "::ffff:192.0.2.2", 0));
	assert_true(address_rates_take(&r, &rate, NULL, 0));
}

static void many_clients_do_not_free_one_that_asks_too_often(void **state)
{
	static struct address_rates r;
	size_t passed = 0;

	(void)state;
	for (unsigned int i = 0; i < 20000; i++) {
		char ip[32];

		(void)snprintf(ip, sizeof(ip), "10.0.%u.%u", i >> 8, i & 255);
		(void)take(&r, ip, 0);
		passed += take(&r, "192.0.2.1", 0);
	}
	assert_int_equal(passed,
			 3); /* its bucket is the emptiest, and so the last to be forgotten */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_signed_it_gets_it),
		cmocka_unit_test(what_node_does_not_know),
		cmocka_unit_test(what_node_is_not_asked),
		cmocka_unit_test(clients_that_leave_leave_nothing),
		cmocka_unit_test(nobody_may_try_too_often),
		cmocka_unit_test(buckets_empty_and_fill),
		cmocka_unit_test(one_network_is_one_client),
		cmocka_unit_test(many_clients_do_not_free_one_that_asks_too_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
