/* test_gateway_ingress.c - who may come to a port of a sandbox, and what its service sees. */
#include "tests/unit/gateway_world.h"

#include "tls/authority.h"
#include "tls/tls_stream.h"

#define MISSING                                                                               \
	"{\"sandboxId\":\"abc\",\"message\":\"Sandbox is secured with traffic access token. " \
	"Token header 'e2b-traffic-access-token' is missing\",\"code\":403}"
#define INVALID                                                                               \
	"{\"sandboxId\":\"abc\",\"message\":\"Sandbox is secured with traffic access token. " \
	"Provided token in header 'e2b-traffic-access-token' is invalid\",\"code\":403}"
#define DENIED                                                                         \
	"{\"sandboxId\":\"abc\",\"message\":\"This sandbox can't be resumed with the " \
	"credentials provided. Check your access token and try again.\",\"code\":403}"

static const struct {
	const char *name, *want;
} visits[] = {
	{ "", MISSING },
	{ "e2b-traffic-access-token:\r\n", MISSING },
	{ "x-access-token: right\r\n", MISSING },
	{ "e2b-traffic-access-token: wrong\r\n", INVALID },
	{ "e2b-traffic-access-token: righ\r\n", INVALID },
	{ "e2b-traffic-access-token: rightt\r\n", INVALID },
	{ "e2b-traffic-access-token: right\r\ne2b-traffic-access-token: right\r\n", INVALID },
	{ "connection: upgrade\r\nupgrade: websocket\r\n", MISSING },
	{ "E2B-Traffic-Access-Token: right\r\n", "\r\n\r\nhello" },
};

/* Asked twice: node is asked first, then what it said is known. */
static void a_private_port_wants_the_token(void **state)
{
	(void)state;
	FOR_ROWS(row, visits) {
		struct world w;

		world_open(&w);
		w.node.traffic_token = "right";
		for (int i = 0; i < 2; i++) {
			ask(&w, "GET", "/hello", row->name);
			RUN_UNTIL(w.l, heard(&w.client, row->want));
		}
		assert_int_equal(w.n_accepted, heard(&w.client, "hello") ? 1 : 0);
		assert_true(heard(&w.client, "hello") || heard(&w.client, "HTTP/1.1 403 "));
		world_close(&w);
	}
}

/* Whoever knocks in vain must not make the gateway take sockets out of node. */
static void a_refusal_costs_nothing(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	w.node.traffic_token = "right";
	ask(&w, "GET", "/hello", "");
	RUN_UNTIL(w.l, heard(&w.client, MISSING));
	for (size_t calls = w.node.n_calls, i = 0; i < 20; i++) {
		ask(&w, "GET", "/hello", "e2b-traffic-access-token: wrong\r\n");
		RUN_UNTIL(w.l, heard(&w.client, INVALID));
		assert_int_equal(w.node.n_calls, calls);
	}
	world_close(&w);
}

/* Node said that it is private, and not with which token: then nobody has it. */
static void without_a_token_it_is_closed(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	w.node.traffic_token = "";
	ask(&w, "GET", "/hello", "e2b-traffic-access-token:\r\n");
	RUN_UNTIL(w.l, heard(&w.client, MISSING));
	ask(&w, "GET", "/hello", "e2b-traffic-access-token: x\r\n");
	RUN_UNTIL(w.l, heard(&w.client, INVALID));
	world_close(&w);
}

static void the_agent_has_its_own_token(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	w.node.traffic_token = "right";
	w.g.guests->agent_port = w.port;
	ask(&w, "GET", "/hello", "");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	world_close(&w);
}

static void the_token_stays_outside(void **state)
{
	static const struct script plain = {
		.text = BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntea"),
	};
	static const struct {
		const char *name, *token;
		bool to_agent;
	} rows[] = {
		{ "private", "right", false },
		{ "open", NULL, false },
		{ "agent", "right", true },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct world w;

		world_open(&w);
		w.node.traffic_token = row->token;
		w.script = &plain;
		if (row->to_agent)
			w.g.guests->agent_port = w.port;
		ask(&w, "GET", "/", "E2B-Traffic-Access-Token: right\r\nx-other: 1\r\n");
		RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\ntea"));
		assert_true(heard(&w.peers->ear, "x-other: 1\r\n"));
		assert_false(heard(&w.peers->ear, "right") || heard(&w.peers->ear, "raffic"));
		world_close(&w);
	}
}

