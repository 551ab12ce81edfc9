/* test_gateway_relay.c - requests for a port of a sandbox, as its client sees them. */
#include "tests/unit/gateway_world.h"

#define NOT_FOUND "{\"sandboxId\":\"abc\",\"message\":\"The sandbox was not found\",\"code\":502}"

static void plain_answers_pass(void **state)
{
	static const struct script plain = {
		.text = BYTES_LIT("HTTP/1.1 418 Tea\r\nx-guest: yes\r\ncontent-length: 3\r\n"
				  "keep-alive: 5\r\nconnection: x-hop\r\nx-hop: 1\r\n\r\ntea"),
	};
	struct world w;

	(void)state;
	world_open(&w);
	w.script = &plain;
	ask(&w, "BREW", "/pot?a=b%20c", "x-own: 1\r\nconnection: x-mine\r\nx-mine: 2\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\ntea"));
	assert_true(heard(&w.client, "HTTP/1.1 418 "));
	assert_true(heard(&w.client, "x-guest: yes\r\n"));
	assert_true(heard(&w.client, "content-length: 3\r\n"));
	assert_false(heard(&w.client, "hop") || heard(&w.client, "keep-alive"));
	assert_true(heard(&w.peers->ear, "BREW /pot?a=b%20c HTTP/1.1\r\nHost: gw.test\r\n"));
	assert_true(heard(&w.peers->ear, "x-own: 1\r\n"));
	assert_true(heard(&w.peers->ear, "X-Forwarded-For: 192.0.2.7\r\n"));
	assert_true(heard(&w.peers->ear, "X-Forwarded-Proto: http\r\n"));
	assert_true(heard(&w.peers->ear, "X-Forwarded-Host: gw.test\r\n"));
	assert_false(heard(&w.peers->ear, "mine"));
	world_close(&w);
}

static void bodies_pass_both_ways(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	ask(&w, "POST", "/echo", "content-length: 5\r\n");
	say(&w, "12");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n12\r\n")); /* what was said is there at once */
	say(&w, "345");
	RUN_UNTIL(w.l, heard(&w.client, "0\r\n\r\n"));
	ask(&w, "POST", "/length", "transfer-encoding: chunked\r\n");
	say(&w, "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "content-length: 1\r\n\r\n5"));
	ask(&w, "POST", "/length", "");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n0"));
	world_close(&w);
}

static void a_client_may_ask_before_it_sends(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	ask(&w, "POST", "/length", "content-length: 5\r\nexpect: 100-continue\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "100 Continue\r\n\r\n"));
	say(&w, "12345");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n5"));
	w.node.mood = NODE_REFUSES;
	guest_cache_forget(w.g.guests);
	ask(&w, "POST", "/length", "content-length: 5\r\nexpect: 100-continue\r\n");
	RUN_UNTIL(w.l, heard(&w.client, NOT_FOUND));
	assert_false(heard(&w.client, "100 Continue"));
	world_close(&w);
}

static void answers_without_a_body(void **state)
{
	static const struct {
		const char *name, *method;
		struct script script;
		const char *want, *never;
	} rows[] = {
		{ "head",
		  "HEAD",
		  { BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n") },
		  "content-length: 1234\r\n",
		  "chunked" },
		{ "204",
		  "GET",
		  { BYTES_LIT("HTTP/1.1 204 No\r\nx: 1\r\n\r\n") },
		  "204 No Content",
		  "content-length" },
		{ "304",
		  "GET",
		  { BYTES_LIT("HTTP/1.1 304 No\r\ncontent-length: 9\r\n\r\n") },
		  "304 Not Modified",
		  "chunked" },
		{ "empty",
		  "GET",
		  { BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") },
		  "content-length: 0\r\n",
		  "chunked" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct world w;

		world_open(&w);
		w.script = &row->script;
		ask(&w, row->method, "/", "");
		RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n"));
		assert_true(heard(&w.client, row->want));
		assert_false(heard(&w.client, row->never));
		/* and the connection can be used again */
		w.script = NULL;
		buf_clear(&w.client.got);
		say(&w, "POST /hello HTTP/1.1\r\nhost: a\r\ne2b-sandbox-id: abc\r\n");
		char port[64];
		(void)snprintf(port, sizeof(port), "e2b-sandbox-port: %u\r\n\r\n", w.port);
		say(&w, port);
		RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
		world_close(&w);
	}
}

static void an_answer_may_end_with_the_connection(void **state)
{
	static const struct script until_close = {
		.text = BYTES_LIT("HTTP/1.0 200 OK\r\n\r\nall of it"), .then = THEN_CLOSE
	};
	struct world w;

	(void)state;
	world_open(&w);
	w.script = &until_close;
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, "9\r\nall of it\r\n0\r\n\r\n"));
	world_close(&w);
}

static void errors_are_those_of_the_contract(void **state)
{
	struct world w;
	char want[256];

	(void)state;
	world_open(&w);
	w.node.mood = NODE_REFUSES;
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, NOT_FOUND));
	assert_true(heard(&w.client, "HTTP/1.1 502 "));
	assert_true(heard(&w.client, "content-type: application/json; charset=utf-8\r\n"));
	w.node.mood = NODE_AWAY;
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, "\"code\":503}"));
	w.node.mood = NODE_BARE;
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, "\"code\":503}"));
	w.node.mood = NODE_FULL;
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, "\"code\":503}"));
	w.node.mood = NODE_GIVES;
	w.node.state = NODE_ENDING;
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, NOT_FOUND));
	w.node.state = NODE_RUNNING;
	assert_int_equal(w.g.guests->n_guests, 0); /* a refusal is not remembered */
	listener_close(&w.door);
	ask(&w, "GET", "/", "");
	(void)snprintf(want, sizeof(want),
		       "{\"sandboxId\":\"abc\",\"message\":\"The sandbox is running but port is "
		       "not open\",\"port\":%u,\"code\":502}",
		       (unsigned int)w.port);
	RUN_UNTIL(w.l, heard(&w.client, want));
	assert_int_equal(w.n_accepted, 0);
	world_close(&w);
}

