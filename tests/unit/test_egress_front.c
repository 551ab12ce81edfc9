/* test_egress_front.c - connections of a guest: whom they mean, whether that may be, and bytes. */
#include "tests/unit/egress_world.h"

#include "egress/front_state.h"
#include "egress/host_addresses.h"

static void a_name_decides_and_its_own_address_is_dialled(void **state)
{
	struct world *w = *state;

	rule(w, ONLY_GOOD);
	go(w, EVIL, GET("good.com")); /* the guest's address means nothing */
	assert_true(until(w, at_good));
	assert_false(came(&w->evil));
	must_arrive(w, w->good.fd, GET("good.com"));
	assert_int_equal(send(w->good.fd, "HTTP/1.1 200 OK\r\n", 17, 0), 17);
	must_arrive(w, w->guest, "HTTP/1.1 200 OK\r\n");
}

static void another_name_is_told_why_not(void **state)
{
	struct world *w = *state;

	rule(w, ONLY_GOOD);
	go(w, GOOD, GET("evil.com"));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	assert_true(leaves(w));
	assert_false(came(&w->good));
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, 1);
}

static void without_rules_nobody_gets_out(void **state)
{
	struct world *w = *state;

	go(w, GOOD, "\1\2\3");
	assert_true(until(w, nobody_left));
	assert_false(came(&w->good));
}

static void a_name_that_leads_inside_leads_nowhere(void **state)
{
	struct world *w = *state;

	rule(w, "{}");
	go(w, GOOD, GET("rebound.com"));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	assert_false(came(&w->inside));
}

/* Its public addresses, by name and by number, whatever the rules say; but for a service there. */
static void nobody_is_let_out_to_the_host_itself(void **state)
{
	struct world *w = *state;
	struct err err;

	assert_int_equal(host_addresses_read(&w->ground, &err), 0);
	assert_int_equal(w->ground.n_host, 2);
	rule(w, "{\"network\":{\"allowOut\":[\"good.com\",\"93.184.216.34\"]}}");
	go(w, GOOD, GET("good.com"));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	go(w, GOOD, "\1\2\3");
	assert_true(until(w, nobody_left));
	assert_false(came(&w->good));
	w->ground.services[0].ip = GOOD;
	rule(w, "{\"services\":[\"db\"]}");
	go(w, GOOD, "\1\2\3");
	assert_true(until(w, at_good));
}

/* Greetings to good.com, the second with encrypted_client_hello. */
#define HELLO(all, message, extensions)                                                      \
	"\x16\x03\x01\x00" all "\x01\x00\x00" message "\x03\x03"                             \
	"0123456789abcdef0123456789abcdef"                                                   \
	"\x00\x00\x02\x13\x01\x01\x00\x00" extensions "\x00\x00\x00\x0d\x00\x0b\x00\x00\x08" \
	"good.com"
static const char plain_hello[] = HELLO("\x40", "\x3c", "\x11"),
		  hiding_hello[] = HELLO("\x45", "\x41", "\x16") "\xfe\x0d\x00\x01\x00";

static void say(struct world *w, const char *text, size_t n)
{
	go(w, EVIL, NULL);
	assert_int_equal(send(w->guest, text, n, MSG_NOSIGNAL), n);
}

static void a_greeting_that_hides_a_name_is_refused_where_names_count(void **state)
{
	struct world *w = *state;

	rule(w, ONLY_GOOD);
	say(w, hiding_hello, sizeof(hiding_hello) - 1);
	assert_true(until(w, nobody_left));
	assert_false(came(&w->good));
	say(w, plain_hello, sizeof(plain_hello) - 1);
	assert_true(until(w, at_good));
}

/* The same without a name outside: what is inside may be any at an allowed name's address. */
static const char nameless_hello[] = "\x16\x03\x01\x00\x34\x01\x00\x00\x30\x03\x03"
				     "0123456789abcdef0123456789abcdef"
				     "\x00\x00\x02\x13\x01\x01\x00\x00\x05\xfe\x0d\x00\x01\x00";