static void a_paused_one_wants_it_first(void **state)
{
	(void)state;
	FOR_ROWS(row, visits) {
		bool ok = strcmp(row->want, MISSING) != 0 && strcmp(row->want, INVALID) != 0;
		struct world w;

		world_open(&w);
		w.node.paused = true;
		w.node.traffic_token = "right";
		ask(&w, "GET", "/hello", row->name);
		RUN_UNTIL(w.l, heard(&w.client, ok ? row->want : DENIED));
		assert_int_equal(w.node.n_resumes, ok);
		world_close(&w);
	}
}

/* One client resumes it; another one that waited beside is let in no further. */
static void who_waits_beside_is_not_let_in(void **state)
{
	struct world w;
	struct ear right;

	(void)state;
	world_open(&w);
	w.node.traffic_token = "right";
	w.node.mood = NODE_SILENT;
	ask(&w, "GET", "/hello", "e2b-traffic-access-token: right\r\n");
	RUN_UNTIL(w.l, w.node.n_calls == 1);
	right = w.client;
	stream_set_user(right.s, &right.user);
	stream_read(right.s, true);
	w.client = (struct ear){ 0 };
	ask(&w, "GET", "/hello", "");
	RUN_UNTIL(w.l, w.client.s && w.g.guests->n_guests == 1);
	w.node.mood = NODE_GIVES;
	timer_start(&w.node.answer, 0);
	RUN_UNTIL(w.l, heard(&w.client, MISSING) && heard(&right, "\r\n\r\nhello"));
	assert_int_equal(w.n_accepted, 1);
	ear_done(&right);
	world_close(&w);
}

static void services_see_the_mask(void **state)
{
	static const struct script plain = {
		.text = BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntea"),
	};
	static const struct {
		const char *name, *before, *after; /* the port, if there is something after it */
		bool to_agent;
	} rows[] = {
		{ "{\"network\":{\"maskRequestHost\":\"localhost:${PORT}\"}}",
		  "Host: localhost:", "\r\n", false },
		{ "{\"network\":{\"mask_request_host\":\"${PORT}.test\"}}", "Host: ", ".test\r\n",
		  false },
		{ "{\"network\":{\"maskRequestHost\":\"a.test\"}}", "Host: a.test\r\n", NULL,
		  false },
		{ "{\"network\":{\"maskRequestHost\":\"\"}}", "Host: gw.test\r\n", NULL, false },
		{ "{\"network\":{}}", "Host: gw.test\r\n", NULL, false },
		{ "{\"network\":{\"maskRequestHost\":\"a.test\"}}", "Host: gw.test\r\n", NULL,
		  true },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct world w;
		char want[64];

		world_open(&w);
		w.node.text = row->name;
		w.script = &plain;
		if (row->to_agent)
			w.g.guests->agent_port = w.port;
		if (row->after)
			(void)snprintf(want, sizeof(want), "%s%u%s", row->before,
				       (unsigned int)w.port, row->after);
		else
			(void)snprintf(want, sizeof(want), "%s", row->before);
		for (int i = 0; i < (row->to_agent ? 1 : 2); i++) { /* and when it is known */
			ask(&w, "POST", "/", "");
			RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\ntea"));
			assert_true(heard(&w.peers->ear, want));
			assert_true(heard(&w.peers->ear, "X-Forwarded-Host: gw.test\r\n"));
		}
		world_close(&w);
	}
}

/* Better nobody than a Host that was not meant. */
static void what_node_forgot_is_not_guessed(void **state)
{
	static const char *const texts[] = { "", "nonsense", "{\"network\":7}",
					     "{\"network\":{\"maskRequestHost\":\"a\\r\\nb\"}}" };

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct world w;

		world_open(&w);
		w.node.text = texts[i];
		ask(&w, "GET", "/hello", "");
		RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 503 "));
		world_close(&w);
	}
}

/* Ports that speak TLS. */

