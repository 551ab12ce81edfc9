/* test_egress_onward.c - connections of a guest that do not simply go where they mean to: to an
 * injector, through a proxy, more or faster than may be. */
#include "tests/unit/egress_world.h"

#include "egress/host_addresses.h"
#include "egress/names.h"

/* --- a host with a rule --------------------------------------------------------------------- */

#define WITH_RULE "{\"network\":{\"rules\":{\"good.com\":[]}}}"

static int with_injector(struct world *w)
{
	int pair[2];
	struct err err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(sandbox_egress_injector(&w->sandbox_egress, pair[1], &err), 0);
	return pair[0];
}

static bool was_handed(struct world *w)
{
	return w->sandbox_egress.n_handed == 1;
}

static bool none_is_handed(struct world *w)
{
	return w->sandbox_egress.n_handed == 0;
}

static bool something_moved(struct world *w)
{
	return w->sandbox_egress.counts.bytes_out > 0;
}

/* What the worker is given: both ends are in `fds`. */
static uint64_t take_handed(const struct world *w, int worker, int fds[static INJECTOR_HAND_FDS],
			    const char *first)
{
	struct {
		struct injector_hand hand;
		char first[4096];
	} got = { 0 };
	size_t len = 0, n = 0;
	struct err err;

	assert_int_equal(fdmsg_recv_some(worker, &got, sizeof(got.hand), sizeof(got), &len, fds,
					 INJECTOR_HAND_FDS, &n, &err),
			 0);
	assert_int_equal(n, INJECTOR_HAND_FDS);
	assert_int_equal(got.hand.first_len, len - sizeof(got.hand));
	assert_string_equal(got.first, first);
	assert_string_equal(got.hand.name, "good.com");
	assert_int_equal(got.hand.port, PORT);
	assert_int_equal(got.hand.tls, 0);
	assert_int_equal(got.hand.bytes_per_s, w->house.limits.bytes_per_s);
	return got.hand.tag;
}

static void a_host_with_a_rule_is_handed_over(void **state)
{
	struct world *w = *state;
	struct injector_over over = { .bytes_out = 4, .bytes_in = 20, .goes_on = 1 };
	int worker = with_injector(w), fds[INJECTOR_HAND_FDS];

	rule(w, WITH_RULE);
	go(w, EVIL, GET("good.com")); /* the guest's address means nothing here, either */
	assert_true(until(w, was_handed));
	assert_true(until(w, at_good));
	over.tag = take_handed(w, worker, fds, GET("good.com"));
	assert_int_equal(write(fds[0], "to the guest", 12), 12);
	must_arrive(w, w->guest, "to the guest");
	assert_int_equal(write(fds[1], "to the server", 13), 13);
	must_arrive(w, w->good.fd, "to the server");
	assert_int_equal(write(worker, &over, sizeof(over)), sizeof(over));
	assert_true(until(w, something_moved));
	assert_int_equal(w->sandbox_egress.n_handed, 1);
	over = (struct injector_over){ .tag = over.tag, .bytes_out = 6, .requests = 1 };
	assert_int_equal(write(worker, &over, sizeof(over)), sizeof(over));
	assert_true(until(w, none_is_handed));
	assert_int_equal(w->sandbox_egress.counts.bytes_out, 10);
	assert_int_equal(w->sandbox_egress.counts.bytes_in, 20);
	close(fds[0]);
	close(fds[1]);
	close(worker);
}

static void without_its_injector_such_a_host_is_refused(void **state)
{
	struct world *w = *state;
	int worker = with_injector(w);

	rule(w, WITH_RULE);
	close(worker);
	do
		(void)loop_turn(w->loop);
	while (w->sandbox_egress.counts.tcp_refused == 0 && (go(w, GOOD, GET("good.com")), true));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	assert_false(came(&w->good));
}