static void a_greeting_that_hides_its_only_name_is_refused_too(void **state)
{
	struct world *w = *state;
	struct dns_addresses given = { { GOOD }, 1, 60 };

	rule(w, ONLY_GOOD);
	known_names_add(&w->sandbox_egress.known, "good.com", &given);
	go(w, GOOD, NULL);
	assert_int_equal(send(w->guest, nameless_hello, sizeof(nameless_hello) - 1, MSG_NOSIGNAL),
			 sizeof(nameless_hello) - 1);
	assert_true(until(w, nobody_left));
	assert_false(came(&w->good));
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, 1);
}

static void it_is_refused_when_said_late(void **state)
{
	struct world *w = *state;
	struct dns_addresses given = { { GOOD }, 1, 60 };
	char got;

	rule(w, ONLY_GOOD);
	known_names_add(&w->sandbox_egress.known, "good.com", &given);
	go(w, GOOD, NULL);
	assert_true(until(w, at_good)); /* dialled, for it said nothing */
	assert_int_equal(send(w->guest, nameless_hello, sizeof(nameless_hello) - 1, MSG_NOSIGNAL),
			 sizeof(nameless_hello) - 1);
	assert_true(until(w, nobody_left));
	assert_true(recv(w->good.fd, &got, 1, MSG_DONTWAIT) <= 0);
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, 1);
}

/* A range that is allowed is allowed for whatever is said there. */
static void it_passes_to_a_range_that_is_allowed(void **state)
{
	struct world *w = *state;

	rule(w, "{\"network\":{\"allowOut\":[\"93.184.216.34\"],\"denyOut\":[\"0.0.0.0/0\"]}}");
	go(w, GOOD, NULL);
	assert_int_equal(send(w->guest, nameless_hello, sizeof(nameless_hello) - 1, MSG_NOSIGNAL),
			 sizeof(nameless_hello) - 1);
	assert_true(until(w, at_good));
}

static void it_passes_where_they_do_not(void **state)
{
	struct world *w = *state;

	rule(w, "{}");
	say(w, hiding_hello, sizeof(hiding_hello) - 1);
	assert_true(until(w, at_good));
}

static void a_second_request_for_another_host_is_cut(void **state)
{
	struct world *w = *state;

	rule(w, "{}");
	go(w, GOOD, GET("good.com"));
	assert_true(until(w, at_good));
	assert_int_equal(send(w->guest, GET("also.good.com"), strlen(GET("also.good.com")), 0),
			 strlen(GET("also.good.com")));
	assert_true(until(w, nobody_left));
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, 1);
	close(take_fd(&w->good.fd));
	go(w, GOOD, GET("good.com") GET("also.good.com"));
	assert_true(leaves(w));
	if (came(&w->good)) {
		char got[512];
		ssize_t n = recv(w->good.fd, got, sizeof(got), MSG_DONTWAIT);

		assert_false(n > 0 && memmem(got, (size_t)n, "also", 4));
	}
}

static void an_upgrade_needs_the_servers_word(void **state)
{
	struct world *w = *state;

	rule(w, "{}");
	go(w, GOOD,
	   "GET /ws HTTP/1.1\r\nHost: good.com\r\nConnection: upgrade\r\nUpgrade: "
	   "websocket\r\n\r\n");
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, "GET /ws HTTP/1.1\r\n");
	assert_int_equal(send(w->guest, "early", 5, 0), 5);
	assert_int_equal(send(w->good.fd, "HTTP/1.1 101 Switching Protocols\r\n\r\n", 36, 0), 36);
	must_arrive(w, w->guest, "HTTP/1.1 101 ");
	assert_int_equal(send(w->guest, GET("also.good.com"), strlen(GET("also.good.com")), 0),
			 strlen(GET("also.good.com")));
	{
		char all[512];
		size_t n = 0;
		uint64_t end = clock_mono_ns() + (uint64_t)PATIENCE_MS * NSEC_PER_MSEC;

		while (!memmem(all, n, "early" GET("also.good.com"),
			       5 + strlen(GET("also.good.com"))) &&
		       clock_mono_ns() < end) {
			ssize_t k = recv(w->good.fd, all + n, sizeof(all) - n, MSG_DONTWAIT);

			n += k > 0 ? (size_t)k : 0;
			if (k <= 0)
				(void)loop_turn(w->loop);
		}
		assert_non_null(memmem(all, n, "early", 5));
	}
}