struct secure_world {
	struct world w; /* first: the guest's wrap() finds the rest */
	struct authority *root;
	struct identity *leaf;
	struct tls_context *server;
	struct tls_chooser chooser;
	char text[64];
	bool named; /* a name was said */
};

static int choose(struct tls_chooser *c, const char *name, const struct identity **ret,
		  struct err *err)
{
	struct secure_world *sw = CONTAINER_OF(c, struct secure_world, chooser);

	(void)err;
	sw->named = name[0] != '\0';
	*ret = sw->leaf;
	return 0;
}

static struct stream *speak_tls(struct world *w, struct stream *s)
{
	struct secure_world *sw = CONTAINER_OF(w, struct secure_world, w);
	struct err err = { 0 };

	if (tls_accept(sw->server, s, (struct bytes){ 0 }, &sw->chooser, "http/1.1", &s, &err) < 0)
		fail_msg("%s", err.msg);
	return s;
}

static void secure_open(struct secure_world *sw)
{
	struct err err = { 0 };

	*sw = (struct secure_world){ 0 };
	world_open(&sw->w);
	sw->chooser.choose = choose;
	sw->w.wrap = speak_tls;
	if (authority_new("nobody's", &sw->root, &err) < 0 ||
	    identity_new(sw->root, "not.this.one", &sw->leaf, &err) < 0 ||
	    tls_server_open(&sw->server, &err) < 0 ||
	    tls_client_open(&(struct tls_trust){ .unverified = true }, &sw->w.g.guest_tls, &err) <
		    0)
		fail_msg("%s", err.msg);
	(void)snprintf(sw->text, sizeof(sw->text), "{\"network\":{\"httpsPorts\":[1,%u]}}",
		       (unsigned int)sw->w.port);
	sw->w.node.text = sw->text;
}

static void secure_close(struct secure_world *sw)
{
	struct tls_context *client = sw->w.g.guest_tls;

	world_close(&sw->w);
	tls_context_free(client);
	tls_context_free(sw->server);
	identity_free(sw->leaf);
	authority_free(sw->root);
}

static void https_ports_are_spoken_to_in_tls(void **state)
{
	struct secure_world sw;
	struct world *w = &sw.w;
	struct err err = { 0 };

	(void)state;
	secure_open(&sw);
	ask(w, "GET", "/hello", "");
	RUN_UNTIL(w->l, heard(&w->client, "\r\n\r\nhello"));
	assert_false(sw.named);
	ask(w, "POST", "/length", "content-length: 5\r\n");
	say(w, "12345");
	RUN_UNTIL(w->l, heard(&w->client, "\r\n\r\n5"));
	ask(w, "GET", "/big", "");
	RUN_UNTIL(w->l, w->client.got.len > BIG_SIZE);
	ask(w, "GET", "/switch", "connection: upgrade\r\nupgrade: websocket\r\n");
	RUN_UNTIL(w->l, heard(&w->client, "HTTP/1.1 101 "));
	say(w, "there");
	RUN_UNTIL(w->l, heard(&w->sv.taken, "there"));
	assert_int_equal(stream_write(w->sv.taken.s, BYTES_LIT("and back"), &err), 0);
	RUN_UNTIL(w->l, heard(&w->client, "and back"));
	secure_close(&sw);
}

/* At an HTTPS port somebody who does not speak TLS, and the other way round. */
static void https_or_not_is_the_owners_word(void **state)
{
	static const struct script plain = {
		.text = BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntea"),
		.at_once = true,
	};
	struct secure_world sw;
	struct world *w = &sw.w;
	char want[128];

	(void)state;
	secure_open(&sw);
	w->wrap = NULL;
	w->script = &plain;
	(void)snprintf(want, sizeof(want), "answer that is not HTTPS\",\"port\":%u,\"code\":502}",
		       (unsigned int)w->port);
	ask(w, "GET", "/hello", "");
	RUN_UNTIL(w->l, heard(&w->client, want));
	assert_false(heard(&w->client, "tea"));
	w->script = NULL;
	w->wrap = speak_tls;
	w->node.text = NULL;
	w->node.generation++;
	guest_cache_forget(w->g.guests);
	ask(w, "GET", "/hello", "");
	RUN_UNTIL(w->l, heard(&w->client, "\"code\":502}"));
	secure_close(&sw);
}