static void an_injector_that_ends_takes_its_connections_with_it(void **state)
{
	struct world *w = *state;
	int worker = with_injector(w);

	rule(w, WITH_RULE);
	go(w, GOOD, GET("good.com"));
	assert_true(until(w, was_handed));
	close(worker);
	assert_true(until(w, none_is_handed));
	must_arrive(w, w->guest, "");
	assert_int_equal(w->sandbox_egress.n_fronts, 0);
}

/* A worker that does not read now: those it has no room for wait, and reach it later. */
static void a_busy_injector_is_waited_for(void **state)
{
	enum { MANY = 300 };
	struct world *w = *state;
	int worker = with_injector(w), fds[INJECTOR_HAND_FDS];
	bool seen[MANY + 1] = { 0 };

	w->house.limits.connections = MANY;
	rule(w, WITH_RULE);
	for (int i = 0; i < MANY; i++) {
		go(w, GOOD, GET("good.com"));
		while (w->sandbox_egress.n_handed <= (size_t)i &&
		       w->sandbox_egress.counts.tcp_failed == 0)
			(void)loop_turn(w->loop);
		assert_true(came(&w->good)); /* its backlog is short */
		close(take_fd(&w->good.fd));
	}
	assert_int_equal(w->sandbox_egress.counts.tcp_failed, 0);
	for (int i = 0; i < MANY; i++) {
		uint64_t tag;
		struct pollfd ready = { .fd = worker, .events = POLLIN };

		while (poll(&ready, 1, 0) == 0)
			(void)loop_turn(w->loop);
		tag = take_handed(w, worker, fds, GET("good.com"));
		assert_true(tag <= MANY && !seen[tag]);
		seen[tag] = true;
		close(fds[0]);
		close(fds[1]);
	}
	close(worker);
}

/* The name is not allowed, the address is: nothing is added to what goes to an address. */
static void a_rule_is_for_the_addresses_of_its_name(void **state)
{
	struct world *w = *state;
	int worker = with_injector(w);

	rule(w, "{\"network\":{\"allowOut\":[\"8.8.4.4\"],\"denyOut\":[\"0.0.0.0/0\"],"
		"\"rules\":{\"good.com\":[]}}}");
	go(w, EVIL, GET("good.com"));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	assert_false(came(&w->evil));
	close(worker);
}

/* As many bytes as come, up to `want`; how long that took. */
static uint64_t read_for(struct world *w, int fd, size_t want)
{
	uint64_t begin = clock_mono_ns(), end = begin + (uint64_t)PATIENCE_MS * NSEC_PER_MSEC;
	char got[4096];
	size_t n = 0;

	while (n < want && clock_mono_ns() < end) {
		ssize_t k = recv(fd, got, sizeof(got), MSG_DONTWAIT);

		n += k > 0 ? (size_t)k : 0;
		if (k <= 0)
			(void)loop_turn(w->loop);
	}
	assert_int_equal(n, want);
	return (clock_mono_ns() - begin) / NSEC_PER_MSEC;
}

static void bytes_are_counted_at_once_and_no_faster_than_may_be(void **state)
{
	enum { RATE = 100 * 1000, MUCH = 60 * 1000 };
	static char much[MUCH];
	struct world *w = *state;
	uint64_t ms;

	w->house.limits.bytes_per_s = RATE;
	sandbox_egress_forget(&w->sandbox_egress);
	rule(w, "{}");
	go(w, GOOD, "\1\2\3");
	assert_true(until(w, at_good));
	assert_int_equal(send(w->good.fd, much, MUCH, 0), MUCH);
	ms = read_for(w, w->guest, MUCH);
	assert_int_equal(w->sandbox_egress.counts.bytes_in, MUCH);
	assert_int_equal(w->sandbox_egress.counts.bytes_out, 3);
	/* less than half is not paid for: what was saved up, and the last piece */
	assert_int_equal(send(w->good.fd, much, MUCH, 0), MUCH);
	ms += read_for(w, w->guest, MUCH);
	assert_true(ms >= (2 * MUCH - 2 * LOOP_READ_MAX) * 1000 / RATE);
}