static void nothing(struct timer *t)
{
	(void)t;
}

/* A service needs its time to start. It opens before the last but one try, so that it does not
 * matter how slow we are: the last comes long after that. */
static void a_port_may_open_late(void **state)
{
	static const struct listener_ops door_ops = { world_on_accept };
	const int late = RELAY_RETRY_MS * (1 + 2) + RELAY_RETRY_MS;
	struct timer starts;
	struct world w;
	struct err err = { 0 };
	struct addr at;

	(void)state;
	world_open(&w);
	listener_addr(&w.door, &at);
	listener_close(&w.door);
	ask(&w, "GET", "/hello", "");
	RUN_UNTIL(w.l, w.node.n_sockets > 0 && w.g.guests->n_guests == 1);
	timer_init(&starts, w.l, nothing);
	timer_start(&starts, late);
	RUN_UNTIL(w.l, !starts.active);
	assert_int_equal(listener_open(&w.door, w.l, &door_ops, &at, 0, 1000, &err), 0);
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	world_close(&w);
}

static void what_is_the_hosts_stays_the_hosts(void **state)
{
	static const struct {
		const char *name, *target, *path;
	} rows[] = {
		{ "init", "/init", "/init" },
		{ "freeze", "/freeze?x=1", "/freeze" },
		{ "control", "/control/identity", "/control/identity" },
		{ "absolute", "http://gw.test/control/clock", "/control/clock" },
		{ "escaped", "/%63ontrol/clock", "/%63ontrol/clock" },
		{ "slashes", "//control/clock", "//control/clock" },
		{ "quote", "/init\"", NULL },
		{ "dots", "/../init", "/../init" },
	};
	struct world w;
	char want[128];

	(void)state;
	world_open(&w);
	w.g.guests->agent_port = w.port;
	FOR_ROWS(row, rows) {
		ask(&w, "POST", row->target, "");
		if (!row->path) {
			RUN_UNTIL(w.l, heard(&w.client, "no such"));
			continue;
		}
		(void)snprintf(want, sizeof(want), "\"path\":\"%s\"", row->path);
		RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 404 ") && heard(&w.client, want));
		assert_true(heard(&w.client, "\"code\":404"));
	}
	assert_int_equal(w.n_accepted, 1);
	w.g.guests->agent_port = 1; /* elsewhere they are paths like any other */
	ask(&w, "POST", "/init", "");
	RUN_UNTIL(w.l, heard(&w.client, "no such"));
	world_close(&w);
}

