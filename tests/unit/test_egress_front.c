/* test_egress_front.c - connections of a guest against a small internet in a network namespace of
 * our own: a resolver and servers at public addresses, on loopback. */
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "egress/front.h"
#include "egress/stand_in.h"
#include "jail/fdmsg.h"
#include "opener/protocol.h"
#include "net/watch.h"

enum { PATIENCE_MS = 20000, PORT = 8080 };

#define GOOD   0x5db8d822 /* 93.184.216.34: good.com and also.good.com */
#define EVIL   0x08080404 /* 8.8.4.4: evil.com */
#define INSIDE 0x0a000001 /* 10.0.0.1: rebound.com */

struct host {
	int listener, fd; /* fd: who connected last, or -1 */
};

struct world {
	struct loop *loop;
	struct resolver *resolver;
	struct policy_ground ground;
	struct house house;
	struct outlet outlet;
	int dns;
	struct watch dns_ready;
	struct host good, evil, inside;
	int guest; /* the guest's end of the connection made last */
};

/* --- the internet --------------------------------------------------------------------------- */

static void add_address(const char *name, uint32_t ip)
{
	struct ifreq r = { 0 };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(ip) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	memcpy(&r.ifr_addr, &a, sizeof(a));
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &r), 0);
	r.ifr_flags = IFF_UP;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	close(fd);
}

static int bound(int type, uint32_t ip, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(ip) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static struct host host_at(uint32_t ip)
{
	struct host h = { bound(SOCK_STREAM, ip, PORT), -1 };

	assert_int_equal(listen(h.listener, 16), 0);
	return h;
}

static uint32_t address_of(const uint8_t *name)
{
	if (strcasecmp((const char *)name, "\4good\3com") == 0 ||
	    strcasecmp((const char *)name, "\4also\4good\3com") == 0)
		return GOOD;
	if (strcasecmp((const char *)name, "\4evil\3com") == 0)
		return EVIL;
	return strcasecmp((const char *)name, "\7rebound\3com") == 0 ? INSIDE : 0;
}

static void on_question(struct watch *w, unsigned int events)
{
	struct world *me = CONTAINER_OF(w, struct world, dns_ready);
	struct dns_addresses a = { .ttl_s = 60 };
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_RESOLVED_MAX);
	uint8_t in[512];
	struct sockaddr_in who;
	socklen_t len = sizeof(who);
	struct dns_query q;
	struct err err;
	ssize_t n = recvfrom(me->dns, in, sizeof(in), 0, (struct sockaddr *)&who, &len);

	(void)events;
	assert_int_equal(dns_read_query((struct bytes){ in, (size_t)n }, &q), DNS_ASKS);
	a.ip[0] = address_of(q.question.ptr);
	a.n = a.ip[0] != 0;
	assert_int_equal(dns_write_answer(&q, &a, &out, &err), 0);
	assert_true(sendto(me->dns, out.ptr, out.len, 0, (struct sockaddr *)&who, len) > 0);
}

/* --- the world ------------------------------------------------------------------------------ */

static int own_network(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNET) < 0) {
		print_message("needs root: a network namespace of its own\n");
		return -1;
	}
	add_address("lo", 0x7f000001);
	add_address("lo:1", GOOD);
	add_address("lo:2", EVIL);
	add_address("lo:3", INSIDE);
	return 0;
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct question_servers servers = { .n = 1 };
	struct err err;

	log_init("test", LOG_ERROR);
	assert_int_equal(loop_open(&w->loop, &err), 0);
	w->good = host_at(GOOD);
	w->evil = host_at(EVIL);
	w->inside = host_at(INSIDE);
	w->dns = bound(SOCK_DGRAM, 0x7f000001, 53);
	assert_int_equal(watch_open(&w->dns_ready, w->loop, w->dns, WATCH_READ, on_question, &err),
			 0);
	assert_int_equal(addr_ip("127.0.0.1", 53, &servers.all[0], &err), 0);
	assert_int_equal(resolver_open(&w->resolver, w->loop, &servers, &err), 0);
	w->ground = (struct policy_ground){ .mode = POLICY_OPEN };
	assert_int_equal(policy_ground_services(&w->ground, BYTES_LIT("db=10.0.0.1:8080"), &err),
			 0);
	w->house = (struct house){ w->loop, w->resolver, &w->ground, { 4, 500, 0 } };
	outlet_open(&w->outlet, &w->house);
	w->guest = -1;
	*state = w;
	return 0;
}

