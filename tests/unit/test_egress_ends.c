/* test_egress_ends.c - either side of a connection ends, half or whole, in every state it can be
 * in, and says something afterwards: egress, which all sandboxes share, goes on. */
#include "tests/unit/egress_world.h"

#include <errno.h>

#include "egress/front_state.h"

#define WITH_RULE "{\"network\":{\"rules\":{\"good.com\":[]}}}"
#define UPGRADE                                                                           \
	"GET /ws HTTP/1.1\r\nHost: good.com\r\nConnection: upgrade\r\nUpgrade: websocket" \
	"\r\n\r\n"
#define YES   "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
#define NO    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define LATER "HTTP/1.1 100 Continue\r\n\r\n"

/* --- sockets -------------------------------------------------------------------------------- */

/* A guest's connection over TCP, which can be reset, to that address; and what it says first. */
static void enter(struct world *w, uint32_t ip, const char *says)
{
	int door = bound(SOCK_STREAM, 0x7f000001, 0), to = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	struct err err;

	assert_int_equal(listen(door, 1), 0);
	assert_int_equal(getsockname(door, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(to, (struct sockaddr *)&at, len), 0);
	assert_int_equal(front_start(&w->sandbox_egress,
				     accept4(door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), ip,
				     PORT, &err),
			 0);
	close(door);
	w->guest = to;
	if (says)
		assert_int_equal(send(to, says, strlen(says), MSG_NOSIGNAL), strlen(says));
}

static void reset(int *fd)
{
	const struct linger now = { .l_onoff = 1 };

	(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(take_fd(fd));
}

static void on_nothing(struct timer *t)
{
	(void)t;
}

/* What is ready is heard. */
static void turn(struct world *w)
{
	struct timer now;

	for (int i = 0; i < 3; i++) {
		timer_init(&now, w->loop, on_nothing);
		timer_start(&now, 0);
		(void)loop_turn(w->loop);
		timer_stop(&now);
	}
}

/* All of `text`, which is all there was, and then the end. */
static void must_end_with(struct world *w, int fd, const char *text)
{
	uint64_t end = clock_mono_ns() + (uint64_t)PATIENCE_MS * NSEC_PER_MSEC;
	char got[4096] = "";
	size_t n = 0;
	ssize_t k = -1;

	while (k != 0 && clock_mono_ns() < end) {
		k = recv(fd, got + n, sizeof(got) - 1 - n, MSG_DONTWAIT);
		n += k > 0 ? (size_t)k : 0;
		if (k < 0)
			(void)loop_turn(w->loop);
	}
	assert_int_equal(k, 0);
	assert_string_equal(got, text);
}

/* --- an upgrade that waits for the server ----------------------------------------------------- */

/* The guest asks for a protocol, asks for something else behind it, and has ended. */
static void ask_and_end(struct world *w)
{
	rule(w, "{}");
	enter(w, GOOD, UPGRADE GET("good.com"));
	assert_int_equal(shutdown(w->guest, SHUT_WR), 0);
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, UPGRADE);
	turn(w);
}

static void an_ordinary_answer_lets_the_next_request_go_on(void **state)
{
	struct world *w = *state;

	ask_and_end(w);
	assert_int_equal(send(w->good.fd, NO, strlen(NO), 0), strlen(NO));
	must_end_with(w, w->good.fd, GET("good.com"));
	assert_int_equal(send(w->good.fd, NO, strlen(NO), 0), strlen(NO));
	assert_int_equal(shutdown(w->good.fd, SHUT_WR), 0);
	must_end_with(w, w->guest, NO NO);
	assert_true(until(w, nobody_left));
}

static void a_yes_lets_what_follows_go_on(void **state)
{
	struct world *w = *state;

	ask_and_end(w);
	assert_int_equal(send(w->good.fd, LATER YES, strlen(LATER YES), 0), strlen(LATER YES));
	must_end_with(w, w->good.fd, GET("good.com"));
	must_arrive(w, w->guest, LATER YES);
}

/* More than is held here, before the server has said a word. */
static void what_a_guest_says_meanwhile_waits_in_its_socket(void **state)
{
	enum { MUCH = 4 * HTTP_GUARD_HOLD_MAX };
	static char much[MUCH], got[MUCH];
	struct world *w = *state;
	size_t sent = 0, n = 0;

	rule(w, "{}");
	enter(w, GOOD, UPGRADE);
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, UPGRADE);
	memset(much, 'm', sizeof(much));
	for (int i = 0; i < 100; i++) {
		ssize_t k = send(w->guest, much + sent, MUCH - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += k > 0 ? (size_t)k : 0;
		turn(w);
	}
	assert_int_equal(w->sandbox_egress.n_fronts, 1);
	assert_int_equal(send(w->good.fd, YES, strlen(YES), 0), strlen(YES));
	for (int i = 0; i < 10000 && n < MUCH; i++) {
		ssize_t k = send(w->guest, much + sent, MUCH - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += k > 0 ? (size_t)k : 0;
		turn(w);
		k = recv(w->good.fd, got + n, MUCH - n, MSG_DONTWAIT);
		assert_true(k > 0 || (k < 0 && errno == EAGAIN));
		n += k > 0 ? (size_t)k : 0;
	}
	assert_int_equal(n, MUCH);
	assert_memory_equal(got, much, MUCH);
}

/* There will be no answer: nobody waits for one any more. */
static void a_server_that_ends_without_an_answer_is_not_waited_for(void **state)
{
	struct world *w = *state;

	rule(w, "{}");
	enter(w, GOOD, UPGRADE);
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, UPGRADE);
	assert_int_equal(shutdown(w->good.fd, SHUT_WR), 0);
	must_end_with(w, w->guest, "");
	assert_true(leaves(w));
}

/* What was held is looked at like any other request, and told of like any other. */
static void another_host_behind_an_upgrade_is_refused_and_told_of(void **state)
{
	struct world *w = *state;

	rule(w, "{}");
	enter(w, GOOD, UPGRADE GET("also.good.com"));
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, UPGRADE);
	assert_int_equal(send(w->good.fd, NO, strlen(NO), 0), strlen(NO));
	assert_true(until(w, nobody_left));
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, 1);
}