static void browsers_may_ask_the_agent(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	w.g.guests->agent_port = w.port;
	ask(&w, "OPTIONS", "/files",
	    "origin: http://x\r\naccess-control-request-method: POST\r\n"
	    "access-control-request-headers: authorization,x-y\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n"));
	assert_true(heard(&w.client, "HTTP/1.1 204 "));
	assert_true(heard(&w.client, "access-control-allow-headers: authorization,x-y\r\n"));
	assert_int_equal(w.n_accepted, 0);
	ask(&w, "GET", "/hello", "origin: http://x\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	assert_true(heard(&w.client, "access-control-allow-origin: *\r\n"));
	ask(&w, "GET", "/hello", "");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	assert_false(heard(&w.client, "access-control"));
	world_close(&w);
}

static void connections_to_the_agent_are_used_again(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	w.g.guests->agent_port = w.port;
	for (int i = 0; i < 5; i++) {
		ask(&w, "POST", "/length", "content-length: 3\r\n");
		say(&w, "abc");
		RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n3"));
	}
	assert_int_equal(w.n_accepted, 1);
	world_close(&w);
}

static void those_to_a_service_are_shared_by_what_cannot_do_harm(void **state)
{
	static const struct {
		const char *name, *method, *target, *fields, *body, *answer;
		size_t accepted; /* with this one */
	} rows[] = {
		{ "first", "GET", "/hello", "", "", "\r\n\r\nhello", 1 },
		{ "second", "GET", "/hello", "", "", "\r\n\r\nhello", 1 },
		{ "no body", "GET", "/hello", "content-length: 0\r\n", "", "\r\n\r\nhello", 1 },
		{ "post", "POST", "/length", "", "", "\r\n\r\n0", 2 },
		{ "body", "GET", "/length", "content-length: 3\r\n", "abc", "\r\n\r\n3", 3 },
		{ "chunks", "GET", "/length", "transfer-encoding: chunked\r\n", "0\r\n\r\n",
		  "\r\n\r\n0", 4 },
		{ "upgrade", "GET", "/hello", "connection: upgrade\r\nupgrade: x\r\n", "",
		  "\r\n\r\nhello", 5 },
		{ "head", "HEAD", "/hello", "", "", "\r\n\r\n", 6 },
		{ "as before", "GET", "/hello", "", "", "\r\n\r\nhello", 6 },
	};
	struct world w;

	(void)state;
	world_open(&w);
	FOR_ROWS(row, rows) {
		ask(&w, row->method, row->target, row->fields);
		say(&w, row->body);
		RUN_UNTIL(w.l, heard(&w.client, row->answer));
		assert_int_equal(w.n_accepted, row->accepted);
	}
	world_close(&w);
}

static void one_that_asked_who_somebody_is_is_not_shared(void **state)
{
	static const struct script who = {
		.text = BYTES_LIT("HTTP/1.1 401 No\r\nwww-authenticate: NTLM\r\n"
				  "content-length: 3\r\n\r\nwho"),
	};
	struct world w;

	(void)state;
	world_open(&w);
	w.script = &who;
	for (size_t i = 1; i <= 2; i++) {
		ask(&w, "GET", "/", "");
		RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nwho"));
		assert_int_equal(w.n_accepted, i);
	}
	world_close(&w);
}

static void one_to_a_service_is_kept_for_a_second(void **state)
{
	struct guest_cache *c;
	struct world w;
	uint64_t then;

	(void)state;
	world_open(&w);
	c = w.g.guests;
	ask(&w, "GET", "/hello", "");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	then = loop_now_ms(w.l);
	assert_int_equal(c->newest->n_pool, 1);
	RUN_UNTIL(w.l, c->newest->n_pool == 0);
	assert_true(loop_now_ms(w.l) - then >= GUEST_POOL_SERVICE_MS - 10);
	assert_int_equal(c->n_held, c->newest->n_spare);
	world_close(&w);
}

static void a_stale_connection_is_not_the_clients_problem(void **state)
{
	static const struct script once = {
		.text = BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
	};
	struct world w;

	(void)state;
	world_open(&w);
	w.g.guests->agent_port = w.port;
	w.script = &once;
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nok"));
	ask(&w, "GET", "/", "");
	/* the request is on the old connection, and then that one breaks */
	RUN_UNTIL(w.l, heard(&w.peers->ear, "ok") || w.peers->ear.got.len > 200);
	stream_abort(TAKE(w.peers->ear.s));
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nok"));
	assert_int_equal(w.n_accepted, 2);
	world_close(&w);
}

