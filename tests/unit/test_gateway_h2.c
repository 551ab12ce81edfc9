/* test_gateway_h2.c - the way to a sandbox is the same for clients of HTTP/2: requests, bodies,
 * slow readers, switches, sandboxes that go.
 */
#include "tests/unit/gateway_world.h"
#include "tests/unit/h2_client.h"

/* What waits in the gateway for a slow reader: see relay_stream.c. */
enum { HELD_MAX = STREAM_LOW_WATER + HTTP_INPUT_MAX + 64 };

struct h2_world {
	struct world w;
	struct h2_client c;
	char port[8];
};

static void open_world(struct h2_world *x)
{
	struct err err = { 0 };
	struct net_peer from = { 0 };
	int fd[2];

	world_open(&x->w);
	http_server_speak_h2(&x->w.http);
	tcp_pair(fd);
	if (addr_ip("192.0.2.7", 4711, &from.at, &err) < 0 ||
	    http_server_add_as(&x->w.http, test_stream(x->w.l, fd[1]), &from, HTTP_2, &err) < 0)
		fail_msg("%s", err.msg);
	h2_client_open(&x->c, x->w.l, fd[0]);
	h2_greet(&x->c, NGHTTP2_SETTINGS_ENABLE_PUSH, 0);
	(void)snprintf(x->port, sizeof(x->port), "%u", (unsigned int)x->w.port);
}

static void close_world(struct h2_world *x)
{
	h2_client_close(&x->c);
	world_close(&x->w);
}

static struct h2_seen *ask_with(struct h2_world *x, const char *method, const char *target,
				nghttp2_nv more, struct bytes says, bool open)
{
	const nghttp2_nv nv[] = { H2_NV(":method", method),
				  H2_NV(":scheme", "http"),
				  H2_NV(":authority", "gw.test"),
				  H2_NV(":path", target),
				  H2_NV("e2b-sandbox-id", "abc"),
				  H2_NV("e2b-sandbox-port", x->port),
				  more };

	return h2_ask_with(&x->c, nv, more.namelen > 0 ? COUNT(nv) : COUNT(nv) - 1, says, open);
}

static struct h2_seen *ask_for(struct h2_world *x, const char *method, const char *target,
			       struct bytes says)
{
	return ask_with(x, method, target, (nghttp2_nv){ 0 }, says, false);
}

static struct h2_seen *ask_web_socket(struct h2_world *x)
{
	const nghttp2_nv nv[] = {
		H2_NV(":method", "CONNECT"),       H2_NV(":protocol", "websocket"),
		H2_NV(":scheme", "http"),          H2_NV(":authority", "gw.test"),
		H2_NV(":path", "/switch"),         H2_NV("e2b-sandbox-id", "abc"),
		H2_NV("e2b-sandbox-port", x->port)
	};

	return h2_ask_with(&x->c, nv, COUNT(nv), (struct bytes){ 0 }, true);
}

static struct bytes block_of(size_t n)
{
	static uint8_t block[3 * 1024 * 1024];

	assert_true(n <= sizeof(block));
	memset(block, 'u', n);
	return (struct bytes){ block, n };
}

static void requests_pass_side_by_side(void **state)
{
	struct h2_seen *hello, *head, *echo, *length, *missing;
	struct h2_world x;

	(void)state;
	open_world(&x);
	hello = ask_for(&x, "GET", "/hello", (struct bytes){ 0 });
	head = ask_for(&x, "HEAD", "/hello", (struct bytes){ 0 });
	echo = ask_for(&x, "POST", "/echo", BYTES_LIT("said"));
	length = ask_for(&x, "POST", "/length", block_of(3 * 1024 * 1024));
	missing = ask_for(&x, "GET", "/nothing", (struct bytes){ 0 });
	RUN_UNTIL(x.w.l, x.c.n_closed == 5);
	assert_true(h2_heard(hello, "hello") && h2_heard(echo, "said"));
	assert_true(head->ended && h2_heard(head, ""));
	assert_true(h2_heard(length, "3145728"));
	assert_string_equal(missing->status, "404");
	assert_null(world_relay(&x.w));
	close_world(&x);
}

static void a_client_that_does_not_read_costs_little(void **state)
{
	struct h2_seen *big, *hello;
	struct h2_world x;
	struct relay *r;

	(void)state;
	open_world(&x);
	x.c.takes_nothing = true;
	big = ask_for(&x, "GET", "/big", (struct bytes){ 0 });
	RUN_UNTIL(x.w.l, big->body.len == 65535);
	for (int i = 0; i < 100; i++) { /* the guest would go on, if it could */
		hello = ask_for(&x, "HEAD", "/hello", (struct bytes){ 0 });
		RUN_UNTIL(x.w.l, hello->closed);
	}
	r = world_relay(&x.w);
	assert_non_null(r);
	assert_true(http_queued(r->rq) > 0 && http_queued(r->rq) <= HELD_MAX);
	assert_int_equal(big->body.len, 65535);
	x.c.takes_nothing = false;
	assert_int_equal(nghttp2_session_consume_stream(x.c.session, big->id, 65535), 0);
	h2_push(&x.c);
	RUN_UNTIL(x.w.l, big->closed);
	assert_int_equal(big->body.len, BIG_SIZE);
	close_world(&x);
}