/* --- every state and every two moves -----------------------------------------------------------
 */

static bool is_asked(struct world *w)
{
	return w->sandbox_egress.fronts && w->sandbox_egress.fronts->lookup.name;
}

static bool was_handed(struct world *w)
{
	return w->sandbox_egress.n_handed == 1;
}

static void arrives(struct world *w, const char *says)
{
	enter(w, GOOD, says);
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, says);
}

static void says_nothing(struct world *w)
{
	enter(w, GOOD, NULL);
}

static void half_a_head(struct world *w)
{
	enter(w, GOOD, "GET / HTTP/1.1\r\nHost: goo");
}

static void half_a_greeting(struct world *w)
{
	enter(w, GOOD, "\x16\x03\x01\x01\x40\x01");
}

static void silent(struct world *w)
{
	enter(w, GOOD, NULL);
	timer_start(&w->sandbox_egress.fronts->quiet, 0); /* it was silent long enough */
	assert_true(until(w, at_good));
}

static void silent_and_half_a_head(struct world *w)
{
	silent(w);
	assert_int_equal(send(w->guest, "GET / HTT", 9, 0), 9);
}

static void a_name_is_asked_for(struct world *w)
{
	watch_set(&w->dns_ready, 0);
	enter(w, GOOD, GET("nobody.com"));
	assert_true(until(w, is_asked));
	watch_set(&w->dns_ready, WATCH_READ);
}

static void refused(struct world *w)
{
	enter(w, INSIDE, GET("rebound.com"));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
}