static void who_says_nothing_goes_by_address(void **state)
{
	struct world *w = *state;

	rule(w, "{\"network\":{\"allowOut\":[\"93.184.216.34\"],\"denyOut\":[\"0.0.0.0/0\"]}}");
	go(w, GOOD, NULL);
	assert_true(until(w, at_good));
	assert_int_equal(send(w->good.fd, "SSH-2.0\r\n", 9, 0), 9);
	must_arrive(w, w->guest, "SSH-2.0\r\n");
	go(w, EVIL, NULL);
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, 0);
	while (w->sandbox_egress.counts.tcp_refused == 0)
		(void)loop_turn(w->loop);
	assert_false(came(&w->evil));
}

static void an_address_given_for_an_allowed_name_is_as_good(void **state)
{
	struct world *w = *state;
	struct dns_addresses given = { { GOOD }, 1, 60 };

	rule(w, ONLY_GOOD);
	known_names_add(&w->sandbox_egress.known, "good.com", &given);
	go(w, GOOD, "SSH-2.0-client\r\n");
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, "SSH-2.0-client\r\n");
}

static bool is_silent(struct world *w)
{
	uint64_t known =
		w->sandbox_egress.counts.tcp_allowed + w->sandbox_egress.counts.tcp_refused;

	return known == 0 && at_good(w); /* dialled, and nothing is decided for good */
}

/* Who waits, as clients of SSH do, and then names somebody is taken at his word. */
static void a_name_that_is_said_late_counts_as_well(void **state)
{
	struct world *w = *state;
	struct dns_addresses given = { { GOOD }, 1, 60 };

	rule(w, ONLY_GOOD);
	known_names_add(&w->sandbox_egress.known, "good.com", &given);
	go(w, GOOD, NULL);
	assert_true(until(w, is_silent));
	assert_int_equal(send(w->guest, GET("also.good.com"), strlen(GET("also.good.com")), 0),
			 strlen(GET("also.good.com")));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, 1);
	assert_int_equal(w->sandbox_egress.counts.tcp_allowed, 0);
}

static void a_late_request_goes_where_its_name_is(void **state)
{
	struct world *w = *state;
	struct dns_addresses given = { { EVIL }, 1, 60 };

	rule(w, ONLY_GOOD);
	known_names_add(&w->sandbox_egress.known, "good.com", &given); /* it was there before */
	go(w, EVIL, NULL);
	while (!came(&w->evil))
		(void)loop_turn(w->loop);
	assert_int_equal(send(w->guest, GET("good.com"), strlen(GET("good.com")), 0),
			 strlen(GET("good.com")));
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, GET("good.com"));
	assert_int_equal(recv(w->evil.fd, &given, 1, MSG_DONTWAIT), -1); /* not a byte; a reset */
}

static void new_rules_hold_for_whom_nobody_has_heard_yet(void **state)
{
	struct world *w = *state;
	struct dns_addresses given = { { GOOD }, 1, 60 };

	rule(w, ONLY_GOOD);
	known_names_add(&w->sandbox_egress.known, "good.com", &given);
	go(w, GOOD, NULL);
	assert_true(until(w, is_silent));
	rule(w, "{\"allowInternetAccess\":false}");
	assert_int_equal(w->sandbox_egress.n_fronts, 0);
}

static void a_service_is_reached_by_its_name_and_port(void **state)
{
	struct world *w = *state;

	rule(w, "{\"allowInternetAccess\":false,\"services\":[\"db\"]}");
	go(w, INSIDE, "\1\2\3\4");
	assert_true(until(w, at_inside));
	must_arrive(w, w->inside.fd, "\1\2\3\4");
}

/* Rules that cannot be read leave nobody out, also who waits for the address of his name. */
static void without_rules_a_name_that_is_found_leads_nowhere(void **state)
{
	struct world *w = *state;
	struct err err;

	rule(w, "{}");
	go(w, GOOD, GET("good.com"));
	while (!w->sandbox_egress.fronts->lookup.name)
		(void)loop_turn(w->loop);
	assert_int_equal(sandbox_egress_rule(&w->sandbox_egress, BYTES_LIT("["), &err), -1);
	assert_true(leaves(w));
	assert_false(came(&w->good));
}