#define FIREFOX "user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101\r\n"

static void people_see_a_page(void **state)
{
	static const struct {
		const char *name;
		bool page;
	} rows[] = {
		{ FIREFOX "accept: text/html,application/xhtml+xml\r\n", true },
		{ FIREFOX "sec-fetch-mode: navigate\r\nx-requested-with: x\r\n", true },
		{ "user-agent: SAFARI/1\r\naccept: application/json, text/html\r\n", true },
		{ FIREFOX "accept: application/json\r\n", false },
		{ FIREFOX "sec-fetch-mode: cors\r\n", false },
		{ FIREFOX "sec-fetch-mode: websocket\r\n", false },
		{ FIREFOX "x-requested-with: XMLHttpRequest\r\n", false },
		{ "user-agent: e2b-js-sdk/2.51.0\r\n", false },
		{ "user-agent: curl/8\r\naccept: */*\r\n", false },
		{ "", false },
	};
	struct world w;

	(void)state;
	world_open(&w);
	w.node.mood = NODE_REFUSES;
	FOR_ROWS(row, rows) {
		ask(&w, "GET", "/", row->name);
		RUN_UNTIL(w.l, heard(&w.client, row->page ? "</html>" : "}"));
		assert_true(heard(&w.client, "HTTP/1.1 502 "));
		assert_int_equal(heard(&w.client, "content-type: text/html; charset=utf-8\r\n"),
				 row->page);
		assert_int_equal(heard(&w.client, "application/json; charset=utf-8\r\n"),
				 !row->page);
		assert_true(heard(&w.client, "abc") && heard(&w.client, "was not found"));
	}
	world_close(&w);
}

/* One sandbox does not take all there is; its agent is reached all the same. */
static void a_crowd_is_kept_out(void **state)
{
	struct world w;
	struct ear held;

	(void)state;
	world_open(&w);
	w.g.guests->users_max = 1;
	ask(&w, "GET", "/hold", "");
	RUN_UNTIL(w.l, w.sv.jobs);
	held = w.client;
	stream_set_user(held.s, &held.user);
	stream_read(held.s, true);
	w.client = (struct ear){ 0 };
	ask(&w, "GET", "/hello", "");
	RUN_UNTIL(w.l,
		  heard(&w.client, "{\"sandboxId\":\"abc\",\"message\":\"The sandbox has too many "
				   "concurrent incoming connections (limit: 1)\",\"code\":429,"
				   "\"connectionLimit\":1}"));
	assert_true(heard(&w.client, "HTTP/1.1 429 "));
	ask(&w, "GET", "/hello", FIREFOX);
	RUN_UNTIL(w.l, heard(&w.client, "</html>"));
	ask_of(&w, "other", "GET", "/hello", "");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	w.g.guests->agent_port = w.port;
	ask(&w, "GET", "/hello", "");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	w.g.guests->agent_port = 1;
	ear_done(&held);
	RUN_UNTIL(w.l, !w.sv.jobs);
	ask(&w, "GET", "/hello", "");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	world_close(&w);
}

static void refused_while_it_changes(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	w.node.mood = NODE_BUSY;
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, "{\"sandboxId\":\"abc\",\"message\":\"The sandbox is still "
					"transitioning. Try again in a moment.\",\"code\":409}"));
	world_close(&w);
}

/* Pure. */

static int read_network(const char *text, struct ingress *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	assert_int_equal(json_decode(bytes_str(text), 64 * 1024, 8, &v, err), 0);
	return ingress_read(v, ret, err);
}

static void ingress_is_read(void **state)
{
	char host[INGRESS_HOST_MAX + 1];
	struct ingress in;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ingress_read(NULL, &in, &err), 0);
	assert_false(in.private || in.mask_host[0] || in.n_https);
	assert_int_equal(read_network("{\"allow_public_traffic\":false,\"httpsPorts\":[443,8443,"
				      "443],\"maskRequestHost\":\"[::1]:${PORT}\"}",
				      &in, &err),
			 0);
	assert_true(in.private);
	assert_int_equal(in.n_https, 2);
	assert_true(ingress_is_https(&in, 443) && ingress_is_https(&in, 8443));
	assert_false(ingress_is_https(&in, 80));
	assert_true(bytes_eq(ingress_host(&in, 80, host), BYTES_LIT("[::1]:80")));
	assert_true(bytes_eq(ingress_host(&in, 65535, host), BYTES_LIT("[::1]:65535")));
}