static void another_protocol(struct world *w)
{
	arrives(w, "\1\2\3");
}

static void a_request(struct world *w)
{
	arrives(w, GET("good.com"));
}

static void half_a_body(struct world *w)
{
	arrives(w, "POST / HTTP/1.1\r\nHost: good.com\r\nContent-Length: 100\r\n\r\nhalf");
}

static void half_a_chunk(struct world *w)
{
	arrives(w, "POST / HTTP/1.1\r\nHost: good.com\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nx");
}

static void half_a_second_head(struct world *w)
{
	arrives(w, GET("good.com"));
	assert_int_equal(send(w->guest, "GET / HTT", 9, 0), 9);
}

static void an_upgrade(struct world *w)
{
	arrives(w, UPGRADE);
}

static void an_upgrade_and_more(struct world *w)
{
	arrives(w, UPGRADE);
	assert_int_equal(send(w->guest, GET("good.com"), strlen(GET("good.com")), 0),
			 strlen(GET("good.com")));
}

static void an_upgrade_with_more(struct world *w)
{
	enter(w, GOOD, UPGRADE GET("good.com"));
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, UPGRADE);
}

static void upgraded(struct world *w)
{
	arrives(w, UPGRADE);
	assert_int_equal(send(w->good.fd, YES, strlen(YES), 0), strlen(YES));
	must_arrive(w, w->guest, YES);
}

static void nobody_reads(struct world *w)
{
	static const char piece[4096];

	another_protocol(w);
	for (int i = 0; i < 10000 && stream_queued(w->sandbox_egress.fronts->pump.a.s) == 0; i++) {
		(void)!send(w->good.fd, piece, sizeof(piece), MSG_DONTWAIT | MSG_NOSIGNAL);
		turn(w);
	}
	assert_true(stream_queued(w->sandbox_egress.fronts->pump.a.s) > 0);
}

static bool is_held(struct world *w)
{
	return w->sandbox_egress.fronts->pump.held;
}

static void over_its_rate(struct world *w)
{
	an_upgrade(w);
	w->sandbox_egress.share.bytes_per_s = 1000;
	w->sandbox_egress.share.saved = -1000 * 1000; /* owed, until part_all() */
	assert_int_equal(send(w->good.fd, LATER, strlen(LATER), 0), strlen(LATER));
	assert_true(until(w, is_held));
}

static void at_the_injector(struct world *w)
{
	static int worker = -1;
	int pair[2];
	struct err err;

	if (worker >= 0)
		close(worker);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	worker = pair[0];
	assert_int_equal(sandbox_egress_injector(&w->sandbox_egress, pair[1], &err), 0);
	rule(w, WITH_RULE);
	enter(w, GOOD, GET("good.com"));
	assert_true(until(w, was_handed) && until(w, at_good));
	assert_int_equal(sandbox_egress_injector(&w->sandbox_egress, -1, &err), 0);
}

/* The proxy is at the address GOOD. */
static void with_proxy(struct world *w, const char *says)
{
	static struct addr proxy;
	struct err err;

	assert_int_equal(addr_ip("93.184.216.34", PORT, &proxy, &err), 0);
	w->house.proxy = &proxy;
	enter(w, EVIL, says);
	if (!says)
		timer_start(&w->sandbox_egress.fronts->quiet, 0);
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, "CONNECT ");
	w->house.proxy = NULL;
}

static void the_proxy_is_asked(struct world *w)
{
	with_proxy(w, GET("good.com"));
}

static void the_proxy_is_asked_for_who_is_silent(struct world *w)
{
	with_proxy(w, NULL);
}