/* Nobody has said anything, and yet somebody was dialled. */
static void who_leaves_without_a_word_is_told_of(void **state)
{
	struct world *w = *state;

	rule(w, "{}");
	go(w, GOOD, NULL);
	assert_true(until(w, is_silent));
	close(take_fd(&w->guest));
	assert_true(until(w, nobody_left));
	assert_int_equal(w->sandbox_egress.counts.tcp_allowed, 1);
	assert_int_equal(w->sandbox_egress.audit.n, 1);
}

static void a_server_that_hangs_up_without_a_word_is_told_of(void **state)
{
	struct world *w = *state;

	rule(w, "{}");
	go(w, GOOD, NULL);
	assert_true(until(w, is_silent));
	close(take_fd(&w->good.fd));
	assert_true(leaves(w));
	assert_int_equal(w->sandbox_egress.counts.tcp_allowed, 1);
	assert_int_equal(w->sandbox_egress.audit.n, 1);
}

/* Bytes for the guest, until some of them wait here for it to read. */
static void fill_up(struct world *w)
{
	static const char piece[4096];

	while (stream_queued(w->sandbox_egress.fronts->pump.a.s) == 0) {
		(void)!send(w->good.fd, piece, sizeof(piece), MSG_DONTWAIT | MSG_NOSIGNAL);
		(void)loop_turn(w->loop);
	}
}

static bool both_ended(struct world *w)
{
	const struct front *f = w->sandbox_egress.fronts;

	return !f || (f->pump.a.ended && f->pump.b.ended);
}

static void read_all(struct world *w)
{
	char got[4096];

	while (w->sandbox_egress.fronts)
		if (recv(w->guest, got, sizeof(got), MSG_DONTWAIT) <= 0)
			(void)loop_turn(w->loop);
}

/* Else a guest that reads a little now and then has as many as it likes. */
static void who_has_not_read_all_is_still_counted(void **state)
{
	struct world *w = *state;

	rule(w, "{}");
	go(w, GOOD, "\1\2\3");
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, "\1\2\3");
	fill_up(w);
	assert_int_equal(shutdown(w->good.fd, SHUT_WR), 0);
	assert_int_equal(shutdown(w->guest, SHUT_WR), 0);
	assert_true(until(w, both_ended));
	assert_int_equal(w->sandbox_egress.n_fronts, 1);
	read_all(w);
}

static void who_was_refused_is_counted_until_it_leaves(void **state)
{
	struct world *w = *state;

	rule(w, ONLY_GOOD);
	go(w, GOOD, GET("evil.com"));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	assert_int_equal(w->sandbox_egress.n_fronts, 1);
	assert_true(leaves(w));
}

/* Names that nobody answers for, said on connections that are given up at once. */
static void one_sandbox_does_not_use_up_the_resolver(void **state)
{
	struct world *w = *state;
	struct sandbox_egress other;
	uint64_t failed = 0;
	struct err err;
	char says[64];

	rule(w, "{}");
	watch_set(&w->dns_ready, 0);
	for (int i = 0; i < RESOLVER_ASKING_MAX; i++) {
		snprintf(says, sizeof(says), "GET / HTTP/1.1\r\nHost: n%d.com\r\n\r\n", i);
		go(w, GOOD, says);
		while (!w->sandbox_egress.fronts->lookup.name &&
		       w->sandbox_egress.counts.tcp_failed == failed)
			(void)loop_turn(w->loop);
		failed = w->sandbox_egress.counts.tcp_failed;
		fronts_cut(&w->sandbox_egress);
	}
	sandbox_egress_open(&other, &w->house);
	assert_int_equal(sandbox_egress_rule(&other, BYTES_LIT("{}"), &err), 0);
	{
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
		assert_int_equal(front_start(&other, pair[1], EVIL, PORT, &err), 0);
		assert_true(send(pair[0], GET("good.com"), strlen(GET("good.com")), 0) > 0);
		watch_set(&w->dns_ready, WATCH_READ);
		while (other.counts.tcp_failed == 0 && !came(&w->good))
			(void)loop_turn(w->loop);
		assert_true(w->good.fd >= 0);
		close(pair[0]);
	}
	sandbox_egress_forget(&other);
}