/* --- through a proxy ------------------------------------------------------------------------ */

/* It is at the address INSIDE. */
static void with_proxy(struct world *w, struct addr *proxy)
{
	struct err err;

	assert_int_equal(addr_ip("10.0.0.1", PORT, proxy, &err), 0);
	w->house.proxy = proxy;
	host_addresses_proxy(&w->ground, proxy);
}

static void with_proxy_that_resolves(struct world *w, struct addr *proxy)
{
	with_proxy(w, proxy);
	w->ground.proxy_resolves = true;
}

static void speak(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

#define CONNECT(to) "CONNECT " to ":8080 HTTP/1.1\r\nHost: " to ":8080\r\n\r\n"

/* All that the guest is told, until nothing follows. */
static void read_all(struct world *w, char *got, size_t size)
{
	struct timer patience;
	size_t n = 0;
	ssize_t k = -1;

	timer_init(&patience, w->loop, patience_over);
	timer_start(&patience, PATIENCE_MS);
	while (k != 0 && patience.active) {
		k = recv(w->guest, got + n, size - 1 - n, MSG_DONTWAIT);
		n += k > 0 ? (size_t)k : 0;
		if (k < 0)
			(void)loop_turn(w->loop);
	}
	timer_stop(&patience);
	assert_int_equal(k, 0);
	got[n] = 0;
}

static void must_be_told(struct world *w, const char *text)
{
	char got[1024];

	read_all(w, got, sizeof(got));
	print_message("      %s\n", got);
	assert_non_null(strstr(got, text));
}

static void a_proxy_is_asked_for_the_judged_address(void **state)
{
	struct world *w = *state;
	struct addr proxy;

	with_proxy(w, &proxy);
	rule(w, ONLY_GOOD);
	go(w, EVIL, GET("good.com"));
	assert_true(until(w, at_inside));
	must_arrive(w, w->inside.fd, CONNECT("93.184.216.34"));
	speak(w->inside.fd, "HTTP/1.1 200 OK\r\n\r\n");
	must_arrive(w, w->inside.fd, GET("good.com"));
	assert_false(came(&w->good));
	rule(w, ONLY_GOOD);
	assert_int_equal(w->sandbox_egress.n_fronts, 1);
	rule(w, "{\"network\":{\"denyOut\":[\"0.0.0.0/0\"]}}");
	assert_int_equal(w->sandbox_egress.n_fronts, 0);
}

/* The proxy might lead there: it is not asked. */
static void a_name_that_leads_inside_is_not_the_proxys_either(void **state)
{
	static const struct {
		const char *name, *rules, *says, *why;
	} rows[] = {
		{ "every name is allowed", "{}", GET("rebound.com"), "the address is private" },
		{ "that name is",
		  "{\"network\":{\"allowOut\":[\"rebound.com\"],\"denyOut\":[\"0.0.0.0/0\"]}}",
		  GET("rebound.com"), "the address is private" },
		{ "its rule is for more", "{\"network\":{\"allowOut\":[\"*\"]}}",
		  GET("rebound.com"), "the address is private" },
		{ "the host's own", "{}", GET("evil.com"), "the address is this host" },
		{ "without an address", "{}", GET("nobody.com"), "the name has no address" },
	};
	struct world *w = *state;
	struct addr proxy;
	char want[512];

	with_proxy(w, &proxy);
	w->ground.host[w->ground.n_host++] = EVIL;
	FOR_ROWS(row, rows) {
		rule(w, row->rules);
		go(w, GOOD, row->says);
		snprintf(want, sizeof(want), "hotcell: not allowed: %s", row->why);
		must_be_told(w, want);
		assert_true(leaves(w));
	}
	assert_false(came(&w->inside));
}

/* It would ask whomever the guest tells it to. */
static void a_proxy_is_not_asked_for_itself(void **state)
{
	static const struct {
		const char *name, *says;
	} rows[] = { { "by its name", GET("good.com") },
		     { "by its address", GET("93.184.216.34") },
		     { "without a name", "\1\2\3" } };
	struct world *w = *state;
	struct addr proxy;
	struct err err;

	assert_int_equal(addr_ip("93.184.216.34", PORT, &proxy, &err), 0);
	w->house.proxy = &proxy;
	host_addresses_proxy(&w->ground, &proxy);
	rule(w, "{}");
	FOR_ROWS(row, rows) {
		go(w, GOOD, row->says);
		assert_true(leaves(w));
	}
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, COUNT(rows));
	assert_false(came(&w->good));
}

