/* test_egress_resolver.c - a resolver upstream of our own, on loopback: asked once, heard as far as
 * it answers, and asked again when it does not. */
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "egress/resolver.h"
#include "net/watch.h"

enum { SERVERS = 2, PATIENCE_MS = 20000 };

enum mood { ANSWERS, SILENT, LIES_FIRST, CUTS, FAILS, NO_NAME };

struct upstream {
	struct world *world;
	int udp, tcp, query;
	struct watch udp_ready, tcp_ready, query_ready;
	enum mood mood;
	unsigned int asked, asked_tcp;
};

struct world {
	struct loop *loop;
	struct resolver *resolver;
	struct asker asker;
	struct upstream up[SERVERS];
	struct question_servers servers;
	unsigned int told;
	enum dns_reading reading;
	struct dns_addresses found;
};

/* --- upstream ----------------------------------------------------------------------------- */

/* 1.2.3.<server>, for 60 seconds. */
static size_t answer_to(struct bytes query, unsigned int flags, uint8_t server, uint8_t *out)
{
	static const uint8_t record[] = { 0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 1, 2, 3 };
	size_t n = query.len - DNS_OPT_SIZE;
	bool told = (flags & 0xf) == 0;

	memcpy(out, query.ptr, n);
	out[2] = (uint8_t)(flags >> 8);
	out[3] = (uint8_t)flags;
	out[7] = told;
	out[11] = 0;
	if (!told)
		return n;
	memcpy(out + n, record, sizeof(record));
	out[n + sizeof(record)] = server;
	return n + sizeof(record) + 1;
}

static unsigned int flags_of(enum mood mood)
{
	return mood == CUTS ? 0x8382 : mood == FAILS ? 0x8182 : mood == NO_NAME ? 0x8183 : 0x8180;
}

static void on_udp(struct watch *w, unsigned int events)
{
	struct upstream *u = CONTAINER_OF(w, struct upstream, udp_ready);
	uint8_t in[512], out[600];
	struct sockaddr_in who;
	socklen_t len = sizeof(who);
	ssize_t n = recvfrom(u->udp, in, sizeof(in), 0, (struct sockaddr *)&who, &len);
	size_t size;

	(void)events;
	assert_true(n > 0);
	u->asked++;
	if (u->mood == SILENT)
		return;
	size = answer_to((struct bytes){ in, (size_t)n }, flags_of(u->mood),
			 (uint8_t)(u - u->world->up), out);
	if (u->mood == LIES_FIRST) {
		out[0] ^= 1; /* who guesses the id wrong is not heard */
		out[size - 1] = 66;
		(void)!sendto(u->udp, out, size, 0, (struct sockaddr *)&who, len);
		out[0] ^= 1;
		out[size - 1] = 0;
	}
	assert_int_equal(sendto(u->udp, out, size, 0, (struct sockaddr *)&who, len), size);
}

/* It arrives in one piece: small, and on loopback. */
static void on_tcp_query(struct watch *w, unsigned int events)
{
	struct upstream *u = CONTAINER_OF(w, struct upstream, query_ready);
	uint8_t in[514], out[602];
	ssize_t n = recv(u->query, in, sizeof(in), 0);
	size_t size;

	(void)events;
	assert_true(n > 2);
	u->asked_tcp++;
	size = answer_to((struct bytes){ in + 2, (size_t)n - 2 }, 0x8180,
			 (uint8_t)(u - u->world->up), out + 2);
	out[0] = (uint8_t)(size >> 8);
	out[1] = (uint8_t)size;
	assert_int_equal(send(u->query, out, size + 2, 0), size + 2);
	watch_close(&u->query_ready);
	close(u->query);
}