static void host_done(struct host *h)
{
	close(h->listener);
	if (h->fd >= 0)
		close(h->fd);
}

static int tear_down(void **state)
{
	struct world *w = *state;

	outlet_forget(&w->outlet);
	resolver_close(w->resolver);
	policy_ground_done(&w->ground);
	watch_close(&w->dns_ready);
	close(w->dns);
	host_done(&w->good);
	host_done(&w->evil);
	host_done(&w->inside);
	if (w->guest >= 0)
		close(w->guest);
	loop_free(w->loop);
	free(w);
	return 0;
}

static void rule(struct world *w, const char *text)
{
	struct err err;

	if (outlet_rule(&w->outlet, bytes_str(text), &err) < 0)
		fail_msg("%s", err.msg);
}

/* A connection of the guest to that address, and what it says first. */
static void go(struct world *w, uint32_t ip, const char *says)
{
	int pair[2];
	struct err err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
			 0);
	if (w->guest >= 0)
		close(w->guest);
	w->guest = pair[0];
	assert_int_equal(front_start(&w->outlet, pair[1], ip, PORT, &err), 0);
	if (says)
		assert_int_equal(send(w->guest, says, strlen(says), MSG_NOSIGNAL), strlen(says));
}

static bool until(struct world *w, bool (*is)(struct world *w))
{
	uint64_t end = clock_mono_ns() + (uint64_t)PATIENCE_MS * NSEC_PER_MSEC;

	while (!is(w) && clock_mono_ns() < end)
		(void)loop_turn(w->loop);
	return is(w);
}

static bool came(struct host *h)
{
	if (h->fd < 0)
		h->fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	return h->fd >= 0;
}

static bool at_good(struct world *w)
{
	return came(&w->good);
}

static bool at_inside(struct world *w)
{
	return came(&w->inside);
}

static bool nobody_left(struct world *w)
{
	return !w->outlet.fronts;
}

/* What arrived at a socket, all of `n` bytes of it. */
static void must_arrive(struct world *w, int fd, const char *text)
{
	uint64_t end = clock_mono_ns() + (uint64_t)PATIENCE_MS * NSEC_PER_MSEC;
	char got[4096] = "";
	size_t n = 0;

	while (n < strlen(text) && clock_mono_ns() < end) {
		ssize_t k = recv(fd, got + n, sizeof(got) - 1 - n, MSG_DONTWAIT);

		n += k > 0 ? (size_t)k : 0;
		if (k <= 0)
			(void)loop_turn(w->loop);
	}
	assert_memory_equal(got, text, strlen(text));
}

/* --- tests ---------------------------------------------------------------------------------- */

#define GET(host) "GET / HTTP/1.1\r\nHost: " host "\r\n\r\n"
#define ONLY_GOOD "{\"network\":{\"allowOut\":[\"good.com\"],\"denyOut\":[\"0.0.0.0/0\"]}}"

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
	assert_true(until(w, nobody_left));
	assert_false(came(&w->good));
	assert_int_equal(w->outlet.counts.tcp_refused, 1);
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
	go(w, GOOD, GET("good.com") GET("also.good.com"));
	assert_true(until(w, nobody_left));
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
	assert_int_equal(w->outlet.counts.tcp_refused, 0);
	while (w->outlet.counts.tcp_refused == 0)
		(void)loop_turn(w->loop);
	assert_false(came(&w->evil));
}

static void an_address_given_for_an_allowed_name_is_as_good(void **state)
{
	struct world *w = *state;
	struct dns_addresses given = { { GOOD }, 1, 60 };

	rule(w, ONLY_GOOD);
	known_names_add(&w->outlet.known, "good.com", &given);
	go(w, GOOD, "SSH-2.0-client\r\n");
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, "SSH-2.0-client\r\n");
}