/* A stand-in of a time when the proxy resolved: the guest asks again. */
static void without_a_name_an_address_it_was_given_goes_to_the_proxy(void **state)
{
	static const struct dns_addresses given = { { GOOD }, 1, 60 };
	struct world *w = *state;
	struct addr proxy;

	with_proxy(w, &proxy);
	rule(w, ONLY_GOOD);
	go(w, fake_ip_for(&w->sandbox_egress.known, "good.com"), "\1\2\3");
	assert_true(until(w, nobody_left));
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, 1);
	assert_false(came(&w->inside));
	known_names_add(&w->sandbox_egress.known, "good.com", &given);
	go(w, GOOD, NULL);
	assert_true(until(w, at_inside));
	must_arrive(w, w->inside.fd, CONNECT("93.184.216.34"));
	speak(w->inside.fd, "HTTP/1.0 200 OK\r\n\r\nSSH-2.0-x\r\n");
	must_arrive(w, w->guest, "SSH-2.0-x\r\n");
}

/* Its worker checks the server's certificate for that name. */
static void to_its_injector_a_connection_by_the_proxy_has_its_name(void **state)
{
	struct world *w = *state;
	int worker = with_injector(w), fds[INJECTOR_HAND_FDS];
	struct addr proxy;

	with_proxy(w, &proxy);
	rule(w, WITH_RULE);
	go(w, EVIL, GET("good.com"));
	assert_true(until(w, at_inside));
	must_arrive(w, w->inside.fd, CONNECT("93.184.216.34"));
	speak(w->inside.fd, "HTTP/1.1 200 OK\r\n\r\n");
	assert_true(until(w, was_handed));
	(void)take_handed(w, worker, fds, GET("good.com"));
	assert_int_equal(write(fds[1], "to the server", 13), 13);
	must_arrive(w, w->inside.fd, "to the server");
	close(fds[0]);
	close(fds[1]);
	close(worker);
}

static bool is_answered(struct world *w)
{
	struct pollfd answered = { .fd = w->guest, .events = POLLIN };

	return poll(&answered, 1, 0) > 0;
}

/* What the guest, whose socket is w->guest, is answered. */
static size_t resolve(struct world *w, int door, struct bytes question, uint8_t out[static 512])
{
	struct sockaddr_in who;
	socklen_t len = sizeof(who);
	ssize_t n;

	assert_int_equal(getsockname(w->guest, (struct sockaddr *)&who, &len), 0);
	names_ask(&w->sandbox_egress, door, question, &who);
	assert_true(until(w, is_answered));
	n = recv(w->guest, out, 512, 0);
	assert_true(n > 0);
	return (size_t)n;
}

#define QUERY(name) "\x12\x34\1\0\0\1\0\0\0\0\0\0" name "\0\0\1\0\1"

static void a_guest_is_told_true_addresses(void **state)
{
	struct world *w = *state;
	int door = bound(SOCK_DGRAM, 0x7f000001, 0);
	struct addr proxy;
	uint8_t out[512];
	size_t n;

	w->guest = bound(SOCK_DGRAM, 0x7f000001, 0);
	with_proxy(w, &proxy);
	rule(w, "{}");
	n = resolve(w, door, BYTES_LIT(QUERY("\4good\3com")), out);
	assert_int_equal(out[7], 1); /* answers */
	assert_memory_equal(out + n - 4, "\x5d\xb8\xd8\x22", 4);
	(void)resolve(w, door, BYTES_LIT(QUERY("\7rebound\3com")), out);
	assert_int_equal(out[7], 0);
	close(door);
}

