/* egress_world.h - for tests of egress: a small internet in a network namespace of our own, a
 * resolver and servers at public addresses, on loopback; and a guest's connections into it. */
#pragma once

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
#include "egress/fake_ip.h"
#include "base/fdmsg.h"
#include "injector/protocol.h"
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
	struct sandbox_egress sandbox_egress;
	int dns;
	struct watch dns_ready;
	struct host good, evil, inside;
	int guest; /* the guest's end of the connection made last */
};

/* --- the internet --------------------------------------------------------------------------- */

static inline void add_address(const char *name, uint32_t ip)
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

static inline int bound(int type, uint32_t ip, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(ip) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static inline struct host host_at(uint32_t ip)
{
	struct host h = { bound(SOCK_STREAM, ip, PORT), -1 };

	assert_int_equal(listen(h.listener, 16), 0);
	return h;
}

static inline uint32_t address_of(const uint8_t *name)
{
	if (strcasecmp((const char *)name, "\4good\3com") == 0 ||
	    strcasecmp((const char *)name, "\4also\4good\3com") == 0)
		return GOOD;
	if (strcasecmp((const char *)name, "\4evil\3com") == 0)
		return EVIL;
	return strcasecmp((const char *)name, "\7rebound\3com") == 0 ? INSIDE : 0;
}

static inline void on_question(struct watch *w, unsigned int events)
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

static inline int own_network(void **state)
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

static inline int set_up(void **state)
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
	sandbox_egress_open(&w->sandbox_egress, &w->house);
	w->guest = -1;
	*state = w;
	return 0;
}

static inline void host_done(struct host *h)
{
	close(h->listener);
	if (h->fd >= 0)
		close(h->fd);
}

static inline int tear_down(void **state)
{
	struct world *w = *state;

	sandbox_egress_forget(&w->sandbox_egress);
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

static inline void rule(struct world *w, const char *text)
{
	struct err err;

	if (sandbox_egress_rule(&w->sandbox_egress, bytes_str(text), &err) < 0)
		fail_msg("%s", err.msg);
}

/* A connection of the guest to that address, and what it says first. */
static inline void go(struct world *w, uint32_t ip, const char *says)
{
	int pair[2];
	struct err err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
			 0);
	if (w->guest >= 0)
		close(w->guest);
	w->guest = pair[0];
	assert_int_equal(front_start(&w->sandbox_egress, pair[1], ip, PORT, &err), 0);
	if (says)
		assert_int_equal(send(w->guest, says, strlen(says), MSG_NOSIGNAL), strlen(says));
}

static inline void patience_over(struct timer *t)
{
	(void)t;
}

static inline bool until(struct world *w, bool (*is)(struct world *w))
{
	struct timer patience; /* a turn with nothing to do ends with it */

	timer_init(&patience, w->loop, patience_over);
	timer_start(&patience, PATIENCE_MS);
	while (!is(w) && patience.active)
		(void)loop_turn(w->loop);
	timer_stop(&patience);
	return is(w);
}

static inline bool came(struct host *h)
{
	if (h->fd < 0)
		h->fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	return h->fd >= 0;
}

static inline bool at_good(struct world *w)
{
	return came(&w->good);
}

static inline bool at_inside(struct world *w)
{
	return came(&w->inside);
}

static inline bool nobody_left(struct world *w)
{
	return !w->sandbox_egress.fronts;
}

/* The guest is done, and then nobody is left: it is waited for to read why not. */
static inline bool leaves(struct world *w)
{
	assert_int_equal(shutdown(w->guest, SHUT_WR), 0);
	return until(w, nobody_left);
}

/* What arrived at a socket, all of `n` bytes of it. */
static inline void must_arrive(struct world *w, int fd, const char *text)
{
	struct timer patience;
	char got[4096] = "";
	size_t n = 0;

	timer_init(&patience, w->loop, patience_over);
	timer_start(&patience, PATIENCE_MS);
	while (n < strlen(text) && memcmp(got, text, n) == 0 && patience.active) {
		ssize_t k = recv(fd, got + n, sizeof(got) - 1 - n, MSG_DONTWAIT);

		n += k > 0 ? (size_t)k : 0;
		if (k <= 0)
			(void)loop_turn(w->loop);
	}
	timer_stop(&patience);
	assert_memory_equal(got, text, strlen(text));
}

#define GET(host) "GET / HTTP/1.1\r\nHost: " host "\r\n\r\n"
#define ONLY_GOOD "{\"network\":{\"allowOut\":[\"good.com\"],\"denyOut\":[\"0.0.0.0/0\"]}}"

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