static void the_log_says_no_where_a_service_has_another_port(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(AUDIT_TEXT_MAX);
	struct world *w = *state;
	struct err err;

	w->ground.services[0].port = PORT + 1;
	rule(w, "{\"allowInternetAccess\":false,\"services\":[\"db\"]}");
	go(w, INSIDE, GET("db.hotcell.internal"));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	assert_int_equal(audit_tell(&w->sandbox_egress.audit, &text, &err), 0);
	assert_non_null(memmem(text.ptr, text.len, "\"refused\"", 9));
	assert_non_null(memmem(text.ptr, text.len, "port 8081", 9));
	assert_null(memmem(text.ptr, text.len, "\"allowed\"", 9));
}

static void new_rules_cut_what_they_do_not_allow(void **state)
{
	struct world *w = *state;

	rule(w, "{}");
	go(w, GOOD, GET("good.com"));
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, GET("good.com"));
	rule(w, ONLY_GOOD);
	assert_int_equal(w->sandbox_egress.n_fronts, 1);
	rule(w, "{\"allowInternetAccess\":false}");
	assert_int_equal(w->sandbox_egress.n_fronts, 0);
}

/* --- byte by byte ---------------------------------------------------------------------------- */

static bool is_in_line(struct world *w)
{
	return w->sandbox_egress.share.first;
}

static bool nobody_is_in_line(struct world *w)
{
	return !w->sandbox_egress.share.first;
}

/* The sandbox has had more than its share of this turn, and of some to come. */
static void use_up(struct world *w)
{
	w->sandbox_egress.share.of_turn = -10 * SHARE_OF_TURN;
}

static void who_says_little_at_a_time_waits_for_its_share(void **state)
{
	static const char says[] = GET("good.com");
	struct world *w = *state;

	rule(w, "{}");
	go(w, GOOD, NULL);
	for (size_t i = 0; i + 1 < sizeof(says) - 1; i++) {
		use_up(w);
		assert_int_equal(send(w->guest, says + i, 1, MSG_NOSIGNAL), 1);
		assert_true(until(w, is_in_line));
		assert_true(until(w, nobody_is_in_line));
	}
	use_up(w);
	assert_int_equal(send(w->guest, "\n", 1, MSG_NOSIGNAL), 1);
	assert_true(until(w, at_good)); /* what is owed is the others', it goes on */
	must_arrive(w, w->good.fd, says);
}

static void who_was_refused_and_talks_on_waits_as_well(void **state)
{
	struct world *w = *state;

	rule(w, ONLY_GOOD);
	go(w, GOOD, GET("evil.com"));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	use_up(w);
	assert_int_equal(send(w->guest, "x", 1, MSG_NOSIGNAL), 1);
	assert_true(until(w, is_in_line));
	assert_true(leaves(w));
	assert_false(is_in_line(w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_decides_and_its_own_address_is_dialled),
		TEST(another_name_is_told_why_not),
		TEST(without_rules_nobody_gets_out),
		TEST(a_name_that_leads_inside_leads_nowhere),
		TEST(nobody_is_let_out_to_the_host_itself),
		TEST(a_greeting_that_hides_a_name_is_refused_where_names_count),
		TEST(a_greeting_that_hides_its_only_name_is_refused_too),
		TEST(it_is_refused_when_said_late),
		TEST(it_passes_to_a_range_that_is_allowed),
		TEST(it_passes_where_they_do_not),
		TEST(a_second_request_for_another_host_is_cut),
		TEST(an_upgrade_needs_the_servers_word),
		TEST(who_says_nothing_goes_by_address),
		TEST(an_address_given_for_an_allowed_name_is_as_good),
		TEST(a_name_that_is_said_late_counts_as_well),
		TEST(a_late_request_goes_where_its_name_is),
		TEST(new_rules_hold_for_whom_nobody_has_heard_yet),
		TEST(a_service_is_reached_by_its_name_and_port),
		TEST(without_rules_a_name_that_is_found_leads_nowhere),
		TEST(who_leaves_without_a_word_is_told_of),
		TEST(a_server_that_hangs_up_without_a_word_is_told_of),
		TEST(who_has_not_read_all_is_still_counted),
		TEST(who_was_refused_is_counted_until_it_leaves),
		TEST(the_log_says_no_where_a_service_has_another_port),
		TEST(one_sandbox_does_not_use_up_the_resolver),
		TEST(new_rules_cut_what_they_do_not_allow),
		TEST(who_says_little_at_a_time_waits_for_its_share),
		TEST(who_was_refused_and_talks_on_waits_as_well),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