static void a_proxy_that_resolves_is_asked_for_the_name(void **state)
{
	struct world *w = *state;
	struct addr proxy;

	with_proxy_that_resolves(w, &proxy);
	rule(w, ONLY_GOOD);
	go(w, EVIL, GET("good.com"));
	assert_true(until(w, at_inside));
	must_arrive(w, w->inside.fd, CONNECT("good.com"));
	speak(w->inside.fd, "HTTP/1.1 200 Connection ");
	speak(w->inside.fd, "established\r\nVia: x\r\n\r\n");
	must_arrive(w, w->inside.fd, GET("good.com"));
	speak(w->inside.fd, "HTTP/1.1 204 No Content\r\n\r\n");
	must_arrive(w, w->guest, "HTTP/1.1 204 No Content\r\n");
	assert_false(came(&w->good));
	rule(w, ONLY_GOOD);
	assert_int_equal(w->sandbox_egress.n_fronts, 1);
	rule(w, "{\"network\":{\"denyOut\":[\"0.0.0.0/0\"]}}");
	assert_int_equal(w->sandbox_egress.n_fronts, 0);
}

static void who_waits_for_a_greeting_goes_by_the_stand_in(void **state)
{
	struct world *w = *state;
	struct addr proxy;

	with_proxy_that_resolves(w, &proxy);
	rule(w, ONLY_GOOD);
	go(w, fake_ip_for(&w->sandbox_egress.known, "good.com"), NULL);
	assert_true(until(w, at_inside));
	must_arrive(w, w->inside.fd, CONNECT("good.com"));
	speak(w->inside.fd, "HTTP/1.0 200 OK\r\n\r\nSSH-2.0-x\r\n");
	must_arrive(w, w->guest, "SSH-2.0-x\r\n");
	speak(w->guest, "SSH-2.0-y\r\n");
	must_arrive(w, w->inside.fd, "SSH-2.0-y\r\n");
	assert_int_equal(w->sandbox_egress.counts.bytes_in, 11);
}

static void a_stand_in_is_worth_its_name_and_no_more(void **state)
{
	struct world *w = *state;
	struct addr proxy;
	uint32_t evil;

	with_proxy_that_resolves(w, &proxy);
	rule(w, ONLY_GOOD);
	evil = fake_ip_for(&w->sandbox_egress.known, "evil.com");
	go(w, evil, "\1\2\3");
	assert_true(until(w, nobody_left));
	go(w, evil + 1, "\1\2\3"); /* nobody's */
	assert_true(until(w, nobody_left));
	go(w, GOOD, "\1\2\3"); /* an address that no rule has */
	assert_true(until(w, nobody_left));
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, 3);
	assert_false(came(&w->inside));
	w->ground.proxy_resolves = false;
	go(w, fake_ip_for(&w->sandbox_egress.known, "good.com"), "\1\2\3");
	assert_true(until(w, nobody_left));
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, 4);
}

/* As after a pause, when the address was given anew meanwhile: two names, and one may be reached.
 */
static void of_two_names_of_a_stand_in_the_allowed_one_is_asked_for(void **state)
{
	struct world *w = *state;
	struct dns_addresses given = { .n = 1 };
	struct addr proxy;

	with_proxy_that_resolves(w, &proxy);
	rule(w, ONLY_GOOD);
	given.ip[0] = fake_ip_for(&w->sandbox_egress.known, "good.com");
	known_names_add(&w->sandbox_egress.known, "evil.com", &given);
	go(w, given.ip[0], "\1\2\3");
	assert_true(until(w, at_inside));
	must_arrive(w, w->inside.fd, CONNECT("good.com"));
}