static void a_websocket_passes(void **state)
{
	struct h2_world x;
	struct h2_seen *ws;
	struct err err;

	(void)state;
	open_world(&x);
	ws = ask_web_socket(&x);
	RUN_UNTIL(x.w.l, ws->status[0] != '\0' && x.w.sv.taken.s);
	assert_string_equal(ws->status, "200");
	assert_null(strstr(ws->fields, "upgrade"));
	h2_more(&x.c, ws, BYTES_LIT("to the guest"), false);
	RUN_UNTIL(x.w.l, ear_heard(&x.w.sv.taken, "to the guest"));
	assert_int_equal(stream_write(x.w.sv.taken.s, BYTES_LIT("from the guest"), &err), 0);
	RUN_UNTIL(x.w.l, h2_heard(ws, "from the guest"));
	stream_shut(x.w.sv.taken.s);
	RUN_UNTIL(x.w.l, ws->ended);
	h2_more(&x.c, ws, BYTES_LIT("!"), true);
	RUN_UNTIL(x.w.l, x.w.sv.taken.ends == 1 && !world_relay(&x.w));
	assert_true(ear_heard(&x.w.sv.taken, "to the guest!"));
	close_world(&x);
}

static void what_runs_ends_with_its_sandbox(void **state)
{
	struct h2_seen *ws, *big, *hold;
	struct h2_world x;

	(void)state;
	open_world(&x);
	ws = ask_web_socket(&x);
	RUN_UNTIL(x.w.l, x.w.sv.taken.s && ws->status[0] != '\0');
	hold = ask_for(&x, "GET", "/hold", (struct bytes){ 0 });
	x.c.takes_nothing = true;
	big = ask_for(&x, "GET", "/big", (struct bytes){ 0 });
	RUN_UNTIL(x.w.l, big->body.len == 65535 && x.w.sv.requests == 3);
	guest_cache_gone(x.w.g.guests, "abc", 1);
	RUN_UNTIL(x.w.l, ws->closed && big->closed && hold->closed);
	assert_false(big->ended); /* it does not look whole */
	assert_string_equal(hold->status, "502");
	assert_false(x.c.gone);
	close_world(&x);
}

static void grpc_is_refused_in_its_own_words(void **state)
{
	struct h2_seen *grpc, *web;
	struct h2_world x;

	(void)state;
	open_world(&x);
	grpc = ask_with(&x, "POST", "/length", H2_NV("content-type", "application/grpc+proto"),
			BYTES_LIT("\0\0\0\0\0"), false);
	web = ask_with(&x, "POST", "/length", H2_NV("content-type", "application/grpc-web"),
		       BYTES_LIT("\0\0\0\0\0"), false);
	RUN_UNTIL(x.w.l, x.c.n_closed == 2);
	assert_string_equal(grpc->status, "200");
	assert_non_null(strstr(grpc->fields, "grpc-status: 12\n"));
	assert_true(h2_heard(web, "5"));
	close_world(&x);
}

/* A connection has many streams: of those into sandboxes an address may have so many, whatever the
 * number of its connections. */
static void an_address_has_so_many_streams(void **state)
{
	struct h2_seen *first, *last;
	struct h2_world x;

	(void)state;
	open_world(&x);
	x.w.g.relays.address_max = 20;
	for (int i = 0; i < 20; i++)
		first = ask_for(&x, "GET", "/hold", (struct bytes){ 0 });
	last = ask_for(&x, "GET", "/hold", (struct bytes){ 0 });
	RUN_UNTIL(x.w.l, last->closed);
	assert_string_equal(last->status, "429");
	assert_int_equal(nghttp2_submit_rst_stream(x.c.session, 0, first->id, NGHTTP2_CANCEL), 0);
	h2_push(&x.c);
	RUN_UNTIL(x.w.l, x.w.g.relays.n == 19);
	last = ask_for(&x, "GET", "/hello", (struct bytes){ 0 });
	RUN_UNTIL(x.w.l, last->closed);
	assert_string_equal(last->status, "200");
	close_world(&x);
}

static void a_client_that_goes_lets_go_of_all(void **state)
{
	struct h2_world x;

	(void)state;
	open_world(&x);
	(void)ask_web_socket(&x);
	RUN_UNTIL(x.w.l, x.w.sv.taken.s);
	(void)ask_for(&x, "GET", "/hold", (struct bytes){ 0 });
	(void)ask_for(&x, "POST", "/hold", block_of(200 * 1024));
	RUN_UNTIL(x.w.l, x.w.sv.requests == 3);
	h2c_gone(&x.c);
	RUN_UNTIL(x.w.l, !world_relay(&x.w) && x.w.http.n_conns == 0);
	close_world(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_pass_side_by_side),
		cmocka_unit_test(a_client_that_does_not_read_costs_little),
		cmocka_unit_test(a_websocket_passes),
		cmocka_unit_test(what_runs_ends_with_its_sandbox),
		cmocka_unit_test(grpc_is_refused_in_its_own_words),
		cmocka_unit_test(an_address_has_so_many_streams),
		cmocka_unit_test(a_client_that_goes_lets_go_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