static void a_stream_breaks_off_when_its_sandbox_is_gone(void **state)
{
	static const struct script begun = {
		.text = BYTES_LIT(
			"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"),
	};
	static const struct script silent = { .text = BYTES_LIT("") };
	struct world w;

	(void)state;
	world_open(&w);
	w.script = &begun;
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, "abc"));
	guest_cache_gone(w.g.guests, "abc", 2); /* of another life */
	guest_cache_gone(w.g.guests, "other", 1);
	assert_int_equal(w.http.n_conns, 1);
	guest_cache_gone(w.g.guests, "abc", 1);
	RUN_UNTIL(w.l, parted(&w.client));
	assert_int_equal(w.client.fails, 1); /* a reset, not an end */
	assert_false(heard(&w.client, "\r\n0\r\n"));
	assert_int_equal(w.g.guests->n_guests, 0);
	/* one that waits is answered */
	peers_done(&w);
	w.script = &silent;
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, w.peers && heard(&w.peers->ear, "\r\n\r\n"));
	guest_cache_gone(w.g.guests, "abc", 1);
	RUN_UNTIL(w.l, heard(&w.client, NOT_FOUND));
	world_close(&w);
}

static void streams_outlive_an_absence_of_node(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	ask(&w, "GET", "/hold", "");
	RUN_UNTIL(w.l, w.sv.jobs);
	w.node.mood = NODE_AWAY;
	guest_cache_forget(w.g.guests);
	RUN_UNTIL(w.l, !w.node.calls);
	assert_int_equal(w.g.guests->n_guests, 1);
	job_answer_text(w.sv.jobs, "late");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nlate"));
	/* one whose sandbox went away meanwhile does not */
	w.node.mood = NODE_GIVES;
	ask(&w, "GET", "/hold", "");
	RUN_UNTIL(w.l, w.sv.jobs);
	w.node.mood = NODE_REFUSES;
	guest_cache_forget(w.g.guests);
	RUN_UNTIL(w.l, heard(&w.client, NOT_FOUND));
	RUN_UNTIL(w.l, !w.sv.jobs);
	/* nor one whose sandbox is another now */
	w.node.mood = NODE_GIVES;
	ask(&w, "GET", "/hold", "");
	RUN_UNTIL(w.l, w.sv.jobs);
	w.node.generation = 2;
	guest_cache_forget(w.g.guests);
	RUN_UNTIL(w.l, heard(&w.client, NOT_FOUND));
	world_close(&w);
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

static void many_ask_node_once(void **state)
{
	enum { CLIENTS = 20 };
	struct ear clients[CLIENTS];
	struct world w;

	(void)state;
	world_open(&w);
	w.node.mood = NODE_SILENT;
	for (int i = 0; i < CLIENTS; i++) {
		ask(&w, "GET", "/hello", "");
		clients[i] = w.client;
		clients[i].user.ops = w.client.user.ops;
		stream_set_user(clients[i].s, &clients[i].user);
		stream_read(clients[i].s, true);
		w.client = (struct ear){ 0 };
	}
	RUN_UNTIL(w.l, n_waiting(&w) == CLIENTS);
	assert_int_equal(w.node.n_calls, 1);
	w.node.mood = NODE_GIVES;
	timer_start(&w.node.answer, 0);
	for (int i = 0; i < CLIENTS; i++) {
		RUN_UNTIL(w.l, heard(&clients[i], "\r\n\r\nhello"));
		ear_done(&clients[i]);
	}
	assert_true(w.node.n_calls <= CLIENTS / 4 + 3);
	assert_true(w.node.n_sockets <= CLIENTS + GUEST_SPARE_MAX);
	world_close(&w);
}

static void clients_that_leave_leave_nothing(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	w.node.mood = NODE_SILENT;
	ask(&w, "GET", "/hold", ""); /* while node is asked */
	RUN_UNTIL(w.l, w.node.calls);
	ear_done(&w.client);
	RUN_UNTIL(w.l, w.http.n_conns == 0);
	w.node.mood = NODE_GIVES;
	timer_start(&w.node.answer, 0);
	RUN_UNTIL(w.l, w.g.guests->n_idle == 1);
	ask(&w, "GET", "/hold", ""); /* while the guest thinks */
	RUN_UNTIL(w.l, w.sv.jobs);
	ear_done(&w.client);
	RUN_UNTIL(w.l, w.sv.gone == 1);
	ask(&w, "POST", "/echo", "content-length: 10\r\n"); /* in the middle of both bodies */
	say(&w, "123");
	RUN_UNTIL(w.l, heard(&w.client, "123"));
	ear_done(&w.client);
	RUN_UNTIL(w.l, w.sv.gone == 2);
	assert_null(w.sv.jobs);
	world_close(&w);
}

static void what_is_kept_is_bounded(void **state)
{
	enum { SANDBOXES = 100, HELD = 40 };
	struct guest_cache *c;
	struct world w;
	char id[16];

	(void)state;
	world_open(&w);
	c = w.g.guests;
	c->held_max = HELD;
	c->agent_port = w.port;
	for (int i = 0; i < SANDBOXES; i++) {
		(void)snprintf(id, sizeof(id), "sandbox%d", i);
		ask_of(&w, id, "GET", "/hello", "");
		RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
		assert_true(c->n_held <= HELD + GUEST_SPARE_MAX);
	}
	assert_int_equal(w.n_accepted, SANDBOXES);
	RUN_UNTIL(w.l, c->n_idle == c->n_guests);
	assert_true(c->n_guests > 1 && c->n_guests < SANDBOXES);
	ask_of(&w, id, "GET", "/hello", ""); /* the latest is still known */
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	assert_int_equal(w.n_accepted, SANDBOXES);
	RUN_UNTIL(w.l, c->n_idle == c->n_guests);
	c->sweep.on_fire(&c->sweep);
	assert_true(c->n_guests > 1);
	c->idle_ms = 0; /* a minute later */
	c->sweep.on_fire(&c->sweep);
	assert_int_equal(c->n_guests, 0);
	assert_int_equal(c->n_held, 0);
	world_close(&w);
}

static void requests_that_name_nobody(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	world_client(&w);
	say(&w, "GET / HTTP/1.1\r\nhost: a\r\ne2b-sandbox-id: abc\r\n\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nmissing header"));
	assert_true(heard(&w.client, "HTTP/1.1 400 "));
	assert_true(heard(&w.client, "content-type: text/plain"));
	world_client(&w);
	say(&w, "GET /files?signature=v1_ HTTP/1.1\r\nhost: a\r\n\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\"code\":401"));
	ask(&w, "GET", "/hello", "content-length: 9223372036854775808\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\"code\":413"));
	world_client(&w);
	say(&w, "CONNECT 80-abc.test:80 HTTP/1.1\r\nhost: 80-abc.test:80\r\n\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\"code\":405"));
	assert_int_equal(w.node.n_calls, 0);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_answers_pass),
		cmocka_unit_test(bodies_pass_both_ways),
		cmocka_unit_test(a_client_may_ask_before_it_sends),
		cmocka_unit_test(answers_without_a_body),
		cmocka_unit_test(an_answer_may_end_with_the_connection),
		cmocka_unit_test(errors_are_those_of_the_contract),
		cmocka_unit_test(a_port_may_open_late),
		cmocka_unit_test(what_is_the_hosts_stays_the_hosts),
		cmocka_unit_test(browsers_may_ask_the_agent),
		cmocka_unit_test(connections_to_the_agent_are_used_again),
		cmocka_unit_test(those_to_a_service_are_shared_by_what_cannot_do_harm),
		cmocka_unit_test(one_that_asked_who_somebody_is_is_not_shared),
		cmocka_unit_test(one_to_a_service_is_kept_for_a_second),
		cmocka_unit_test(a_stale_connection_is_not_the_clients_problem),
		cmocka_unit_test(a_stream_breaks_off_when_its_sandbox_is_gone),
		cmocka_unit_test(streams_outlive_an_absence_of_node),
		cmocka_unit_test(many_ask_node_once),
		cmocka_unit_test(clients_that_leave_leave_nothing),
		cmocka_unit_test(requests_that_name_nobody),
		cmocka_unit_test(what_is_kept_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