static bool is_silent(struct world *w)
{
	uint64_t known = w->outlet.counts.tcp_allowed + w->outlet.counts.tcp_refused;

	return known == 0 && at_good(w); /* dialled, and nothing is decided for good */
}

/* Who waits, as clients of SSH do, and then names somebody is taken at his word. */
static void a_name_that_is_said_late_counts_as_well(void **state)
{
	struct world *w = *state;
	struct dns_addresses given = { { GOOD }, 1, 60 };

	rule(w, ONLY_GOOD);
	known_names_add(&w->outlet.known, "good.com", &given);
	go(w, GOOD, NULL);
	assert_true(until(w, is_silent));
	assert_int_equal(send(w->guest, GET("also.good.com"), strlen(GET("also.good.com")), 0),
			 strlen(GET("also.good.com")));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	assert_int_equal(w->outlet.counts.tcp_refused, 1);
	assert_int_equal(w->outlet.counts.tcp_allowed, 0);
}

static void a_late_request_goes_where_its_name_is(void **state)
{
	struct world *w = *state;
	struct dns_addresses given = { { EVIL }, 1, 60 };

	rule(w, ONLY_GOOD);
	known_names_add(&w->outlet.known, "good.com", &given); /* it was there before */
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
	known_names_add(&w->outlet.known, "good.com", &given);
	go(w, GOOD, NULL);
	assert_true(until(w, is_silent));
	rule(w, "{\"allowInternetAccess\":false}");
	assert_int_equal(w->outlet.n_fronts, 0);
}

static void a_service_is_reached_by_its_name_and_port(void **state)
{
	struct world *w = *state;

	rule(w, "{\"allowInternetAccess\":false,\"services\":[\"db\"]}");
	go(w, INSIDE, "\1\2\3\4");
	assert_true(until(w, at_inside));
	must_arrive(w, w->inside.fd, "\1\2\3\4");
}

static void new_rules_cut_what_they_do_not_allow(void **state)
{
	struct world *w = *state;

	rule(w, "{}");
	go(w, GOOD, GET("good.com"));
	assert_true(until(w, at_good));
	must_arrive(w, w->good.fd, GET("good.com"));
	rule(w, ONLY_GOOD);
	assert_int_equal(w->outlet.n_fronts, 1);
	rule(w, "{\"allowInternetAccess\":false}");
	assert_int_equal(w->outlet.n_fronts, 0);
}

/* --- a host with a rule --------------------------------------------------------------------- */

#define WITH_RULE "{\"network\":{\"rules\":{\"good.com\":[]}}}"

static int with_opener(struct world *w)
{
	int pair[2];
	struct err err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(outlet_opener(&w->outlet, pair[1], &err), 0);
	return pair[0];
}

static bool was_handed(struct world *w)
{
	return w->outlet.n_handed == 1;
}

static bool none_is_handed(struct world *w)
{
	return w->outlet.n_handed == 0;
}

/* What the worker is given: both ends are in `fds`. */
static uint64_t take_handed(int worker, int fds[static OPENER_HAND_FDS], const char *first)
{
	struct {
		struct opener_hand hand;
		char first[4096];
	} got = { 0 };
	size_t len = 0, n = 0;
	struct err err;

	assert_int_equal(fdmsg_recv_some(worker, &got, sizeof(got.hand), sizeof(got), &len, fds,
					 OPENER_HAND_FDS, &n, &err),
			 0);
	assert_int_equal(n, OPENER_HAND_FDS);
	assert_int_equal(got.hand.first_len, len - sizeof(got.hand));
	assert_string_equal(got.first, first);
	assert_string_equal(got.hand.name, "good.com");
	assert_int_equal(got.hand.port, PORT);
	assert_int_equal(got.hand.tls, 0);
	return got.hand.tag;
}