static void say(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void guest_shuts(struct world *w)
{
	(void)shutdown(w->guest, SHUT_WR);
}

static void guest_closes(struct world *w)
{
	close(take_fd(&w->guest));
}

static void guest_resets(struct world *w)
{
	reset(&w->guest);
}

static void guest_asks(struct world *w)
{
	say(w->guest, GET("good.com"));
}

static void guest_says(struct world *w)
{
	say(w->guest, "\1\2\3\r\n\r\n");
}

static void server_shuts(struct world *w)
{
	(void)shutdown(w->good.fd, SHUT_WR);
}

static void server_closes(struct world *w)
{
	close(take_fd(&w->good.fd));
}

static void server_resets(struct world *w)
{
	reset(&w->good.fd);
}

static void server_agrees(struct world *w)
{
	say(w->good.fd, YES);
}

static void server_answers(struct world *w)
{
	say(w->good.fd, NO);
}

static void server_says(struct world *w)
{
	say(w->good.fd, "SSH-2.0-x\r\n\r\n");
}

#define ROW(f) { #f, f }
static const struct step {
	const char *name;
	void (*f)(struct world *w);
} states[] = {
	ROW(says_nothing),
	ROW(half_a_head),
	ROW(half_a_greeting),
	ROW(silent),
	ROW(silent_and_half_a_head),
	ROW(a_name_is_asked_for),
	ROW(refused),
	ROW(another_protocol),
	ROW(a_request),
	ROW(half_a_body),
	ROW(half_a_chunk),
	ROW(half_a_second_head),
	ROW(an_upgrade),
	ROW(an_upgrade_and_more),
	ROW(an_upgrade_with_more),
	ROW(upgraded),
	ROW(nobody_reads),
	ROW(over_its_rate),
	ROW(at_the_injector),
	ROW(the_proxy_is_asked),
	ROW(the_proxy_is_asked_for_who_is_silent),
}, moves[] = {
	ROW(guest_shuts),   ROW(guest_closes),  ROW(guest_resets),  ROW(guest_asks),
	ROW(guest_says),    ROW(server_shuts),  ROW(server_closes), ROW(server_resets),
	ROW(server_agrees), ROW(server_answers), ROW(server_says),
};

static void move(struct world *w, const struct step *m)
{
	bool guests = strncmp(m->name, "guest", 5) == 0;

	if ((guests ? w->guest : w->good.fd) >= 0) /* it is still there to do so */
		m->f(w);
}

/* Both are gone: so is all that was kept for them. */
static void part_all(struct world *w)
{
	if (w->guest >= 0)
		reset(&w->guest);
	do
		if (w->good.fd >= 0)
			reset(&w->good.fd);
	while (came(&w->good));
	w->sandbox_egress.share.bytes_per_s = 0;
	w->sandbox_egress.share.saved = 0;
	if (w->sandbox_egress.share.first)
		timer_start(&w->sandbox_egress.share.again, 0);
	assert_true(until(w, nobody_left));
}

static void in_this_order(struct world *w, const struct step *state, const struct step *first,
			  const struct step *then, bool at_once)
{
	rule(w, "{}");
	state->f(w);
	move(w, first);
	if (!at_once)
		turn(w);
	move(w, then);
	turn(w);
	part_all(w);
}

static void nobody_is_kept_and_egress_goes_on(void **state)
{
	struct world *w = *state;

	FOR_ROWS(row, states) {
		for (size_t i = 0; i < COUNT(moves); i++)
			for (size_t k = 0; k < COUNT(moves); k++) {
				in_this_order(w, row, &moves[i], &moves[k], false);
				in_this_order(w, row, &moves[i], &moves[k], true);
			}
		rule(w, "{}");
		arrives(w, GET("good.com"));
		part_all(w);
	}
	assert_int_equal(w->sandbox_egress.n_handed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_ordinary_answer_lets_the_next_request_go_on),
		TEST(a_yes_lets_what_follows_go_on),
		TEST(what_a_guest_says_meanwhile_waits_in_its_socket),
		TEST(a_server_that_ends_without_an_answer_is_not_waited_for),
		TEST(another_host_behind_an_upgrade_is_refused_and_told_of),
		TEST(nobody_is_kept_and_egress_goes_on),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