static void ingress_is_refused(void **state)
{
	static const struct {
		const char *name, *message;
	} rows[] = {
		{ "{\"allowPublicTraffic\":\"no\"}", NULL },
		{ "{\"maskRequestHost\":1}", NULL },
		{ "{\"maskRequestHost\":\"a:b:c\"}", "mask request host is not valid: a:b:c" },
		{ "{\"maskRequestHost\":\"a b\"}", "mask request host is not valid: a b" },
		{ "{\"maskRequestHost\":\"a/b\"}", "mask request host is not valid: a/b" },
		{ "{\"maskRequestHost\":\"a\\r\\nx: y\"}", NULL },
		{ "{\"maskRequestHost\":\":80\"}", "mask request host is not valid: :80" },
		{ "{\"maskRequestHost\":\"a:1${PORT}\"}",
		  "mask request host is not valid: a:1${PORT}" },
		{ "{\"maskRequestHost\":\"m\303\274ller.test:80\"}",
		  "mask request host 'm\303\274ller.test' is not ASCII. Please use ASCII "
		  "characters only." },
		{ "{\"httpsPorts\":443}", NULL },
		{ "{\"httpsPorts\":[0]}", "network: httpsPorts must have numbers from 1 to 65535" },
		{ "{\"httpsPorts\":[65536]}", NULL },
		{ "{\"httpsPorts\":[\"443\"]}", NULL },
		{ "{\"httpsPorts\":[443.0]}", NULL },
		{ "{\"httpsPorts\":[49983]}", "network: httpsPorts must not have port 49983" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct ingress in;
		struct err err = { 0 };

		assert_int_equal(read_network(row->name, &in, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		if (row->message)
			assert_string_equal(err.msg, row->message);
	}
}

static void ingress_has_limits(void **state)
{
	char text[2048], host[INGRESS_HOST_MAX + 1];
	struct ingress in;
	struct err err = { 0 };
	size_t n;

	(void)state;
	for (size_t len = INGRESS_HOST_MAX; len <= INGRESS_HOST_MAX + 1; len++) {
		n = (size_t)snprintf(text, sizeof(text), "{\"maskRequestHost\":\"");
		memset(text + n, 'a', len);
		(void)snprintf(text + n + len, sizeof(text) - n - len, "\"}");
		assert_int_equal(read_network(text, &in, &err), len > INGRESS_HOST_MAX ? -1 : 0);
		if (len == INGRESS_HOST_MAX)
			assert_int_equal(ingress_host(&in, 65535, host).len, len);
	}
	for (size_t ports = INGRESS_PORTS_MAX; ports <= INGRESS_PORTS_MAX + 1; ports++) {
		n = (size_t)snprintf(text, sizeof(text), "{\"httpsPorts\":[1");
		for (size_t i = 1; i < ports; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ",%zu", i + 1);
		(void)snprintf(text + n, sizeof(text) - n, "]}");
		assert_int_equal(read_network(text, &in, &err), ports > INGRESS_PORTS_MAX ? -1 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_private_port_wants_the_token),
		cmocka_unit_test(a_refusal_costs_nothing),
		cmocka_unit_test(without_a_token_it_is_closed),
		cmocka_unit_test(the_agent_has_its_own_token),
		cmocka_unit_test(the_token_stays_outside),
		cmocka_unit_test(a_paused_one_wants_it_first),
		cmocka_unit_test(who_waits_beside_is_not_let_in),
		cmocka_unit_test(services_see_the_mask),
		cmocka_unit_test(what_node_forgot_is_not_guessed),
		cmocka_unit_test(https_ports_are_spoken_to_in_tls),
		cmocka_unit_test(https_or_not_is_the_owners_word),
		cmocka_unit_test(people_see_a_page),
		cmocka_unit_test(a_crowd_is_kept_out),
		cmocka_unit_test(refused_while_it_changes),
		cmocka_unit_test(ingress_is_read),
		cmocka_unit_test(ingress_is_refused),
		cmocka_unit_test(ingress_has_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