static void a_host_with_a_rule_is_handed_over(void **state)
{
	struct world *w = *state;
	struct opener_over over = { .bytes_out = 10, .bytes_in = 20, .requests = 1 };
	int worker = with_opener(w), fds[OPENER_HAND_FDS];

	rule(w, WITH_RULE);
	go(w, EVIL, GET("good.com")); /* the guest's address means nothing here, either */
	assert_true(until(w, was_handed));
	assert_true(until(w, at_good));
	over.tag = take_handed(worker, fds, GET("good.com"));
	assert_int_equal(write(fds[0], "to the guest", 12), 12);
	must_arrive(w, w->guest, "to the guest");
	assert_int_equal(write(fds[1], "to the server", 13), 13);
	must_arrive(w, w->good.fd, "to the server");
	assert_int_equal(write(worker, &over, sizeof(over)), sizeof(over));
	assert_true(until(w, none_is_handed));
	assert_int_equal(w->outlet.counts.bytes_out, 10);
	assert_int_equal(w->outlet.counts.bytes_in, 20);
	close(fds[0]);
	close(fds[1]);
	close(worker);
}

static void without_its_opener_such_a_host_is_refused(void **state)
{
	struct world *w = *state;
	int worker = with_opener(w);

	rule(w, WITH_RULE);
	close(worker);
	do
		(void)loop_turn(w->loop);
	while (w->outlet.counts.tcp_refused == 0 && (go(w, GOOD, GET("good.com")), true));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	assert_false(came(&w->good));
}

static void an_opener_that_ends_takes_its_connections_with_it(void **state)
{
	struct world *w = *state;
	int worker = with_opener(w);

	rule(w, WITH_RULE);
	go(w, GOOD, GET("good.com"));
	assert_true(until(w, was_handed));
	close(worker);
	assert_true(until(w, none_is_handed));
	must_arrive(w, w->guest, "");
	assert_int_equal(w->outlet.n_fronts, 0);
}