static void on_tcp(struct watch *w, unsigned int events)
{
	struct upstream *u = CONTAINER_OF(w, struct upstream, tcp_ready);
	struct err err;

	(void)events;
	u->query = accept4(u->tcp, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(watch_open(&u->query_ready, u->world->loop, u->query, WATCH_READ,
				    on_tcp_query, &err),
			 0);
}

/* Both at the same port of 127.0.0.1. */
static void open_upstream(struct world *w, struct upstream *u)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	socklen_t len = sizeof(at);
	struct err err;

	u->world = w;
	u->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	u->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(u->tcp, (struct sockaddr *)&at, len), 0);
	assert_int_equal(getsockname(u->tcp, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(bind(u->udp, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(u->tcp, 8), 0);
	assert_int_equal(watch_open(&u->udp_ready, w->loop, u->udp, WATCH_READ, on_udp, &err), 0);
	assert_int_equal(watch_open(&u->tcp_ready, w->loop, u->tcp, WATCH_READ, on_tcp, &err), 0);
	assert_int_equal(
		addr_ip("127.0.0.1", ntohs(at.sin_port), &w->servers.all[w->servers.n++], &err), 0);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err;

	assert_int_equal(loop_open(&w->loop, &err), 0);
	for (size_t i = 0; i < SERVERS; i++)
		open_upstream(w, &w->up[i]);
	assert_int_equal(resolver_open(&w->resolver, w->loop, &w->servers, &err), 0);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	resolver_close(w->resolver);
	for (size_t i = 0; i < SERVERS; i++) {
		watch_close(&w->up[i].udp_ready);
		watch_close(&w->up[i].tcp_ready);
		close(w->up[i].udp);
		close(w->up[i].tcp);
	}
	loop_free(w->loop);
	free(w);
	return 0;
}

/* --- asking ------------------------------------------------------------------------------- */

struct asked {
	struct lookup lookup;
	struct world *world;
};

static void on_found(struct lookup *l, enum dns_reading reading, const struct dns_addresses *found)
{
	struct world *w = CONTAINER_OF(l, struct asked, lookup)->world;

	w->told++;
	w->reading = reading;
	w->found = *found;
}

static void ask(struct world *w, struct asked *a, const char *name)
{
	struct err err = { 0 };

	a->world = w;
	assert_int_equal(resolver_ask(w->resolver, &a->lookup, &w->asker, name, on_found, &err), 0);
}

static void wait_told(struct world *w, unsigned int n)
{
	uint64_t end = clock_mono_ns() + (uint64_t)PATIENCE_MS * NSEC_PER_MSEC;

	while (w->told < n && clock_mono_ns() < end)
		(void)loop_turn(w->loop);
	assert_int_equal(w->told, n);
}

static void many_who_ask_the_same_are_one_question(void **state)
{
	struct world *w = *state;
	struct asked a[3] = { 0 }, later = { 0 };

	for (size_t i = 0; i < 3; i++)
		ask(w, &a[i], "www.example.com");
	assert_int_equal(w->told, 0); /* from the loop alone */
	wait_told(w, 3);
	assert_int_equal(w->reading, DNS_ANSWERED);
	assert_int_equal(w->found.n, 1);
	assert_int_equal(w->found.ip[0], 0x01020300);
	ask(w, &later, "www.example.com");
	assert_int_equal(w->told, 3);
	wait_told(w, 4);
	assert_int_equal(w->up[0].asked + w->up[1].asked, 1);
	assert_in_range(w->found.ttl_s, 1, 60);
}

static void who_does_not_answer_is_passed_over(void **state)
{
	struct world *w = *state;
	struct asked a = { 0 };

	w->up[0].mood = SILENT;
	ask(w, &a, "a.com");
	wait_told(w, 1);
	assert_int_equal(w->reading, DNS_ANSWERED);
	assert_int_equal(w->found.ip[0], 0x01020301);
}

static void a_wrong_answer_is_not_heard(void **state)
{
	struct world *w = *state;
	struct asked a = { 0 };

	w->up[0].mood = LIES_FIRST;
	ask(w, &a, "a.com");
	wait_told(w, 1);
	assert_int_equal(w->found.ip[0], 0x01020300);
	assert_int_equal(w->up[0].asked, 1);
}

static void what_was_cut_is_asked_for_over_tcp(void **state)
{
	struct world *w = *state;
	struct asked a = { 0 };

	w->up[0].mood = CUTS;
	ask(w, &a, "a.com");
	wait_told(w, 1);
	assert_int_equal(w->reading, DNS_ANSWERED);
	assert_int_equal(w->found.ip[0], 0x01020300);
	assert_int_equal(w->up[0].asked_tcp, 1);
}

static void no_name_is_remembered(void **state)
{
	struct world *w = *state;
	struct asked a = { 0 }, b = { 0 };

	w->up[0].mood = NO_NAME;
	ask(w, &a, "a.com");
	wait_told(w, 1);
	assert_int_equal(w->reading, DNS_NO_NAME);
	ask(w, &b, "a.com");
	wait_told(w, 2);
	assert_int_equal(w->up[0].asked + w->up[1].asked, 1);
}

static void when_all_fail_it_says_so(void **state)
{
	struct world *w = *state;
	struct asked a = { 0 };

	w->up[0].mood = FAILS;
	w->up[1].mood = FAILS;
	ask(w, &a, "a.com");
	wait_told(w, 1);
	assert_int_equal(w->reading, DNS_FAILED);
	assert_int_equal(w->up[0].asked + w->up[1].asked, QUESTION_TRIES);
}

static void who_went_is_not_told(void **state)
{
	struct world *w = *state;
	struct asked a = { 0 }, b = { 0 };

	ask(w, &a, "a.com");
	ask(w, &b, "a.com");
	lookup_cancel(&a.lookup);
	lookup_cancel(&a.lookup);
	wait_told(w, 1);
}

static void names_beyond_the_limit_push_out_old_ones(void **state)
{
	struct world *w = *state;
	struct asked a = { 0 };

	for (unsigned int i = 0; i <= RESOLVER_NAMES_MAX; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n%u.com", i);
		ask(w, &a, name);
		wait_told(w, i + 1);
	}
	ask(w, &a, "n0.com"); /* forgotten: asked for once more */
	wait_told(w, RESOLVER_NAMES_MAX + 2);
	assert_int_equal(w->up[0].asked + w->up[1].asked, RESOLVER_NAMES_MAX + 2);
}

/* What it asked for and has no use for any more counts as well. */
static void one_who_asks_much_takes_nothing_from_others(void **state)
{
	struct world *w = *state;
	struct asked a = { .world = w }, b = { .world = w };
	struct asker other = { 0 };
	struct err err;

	w->up[0].mood = w->up[1].mood = SILENT;
	for (unsigned int i = 0; i < RESOLVER_OF_ONE_MAX; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n%u.com", i);
		ask(w, &a, name);
		lookup_cancel(&a.lookup);
	}
	assert_int_equal(
		resolver_ask(w->resolver, &a.lookup, &w->asker, "more.com", on_found, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	ask(w, &a, "n0.com"); /* is being asked for */
	lookup_cancel(&a.lookup);
	assert_int_equal(resolver_ask(w->resolver, &b.lookup, &other, "more.com", on_found, &err),
			 0);
	w->up[0].mood = w->up[1].mood = ANSWERS;
	wait_told(w, 1);
	assert_int_equal(other.asking, 0);
	resolver_leave(w->resolver, &w->asker);
	assert_int_equal(w->asker.asking, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_who_ask_the_same_are_one_question),
		TEST(who_does_not_answer_is_passed_over),
		TEST(a_wrong_answer_is_not_heard),
		TEST(what_was_cut_is_asked_for_over_tcp),
		TEST(no_name_is_remembered),
		TEST(when_all_fail_it_says_so),
		TEST(who_went_is_not_told),
		TEST(one_who_asks_much_takes_nothing_from_others),
		TEST(names_beyond_the_limit_push_out_old_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
