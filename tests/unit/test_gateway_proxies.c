/* test_gateway_proxies.c - whose word is believed: lists, walks over proxies, and what guests and
 * limits see of it.
 */
#include "tests/unit/gateway_world.h"

/* --- the list ------------------------------------------------------------------------------ */

static void a_list_is_addresses_and_ranges(void **state)
{
	static const struct {
		const char *name, *list;
		size_t n;
		const char *why; /* NULL: it is one */
	} rows[] = {
		{ "empty", "", 0, NULL },
		{ "one", "192.0.2.7", 1, NULL },
		{ "many", " 10.0.0.0/8  2001:db8::/32 ::1 ", 3, NULL },
		{ "a comma", "192.0.2.7, 192.0.2.8", 0, "no address" },
		{ "a name", "proxy.example", 0, "no address" },
		{ "a typing error", "192.0.2.7/24", 0, "no address" },
		{ "all of IPv4", "0.0.0.0/0", 0, "everybody" },
		{ "all", "::/0", 0, "everybody" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct proxies p = { 0 };
		struct err err = { 0 };

		assert_int_equal(proxies_parse(&p, row->list, &err), row->why ? -1 : 0);
		if (row->why)
			assert_non_null(strstr(err.msg, row->why));
		else
			assert_int_equal(p.n, row->n);
	}
}

static void a_list_has_an_end(void **state)
{
	struct proxies p = { 0 };
	char list[(PROXIES_MAX + 1) * 12 + 1];
	struct err err = { 0 };
	size_t at = 0;

	(void)state;
	for (size_t i = 0; i <= PROXIES_MAX; i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "192.0.2.%zu ", i);
	assert_int_equal(proxies_parse(&p, list, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
}

static void what_a_peer_brings(void **state)
{
	struct proxies p = { 0 };
	struct err err = { 0 };
	struct addr listed, other, path;

	(void)state;
	assert_int_equal(addr_parse(BYTES_LIT("[::ffff:10.1.2.3]:80"), &listed, &err), 0);
	assert_int_equal(addr_parse(BYTES_LIT("11.1.2.3:80"), &other, &err), 0);
	assert_int_equal(addr_unix("/x", &path, &err), 0);
	assert_int_equal(proxies_kind_of(&p, &listed), LISTENER_CLIENT);
	assert_int_equal(proxies_parse(&p, "10.0.0.0/8", &err), 0);
	assert_int_equal(proxies_kind_of(&p, &listed), LISTENER_PROXY);
	p.introduce = true;
	assert_int_equal(proxies_kind_of(&p, &listed), LISTENER_INTRODUCES);
	assert_int_equal(proxies_kind_of(&p, &other), LISTENER_CLIENT);
	assert_int_equal(proxies_kind_of(&p, &path), LISTENER_CLIENT);
}

/* --- the walk ------------------------------------------------------------------------------ */

static void the_client_is_the_last_who_is_not_listed(void **state)
{
	static const struct {
		const char *name, *fields, *client;
	} rows[] = {
		{ "none", "", "10.0.0.1" },
		{ "one", "X-Forwarded-For: 192.0.2.7\r\n", "192.0.2.7" },
		{ "with a port", "X-Forwarded-For: 192.0.2.7:99\r\n", "192.0.2.7" },
		{ "IPv6", "X-Forwarded-For: 2001:db8::7\r\n", "2001:db8::7" },
		{ "IPv6 in brackets", "X-Forwarded-For: [2001:db8::7]\r\n", "2001:db8::7" },
		{ "and a port", "X-Forwarded-For: [2001:db8::7]:80\r\n", "2001:db8::7" },
		{ "forged", "X-Forwarded-For: 203.0.113.9, 192.0.2.7\r\n", "192.0.2.7" },
		{ "forged as a listed one", "X-Forwarded-For: 10.0.0.9, 192.0.2.7\r\n",
		  "192.0.2.7" },
		{ "two proxies", "X-Forwarded-For: 203.0.113.9, 192.0.2.7, 10.0.0.2\r\n",
		  "192.0.2.7" },
		{ "two lines",
		  "X-Forwarded-For: 203.0.113.9\r\nx-own: 1\r\nx-forwarded-for: "
		  "192.0.2.7,10.0.0.2\r\n",
		  "192.0.2.7" },
		{ "a line each", "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-For: 10.0.0.2\r\n",
		  "192.0.2.7" },
		{ "proxies alone", "X-Forwarded-For: 10.0.0.3, 10.0.0.2\r\n", "10.0.0.3" },
		{ "no address", "X-Forwarded-For: unknown\r\n", "10.0.0.1" },
		{ "no address behind a proxy", "X-Forwarded-For: 192.0.2.7, bad, 10.0.0.2\r\n",
		  "10.0.0.2" },
		{ "an empty entry", "X-Forwarded-For: 192.0.2.7,\r\n", "10.0.0.1" },
		{ "an empty field", "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-For:\r\n",
		  "10.0.0.1" },
		{ "a bad port", "X-Forwarded-For: 192.0.2.7:x\r\n", "10.0.0.1" },
		{ "a large port", "X-Forwarded-For: 192.0.2.7:65536\r\n", "10.0.0.1" },
		{ "an open bracket", "X-Forwarded-For: [2001:db8::7\r\n", "10.0.0.1" },
		{ "IPv4 in brackets", "X-Forwarded-For: [192.0.2.7]\r\n", "10.0.0.1" },
		{ "behind a bracket", "X-Forwarded-For: [2001:db8::7]80\r\n", "10.0.0.1" },
		{ "another spelling", "X_Forwarded_For: 192.0.2.7\r\n", "10.0.0.1" },
	};
	struct ip_range listed;
	const struct forwarded_trust trust = { &listed, 1 };

	(void)state;
	assert_true(ip_range_parse(BYTES_LIT("10.0.0.0/8"), &listed));
	FOR_ROWS(row, rows) {
		struct ip who, want;
		struct http1_head h;
		struct err err = { 0 };
		char text[512];

		(void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nhost: a\r\n%s\r\n",
			       row->fields);
		assert_int_equal(http1_parse_request(bytes_str(text), &h, &err), 0);
		assert_true(ip_parse(BYTES_LIT("10.0.0.1"), &who));
		assert_true(ip_parse(bytes_str(row->client), &want));
		assert_int_equal(forwarded_client(&h, &trust, &who),
				 strcmp(row->client, "10.0.0.1") != 0);
		assert_memory_equal(&who, &want, sizeof(who));
	}
}

static void a_walk_has_an_end(void **state)
{
	struct http1_head h = { .n_fields = FORWARDED_HOPS_MAX + 1 };
	struct ip_range listed;
	const struct forwarded_trust trust = { &listed, 1 };
	struct ip who, want;

	(void)state;
	for (size_t i = 0; i < h.n_fields; i++)
		h.fields[i] = (struct http1_field){ BYTES_LIT("x-forwarded-for"),
						    i == 0 ? BYTES_LIT("192.0.2.7")
							   : BYTES_LIT("10.0.0.2") };
	assert_true(ip_range_parse(BYTES_LIT("10.0.0.0/8"), &listed));
	assert_true(ip_parse(BYTES_LIT("10.0.0.1"), &who));
	assert_true(ip_parse(BYTES_LIT("10.0.0.2"), &want));
	assert_true(forwarded_client(&h, &trust, &who));
	assert_memory_equal(&who, &want, sizeof(who)); /* one hop more, and it were the client */
}

static void which_fields_speak_of_clients(void **state)
{
	static const struct {
		const char *field;
		bool is;
	} rows[] = {
		{ "X-Forwarded-For", true },     { "x-forwarded-anything", true },
		{ "X_Forwarded_For", true },     { "x.forwarded.for", true },
		{ "Forwarded", true },           { "X-Real-IP", true },
		{ "x_real_ip", true },           { "X-Forwarded", false },
		{ "Forwarded-Allow", false },    { "X-Real-IPs", false },
		{ "My-X-Forwarded-For", false }, { "Via", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(forwarded_is_field(bytes_str(rows[i].field)), rows[i].is);
}

/* --- requests, from 192.0.2.7 -------------------------------------------------------------- */

#define SAID                                                                                   \
	"X-Forwarded-For: 198.51.100.1, 203.0.113.9\r\nX_Forwarded_For: 198.51.100.2\r\n"      \
	"X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.test\r\nX-Forwarded-Port: 443\r\n" \
	"Forwarded: for=198.51.100.3\r\nX-Real-IP: 198.51.100.4\r\n"

static const struct script answer = { .text = BYTES_LIT("HTTP/1.1 204 No\r\n\r\n") };

static void list(struct world *w, const char *proxies)
{
	struct err err = { 0 };

	if (proxies_parse(&w->proxies, proxies, &err) < 0)
		fail_msg("%s", err.msg);
}

static void guests_hear_it_from_us_alone(void **state)
{
	static const struct {
		const char *name, *proxies, *client, *proto;
	} rows[] = {
		{ "nobody is listed", "", "X-Forwarded-For: 192.0.2.7\r\n",
		  "X-Forwarded-Proto: http\r\n" },
		{ "others are", "192.0.2.8", "X-Forwarded-For: 192.0.2.7\r\n",
		  "X-Forwarded-Proto: http\r\n" },
		{ "it is listed", "192.0.2.0/24", "X-Forwarded-For: 203.0.113.9\r\n",
		  "X-Forwarded-Proto: https\r\n" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct world w;
		struct ear *e;

		world_open(&w);
		w.script = &answer;
		list(&w, row->proxies);
		ask(&w, "GET", "/", SAID "x-own: 1\r\n");
		RUN_UNTIL(w.l, heard(&w.client, "204"));
		e = &w.peers->ear;
		assert_true(heard(e, row->client) && heard(e, row->proto));
		assert_true(heard(e, "X-Forwarded-Host: gw.test\r\n") && heard(e, "x-own: 1\r\n"));
		assert_false(heard(e, "198.51.100.") || heard(e, "evil") || heard(e, "Port"));
		world_close(&w);
	}
}

/* Any word but https is taken for what it is. */
static void the_last_word_on_tls_counts(void **state)
{
	static const struct {
		const char *name, *fields, *proto;
	} rows[] = {
		{ "nothing", "", "X-Forwarded-Proto: http\r\n" },
		{ "plain", "X-Forwarded-Proto: http\r\n", "X-Forwarded-Proto: http\r\n" },
		{ "a list", "X-Forwarded-Proto: http, HTTPS\r\n", "X-Forwarded-Proto: https\r\n" },
		{ "two", "X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\n",
		  "X-Forwarded-Proto: http\r\n" },
		{ "a WebSocket", "X-Forwarded-Proto: wss\r\n", "X-Forwarded-Proto: https\r\n" },
		{ "nonsense", "X-Forwarded-Proto: httpsx\r\n", "X-Forwarded-Proto: http\r\n" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct world w;

		world_open(&w);
		w.script = &answer;
		list(&w, "192.0.2.7");
		ask(&w, "GET", "/", row->fields);
		RUN_UNTIL(w.l, heard(&w.client, "204"));
		assert_true(heard(&w.peers->ear, row->proto));
		world_close(&w);
	}
}

enum { TRIES = 1000 };

static struct ear keep(struct world *w)
{
	struct ear e = w->client;

	w->client = (struct ear){ 0 };
	return e;
}

#define OF(client) "X-Forwarded-For: " client "\r\n"
#define UPGRADE    "connection: upgrade\r\nupgrade: own\r\n"

/* Each that a proxy names has so many requests at once, one that was upgraded among them; the proxy
 * itself has any number. */
static void an_address_has_so_many_requests_at_once(void **state)
{
	static const struct script begins = {
		.text = BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n1"),
	};
	static const struct script switches = {
		.text = BYTES_LIT(
			"HTTP/1.1 101 Yes\r\nconnection: upgrade\r\nupgrade: own\r\n\r\nhi"),
	};
	struct ear held[2];
	struct world w;

	(void)state;
	world_open(&w);
	list(&w, "192.0.2.7");
	w.proxies.requests_max = 2;
	w.script = &begins;
	ask(&w, "GET", "/", OF("203.0.113.9"));
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n1"));
	held[0] = keep(&w);
	w.script = &switches;
	ask(&w, "GET", "/", OF("203.0.113.9") UPGRADE);
	RUN_UNTIL(w.l, heard(&w.client, "hi"));
	held[1] = keep(&w);
	w.script = &answer; /* once on a connection: a POST has its own */
	ask(&w, "POST", "/", OF("203.0.113.9"));
	RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 429 "));
	ask(&w, "POST", "/", OF("198.51.100.1, 203.0.113.9"));
	RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 429 "));
	ask(&w, "POST", "/", OF("203.0.113.8"));
	RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 204 "));
	ask(&w, "POST", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 204 "));
	for (size_t i = COUNT(held); i-- > 0;) { /* the upgraded one makes room, and the other */
		stream_abort(held[i].s);
		buf_done(&held[i].got);
		for (int tries = 0; tries == 0 || heard(&w.client, "HTTP/1.1 429 "); tries++) {
			assert_true(tries < TRIES); /* until the gateway has noticed */
			ask(&w, "POST", "/", OF("203.0.113.9"));
			RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 "));
		}
	}
	world_close(&w); /* and nothing is left of anybody */
	for (size_t i = 0; i < ADDRESS_BUCKETS; i++)
		assert_null(w.proxies.requests.buckets[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_addresses_and_ranges),
		cmocka_unit_test(a_list_has_an_end),
		cmocka_unit_test(what_a_peer_brings),
		cmocka_unit_test(the_client_is_the_last_who_is_not_listed),
		cmocka_unit_test(a_walk_has_an_end),
		cmocka_unit_test(which_fields_speak_of_clients),
		cmocka_unit_test(guests_hear_it_from_us_alone),
		cmocka_unit_test(the_last_word_on_tls_counts),
		cmocka_unit_test(an_address_has_so_many_requests_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