/* A worker that does not read now: those it has no room for wait, and reach it later. */
static void a_busy_opener_is_waited_for(void **state)
{
	enum { MANY = 300 };
	struct world *w = *state;
	int worker = with_opener(w), fds[OPENER_HAND_FDS];
	bool seen[MANY + 1] = { 0 };

	w->house.limits.connections = MANY;
	rule(w, WITH_RULE);
	for (int i = 0; i < MANY; i++) {
		go(w, GOOD, GET("good.com"));
		while (w->outlet.n_handed <= (size_t)i && w->outlet.counts.tcp_failed == 0)
			(void)loop_turn(w->loop);
		assert_true(came(&w->good)); /* its backlog is short */
		close(take_fd(&w->good.fd));
	}
	assert_int_equal(w->outlet.counts.tcp_failed, 0);
	for (int i = 0; i < MANY; i++) {
		uint64_t tag;
		struct pollfd ready = { .fd = worker, .events = POLLIN };

		while (poll(&ready, 1, 0) == 0)
			(void)loop_turn(w->loop);
		tag = take_handed(worker, fds, GET("good.com"));
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
	int worker = with_opener(w);

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
	outlet_forget(&w->outlet);
	rule(w, "{}");
	go(w, GOOD, "\1\2\3");
	assert_true(until(w, at_good));
	assert_int_equal(send(w->good.fd, much, MUCH, 0), MUCH);
	ms = read_for(w, w->guest, MUCH);
	assert_int_equal(w->outlet.counts.bytes_in, MUCH);
	assert_int_equal(w->outlet.counts.bytes_out, 3);
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
	w->ground.proxied = true;
}

static void speak(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

#define CONNECT(to) "CONNECT " to ":8080 HTTP/1.1\r\nHost: " to ":8080\r\n\r\n"

static void a_proxy_is_asked_for_the_name(void **state)
{
	struct world *w = *state;
	struct addr proxy;

	with_proxy(w, &proxy);
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
	assert_int_equal(w->outlet.n_fronts, 1);
	rule(w, "{\"network\":{\"denyOut\":[\"0.0.0.0/0\"]}}");
	assert_int_equal(w->outlet.n_fronts, 0);
}

static void who_waits_for_a_greeting_goes_by_the_stand_in(void **state)
{
	struct world *w = *state;
	struct addr proxy;

	with_proxy(w, &proxy);
	rule(w, ONLY_GOOD);
	go(w, stand_in_for(&w->outlet.known, "good.com"), NULL);
	assert_true(until(w, at_inside));
	must_arrive(w, w->inside.fd, CONNECT("good.com"));
	speak(w->inside.fd, "HTTP/1.0 200 OK\r\n\r\nSSH-2.0-x\r\n");
	must_arrive(w, w->guest, "SSH-2.0-x\r\n");
	speak(w->guest, "SSH-2.0-y\r\n");
	must_arrive(w, w->inside.fd, "SSH-2.0-y\r\n");
	assert_int_equal(w->outlet.counts.bytes_in, 11);
}

static void a_stand_in_is_worth_its_name_and_no_more(void **state)
{
	struct world *w = *state;
	struct addr proxy;
	uint32_t evil;

	with_proxy(w, &proxy);
	rule(w, ONLY_GOOD);
	evil = stand_in_for(&w->outlet.known, "evil.com");
	go(w, evil, "\1\2\3");
	assert_true(until(w, nobody_left));
	go(w, evil + 1, "\1\2\3"); /* nobody's */
	assert_true(until(w, nobody_left));
	go(w, GOOD, "\1\2\3"); /* an address that no rule has */
	assert_true(until(w, nobody_left));
	assert_int_equal(w->outlet.counts.tcp_refused, 3);
	assert_false(came(&w->inside));
	w->ground.proxied = false;
	go(w, stand_in_for(&w->outlet.known, "good.com"), "\1\2\3");
	assert_true(until(w, nobody_left));
	assert_int_equal(w->outlet.counts.tcp_refused, 4);
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

	with_proxy(w, &proxy);
	rule(w, ONLY_GOOD);
	FOR_ROWS(row, rows) {
		go(w, EVIL, GET("good.com"));
		assert_true(until(w, at_inside));
		must_arrive(w, w->inside.fd, CONNECT("good.com"));
		speak(w->inside.fd, row->says);
		must_arrive(w, w->guest, "HTTP/1.1 502 Bad Gateway\r\n");
		assert_true(until(w, nobody_left));
		close(w->inside.fd);
		w->inside.fd = -1;
	}
	go(w, EVIL, GET("good.com"));
	assert_true(until(w, at_inside));
	close(w->inside.fd);
	w->inside.fd = -1;
	must_arrive(w, w->guest, "HTTP/1.1 502 Bad Gateway\r\n");
	assert_int_equal(w->outlet.counts.tcp_failed, 4);
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
		assert_int_equal(front_start(&w->outlet, pair[1], GOOD, PORT, &err),
				 i < w->house.limits.connections ? 0 : -1);
		close(pair[0]);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_decides_and_its_own_address_is_dialled),
		TEST(another_name_is_told_why_not),
		TEST(without_rules_nobody_gets_out),
		TEST(a_name_that_leads_inside_leads_nowhere),
		TEST(a_greeting_that_hides_a_name_is_refused_where_names_count),
		TEST(it_passes_where_they_do_not),
		TEST(a_second_request_for_another_host_is_cut),
		TEST(an_upgrade_needs_the_servers_word),
		TEST(who_says_nothing_goes_by_address),
		TEST(an_address_given_for_an_allowed_name_is_as_good),
		TEST(a_name_that_is_said_late_counts_as_well),
		TEST(a_late_request_goes_where_its_name_is),
		TEST(new_rules_hold_for_whom_nobody_has_heard_yet),
		TEST(a_service_is_reached_by_its_name_and_port),
		TEST(bytes_are_counted_at_once_and_no_faster_than_may_be),
		TEST(a_proxy_is_asked_for_the_name),
		TEST(who_waits_for_a_greeting_goes_by_the_stand_in),
		TEST(a_stand_in_is_worth_its_name_and_no_more),
		TEST(what_a_proxy_refuses_is_told),
		TEST(a_service_is_not_the_proxys),
		TEST(more_connections_than_may_be_are_refused),
		TEST(new_rules_cut_what_they_do_not_allow),
		TEST(a_host_with_a_rule_is_handed_over),
		TEST(without_its_opener_such_a_host_is_refused),
		TEST(an_opener_that_ends_takes_its_connections_with_it),
		TEST(a_busy_opener_is_waited_for),
		TEST(a_rule_is_for_the_addresses_of_its_name),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