static void where_the_proxy_is_is_the_operators_to_know(void **state)
{
	struct world *w = *state;
	struct addr proxy;
	char got[1024];

	with_proxy_that_resolves(w, &proxy);
	close(w->inside.listener);
	w->inside.listener = -1;
	rule(w, ONLY_GOOD);
	go(w, EVIL, GET("good.com"));
	read_all(w, got, sizeof(got));
	assert_non_null(strstr(got, "HTTP/1.1 502"));
	assert_non_null(strstr(got, "the proxy is not reached"));
	assert_null(strstr(got, "10.0.0.1"));
}

static void what_a_proxy_refuses_is_told(void **state)
{
	static const struct {
		const char *name, *says;
	} rows[] = {
		{ "refused", "HTTP/1.1 403 Not for you\r\nContent-Length: 0\r\n\r\n" },
		{ "no HTTP", "SSH-2.0-x\r\n\r\n" },
		{ "not yet", "HTTP/1.1 100 Continue\r\n\r\n" },
	};
	struct world *w = *state;
	struct addr proxy;

	with_proxy_that_resolves(w, &proxy);
	rule(w, ONLY_GOOD);
	FOR_ROWS(row, rows) {
		go(w, EVIL, GET("good.com"));
		assert_true(until(w, at_inside));
		must_arrive(w, w->inside.fd, CONNECT("good.com"));
		speak(w->inside.fd, row->says);
		must_arrive(w, w->guest, "HTTP/1.1 502 Bad Gateway\r\n");
		assert_true(leaves(w));
		close(w->inside.fd);
		w->inside.fd = -1;
	}
	go(w, EVIL, GET("good.com"));
	assert_true(until(w, at_inside));
	close(w->inside.fd);
	w->inside.fd = -1;
	must_arrive(w, w->guest, "HTTP/1.1 502 Bad Gateway\r\n");
	assert_int_equal(w->sandbox_egress.counts.tcp_failed, 4);
}

static void a_service_is_not_the_proxys(void **state)
{
	struct world *w = *state;
	struct addr proxy;

	with_proxy(w, &proxy);
	rule(w, "{\"allowInternetAccess\":false,\"services\":[\"db\"]}");
	go(w, INSIDE, "\1\2\3\4");
	assert_true(until(w, at_inside));
	must_arrive(w, w->inside.fd, "\1\2\3\4");
}

static void more_connections_than_may_be_are_refused(void **state)
{
	struct world *w = *state;
	int pair[2];
	struct err err;

	rule(w, "{}");
	for (size_t i = 0; i <= w->house.limits.connections; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		assert_int_equal(front_start(&w->sandbox_egress, pair[1], GOOD, PORT, &err),
				 i < w->house.limits.connections ? 0 : -1);
		close(pair[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bytes_are_counted_at_once_and_no_faster_than_may_be),
		TEST(a_proxy_is_asked_for_the_judged_address),
		TEST(a_name_that_leads_inside_is_not_the_proxys_either),
		TEST(a_proxy_is_not_asked_for_itself),
		TEST(without_a_name_an_address_it_was_given_goes_to_the_proxy),
		TEST(to_its_injector_a_connection_by_the_proxy_has_its_name),
		TEST(a_guest_is_told_true_addresses),
		TEST(a_proxy_that_resolves_is_asked_for_the_name),
		TEST(who_waits_for_a_greeting_goes_by_the_stand_in),
		TEST(a_stand_in_is_worth_its_name_and_no_more),
		TEST(of_two_names_of_a_stand_in_the_allowed_one_is_asked_for),
		TEST(where_the_proxy_is_is_the_operators_to_know),
		TEST(what_a_proxy_refuses_is_told),
		TEST(a_service_is_not_the_proxys),
		TEST(more_connections_than_may_be_are_refused),
		TEST(a_host_with_a_rule_is_handed_over),
		TEST(without_its_injector_such_a_host_is_refused),
		TEST(an_injector_that_ends_takes_its_connections_with_it),
		TEST(a_busy_injector_is_waited_for),
		TEST(a_rule_is_for_the_addresses_of_its_name),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
