/* test_gateway_wake.c - requests to a sandbox that is paused: who may resume it, and who waits. */
#include "tests/unit/gateway_world.h"

#define NOT_FOUND "{\"sandboxId\":\"abc\",\"message\":\"The sandbox was not found\",\"code\":502}"

static void world_paused(struct world *w, bool is_agent)
{
	world_open(w);
	w->node.paused = true;
	w->node.wants = "right";
	if (is_agent)
		w->g.guests->agent_port = w->port;
}

/* Another client beside w->client, which is then free for the next. */
static void keep_client(struct world *w, struct ear *ret)
{
	*ret = w->client;
	stream_set_user(ret->s, &ret->user);
	stream_read(ret->s, true);
	w->client = (struct ear){ 0 };
}

static size_t n_waiting(struct world *w)
{
	size_t n = 0;

	for (size_t i = 0; i < GUEST_BUCKETS; i++)
		for (struct guest *g = w->g.guests->buckets[i]; g; g = g->next)
			for (struct guest_user *u = g->waiting.first; u; u = u->next)
				n++;
	return n;
}

static void traffic_resumes(void **state)
{
	struct world w;

	(void)state;
	world_paused(&w, false);
	ask(&w, "GET", "/hello", "x-access-token: of no interest at a port of the user's\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	assert_int_equal(w.node.n_resumes, 1);
	assert_int_equal(w.node.flags & NODE_TO_AGENT, 0);
	world_close(&w);
}

static void the_agent_wants_its_token(void **state)
{
	static const struct {
		const char *name;
		bool ok;
	} rows[] = {
		{ "", false },
		{ "x-access-token: wrong\r\n", false },
		{ "x-access-token: right\r\nx-access-token: right\r\n", false },
		{ "x-access-token: right\r\n", true },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct world w;

		world_paused(&w, true);
		ask(&w, "GET", "/hello", row->name);
		RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n"));
		assert_int_equal(w.node.n_resumes, row->ok);
		assert_int_equal(heard(&w.client, "HTTP/1.1 403 "), !row->ok);
		assert_int_equal(heard(&w.client, "\"sandboxId\":\"abc\""), !row->ok);
		world_close(&w);
	}
}

/* One that is too long is not cut to something that may be right, and is asked about once. */
static void a_token_without_end(void **state)
{
	char field[GUEST_TOKEN_MAX + 64] = "x-access-token: ";
	struct world w;

	(void)state;
	memset(field + 16, 'r', GUEST_TOKEN_MAX + 1);
	memcpy(field + 16 + GUEST_TOKEN_MAX + 1, "\r\n", 3);
	world_paused(&w, true);
	ask(&w, "GET", "/hello", field);
	RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 403 "));
	assert_int_equal(w.node.n_calls, 1);
	assert_string_equal(w.node.token, "");
	world_close(&w);
}

static void a_wrong_token_is_one_clients(void **state)
{
	struct world w;
	struct ear wrong, none, right;

	(void)state;
	world_paused(&w, true);
	w.node.mood = NODE_SILENT;
	ask(&w, "GET", "/hello", "x-access-token: wrong\r\n");
	RUN_UNTIL(w.l, n_waiting(&w) == 1);
	keep_client(&w, &wrong);
	ask(&w, "GET", "/hello", "");
	keep_client(&w, &none);
	ask(&w, "GET", "/hello", "x-access-token: right\r\n");
	keep_client(&w, &right);
	RUN_UNTIL(w.l, n_waiting(&w) == 3);
	w.node.mood = NODE_GIVES;
	timer_start(&w.node.answer, 0);
	RUN_UNTIL(w.l, heard(&wrong, "HTTP/1.1 403 "));
	RUN_UNTIL(w.l, heard(&none, "HTTP/1.1 403 "));
	RUN_UNTIL(w.l, heard(&right, "\r\n\r\nhello"));
	assert_int_equal(w.node.n_resumes, 1);
	ear_done(&wrong);
	ear_done(&none);
	ear_done(&right);
	world_close(&w);
}

/* A pause cuts what is under way; to look whether it goes on resumes nothing. */
static void only_requests_resume(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	ask(&w, "GET", "/hold", "");
	RUN_UNTIL(w.l, w.sv.jobs);
	w.node.paused = true;
	guest_cache_forget(w.g.guests);
	RUN_UNTIL(w.l, heard(&w.client, NOT_FOUND));
	RUN_UNTIL(w.l, !w.sv.jobs);
	assert_int_equal(w.node.n_resumes, 0);
	ask(&w, "GET", "/hello", "");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	assert_int_equal(w.node.n_resumes, 1);
	world_close(&w);
}

/* It begins to wait while node is asked whether streams go on: that answer is not for it. */
static void a_request_asks_for_itself(void **state)
{
	struct world w;
	struct ear held;

	(void)state;
	world_open(&w);
	ask(&w, "GET", "/hold", "");
	RUN_UNTIL(w.l, w.sv.jobs);
	keep_client(&w, &held);
	w.node.mood = NODE_SILENT;
	w.node.paused = true;
	guest_cache_forget(w.g.guests);
	ask(&w, "GET", "/hello", "");
	RUN_UNTIL(w.l, n_waiting(&w) == 1);
	w.node.mood = NODE_GIVES;
	timer_start(&w.node.answer, 0);
	RUN_UNTIL(w.l, heard(&held, NOT_FOUND));
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	assert_int_equal(w.node.n_resumes, 1);
	ear_done(&held);
	world_close(&w);
}

static void what_cannot_be_resumed_now(void **state)
{
	static const struct {
		const char *name;
		enum node_mood mood;
	} rows[] = {
		{ "\"code\":409}", NODE_BUSY },
		{ "\"code\":429}", NODE_CROWDED },
		{ "from its disk\",\"code\":412}", NODE_ELSEWHERE },
		{ "\"code\":503}", NODE_AWAY },
		{ NOT_FOUND, NODE_REFUSES },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct world w;

		world_paused(&w, false);
		w.node.mood = row->mood;
		ask(&w, "GET", "/hello", "");
		RUN_UNTIL(w.l, heard(&w.client, row->name));
		assert_true(heard(&w.client, "{\"sandboxId\":\"abc\","));
		world_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic_resumes),
		cmocka_unit_test(the_agent_wants_its_token),
		cmocka_unit_test(a_token_without_end),
		cmocka_unit_test(a_wrong_token_is_one_clients),
		cmocka_unit_test(only_requests_resume),
		cmocka_unit_test(a_request_asks_for_itself),
		cmocka_unit_test(what_cannot_be_resumed_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
