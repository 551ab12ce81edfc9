/* test_net_listen.c - doors and those who knock: limits, shortages, deadlines, foreign sockets. */
#include "tests/unit/test_net_layers.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "net/dial.h"
#include "net/listen.h"

enum { GUESTS_MAX = 16, DIAL_MS = 5000 };

struct house { /* keeps whoever comes in */
	struct listener door;
	struct stream *guest[GUESTS_MAX];
	size_t n;
	struct addr last;
	bool close_door;
};

static void on_accept(struct listener *ln, struct stream *s, const struct addr *peer)
{
	struct house *h = CONTAINER_OF(ln, struct house, door);

	assert_true(h->n < GUESTS_MAX);
	h->guest[h->n++] = s;
	h->last = *peer;
	if (h->close_door)
		listener_close(ln);
}

static const struct listener_ops house_ops = { on_accept };

static void house_open(struct house *h, struct loop *l, const char *at, size_t limit)
{
	struct addr a;
	struct err err = { 0 };

	*h = (struct house){ 0 };
	if (addr_parse(bytes_str(at), &a, &err) < 0 ||
	    listener_open(&h->door, l, &house_ops, &a, 0600, limit, &err) < 0)
		fail_msg("%s", err.msg);
}

static void house_close(struct house *h)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->guest[i])
			stream_abort(h->guest[i]);
	listener_close(&h->door);
}

struct knock {
	struct dial dial;
	struct stream *s;
	int dones;
	struct err why;
};

static void on_done(struct dial *d, struct stream *s, const struct err *err)
{
	struct knock *k = CONTAINER_OF(d, struct knock, dial);

	k->dones++;
	k->s = s;
	if (err)
		k->why = *err;
	assert_true((s == NULL) == (err != NULL));
}

static void knock_at(struct knock *k, struct loop *l, const struct addr *to, uint64_t ms)
{
	struct err err = { 0 };

	*k = (struct knock){ 0 };
	if (dial_start(&k->dial, l, to, ms, on_done, &err) < 0)
		fail_msg("%s", err.msg);
}

static void socket_path(char *ret, size_t size)
{
	const char *dir = getenv("TMPDIR");

	(void)snprintf(ret, size, "%s/net-test-%d.sock", dir ? dir : "/tmp", (int)getpid());
}

static void clients_come_in_by_tcp_and_by_path(void **state)
{
	char path[100], at[120];
	const struct {
		const char *name, *at;
	} rows[] = { { "tcp", "127.0.0.1:0" }, { "tcp6", "[::1]:0" }, { "unix", at } };

	(void)state;
	socket_path(path, sizeof(path));
	(void)snprintf(at, sizeof(at), "unix:%s", path);
	FOR_ROWS(row, rows) {
		struct loop *l = test_loop();
		struct house h;
		struct knock k;
		struct addr real;
		struct ear e;
		struct err err;

		house_open(&h, l, row->at, 4);
		listener_addr(&h.door, &real);
		if (real.at.ss_family != AF_UNIX)
			assert_true(addr_port(&real) > 0);
		knock_at(&k, l, &real, DIAL_MS);
		assert_int_equal(k.dones, 0); /* never from inside the call */
		RUN_UNTIL(l, k.dones == 1 && h.n == 1);
		assert_non_null(k.s);
		assert_int_equal(listener_alive(&h.door), 1);
		assert_int_equal(h.last.at.ss_family, real.at.ss_family);
		ear_init(&e, k.s);
		stream_read(k.s, true);
		assert_int_equal(stream_write(h.guest[0], BYTES_LIT("welcome"), &err), 0);
		RUN_UNTIL(l, e.got.len == 7);
		ear_done(&e);
		house_close(&h);
		loop_free(l);
	}
}

static void a_path_has_its_mode_and_goes_with_the_door(void **state)
{
	struct loop *l = test_loop();
	struct house h, second = { 0 };
	struct stat st;
	char path[100], at[120];
	struct addr a;
	struct err err = { 0 };
	int stale;

	(void)state;
	socket_path(path, sizeof(path));
	(void)snprintf(at, sizeof(at), "unix:%s", path);
	assert_int_equal(addr_unix(path, &a, &err), 0);

	/* left behind by one that died */
	stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(stale, (struct sockaddr *)&a.at, a.len), 0);
	close(stale);

	house_open(&h, l, at, 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* but not from one that lives */
	assert_int_equal(listener_open(&second.door, l, &house_ops, &a, 0600, 1, &err), -1);
	assert_int_equal(err.sys, EADDRINUSE);
	house_close(&h);
	assert_int_equal(stat(path, &st), -1);
	loop_free(l);
}

static void the_limit_keeps_clients_waiting_outside(void **state)
{
	struct loop *l = test_loop();
	struct house h;
	struct knock k[4];
	struct addr at;
	int connected = 0;

	(void)state;
	house_open(&h, l, "127.0.0.1:0", 2);
	listener_addr(&h.door, &at);
	for (size_t i = 0; i < 4; i++)
		knock_at(&k[i], l, &at, DIAL_MS);
	RUN_UNTIL(l, (connected = k[0].dones + k[1].dones + k[2].dones + k[3].dones) == 4);
	RUN_UNTIL(l, h.n == 2);
	for (int i = 0; i < 5; i++) { /* it does not ask again and again either */
		struct timer t;

		timer_init(&t, l, patience_over);
		timer_start(&t, 1);
		(void)loop_turn(l);
		timer_stop(&t);
	}
	assert_int_equal(h.n, 2);
	assert_int_equal(listener_alive(&h.door), 2);
	stream_abort(h.guest[0]);
	h.guest[0] = NULL;
	RUN_UNTIL(l, h.n == 3);
	listener_pause(&h.door, true);
	stream_abort(h.guest[1]);
	h.guest[1] = NULL;
	assert_int_equal(listener_alive(&h.door), 1);
	listener_pause(&h.door, false);
	RUN_UNTIL(l, h.n == 4);
	for (size_t i = 0; i < 4; i++)
		stream_abort(k[i].s);
	house_close(&h);
	loop_free(l);
}

/* Two of an address; those of this host may be any number, if the door says so. */
static void an_address_has_a_share_of_the_door(void **state)
{
	enum { SHARE = 2, COME = 4 };
	struct err err = { 0 };
	struct knock k[COME];
	struct house h;
	struct addr at;
	struct loop *l;

	(void)state;
	for (int but_local = 0; but_local <= 1; but_local++) {
		l = test_loop();
		house_open(&h, l, "127.0.0.1:0", COME);
		assert_int_equal(listener_limit_address(&h.door, SHARE, but_local, &err), 0);
		listener_addr(&h.door, &at);
		for (size_t i = 0; i < COME; i++) {
			knock_at(&k[i], l, &at, 1000);
			RUN_UNTIL(l,
				  k[i].dones == 1 && (h.n > i || listener_alive(&h.door) == h.n));
		}
		RUN_UNTIL(l, h.n == (but_local ? COME : SHARE) && listener_alive(&h.door) == h.n);
		for (size_t i = 0; i < COME; i++)
			if (k[i].s) /* else it was reset before it knew that it had come */
				stream_abort(k[i].s);
		house_close(&h);
		loop_free(l);
	}
}

static void who_counts_as_one_address(void **state)
{
	static const struct {
		const char *a, *b;
		bool same, local;
	} rows[] = {
		{ "192.0.2.1:1", "192.0.2.1:2", true, false },
		{ "192.0.2.1:1", "192.0.2.2:1", false, false },
		{ "[::ffff:192.0.2.1]:1", "192.0.2.1:2", true, false },
		{ "[2001:db8::1]:1", "[2001:db8::2:1]:1", true, false },
		{ "[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false, false },
		{ "127.0.0.1:1", "127.0.0.2:1", false, true },
		{ "[::1]:1", "[::1]:2", true, true },
		{ "[::ffff:127.0.0.1]:1", "127.0.0.1:1", true, true },
		{ "unix:/a", "unix:/b", true, true },
	};
	uint8_t key[2][ADDR_KEY];
	struct err err = { 0 };
	struct addr a, b;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(addr_parse(bytes_str(rows[i].a), &a, &err), 0);
		assert_int_equal(addr_parse(bytes_str(rows[i].b), &b, &err), 0);
		addr_key(&a, key[0]);
		addr_key(&b, key[1]);
		assert_int_equal(memcmp(key[0], key[1], ADDR_KEY) == 0, rows[i].same);
		assert_int_equal(addr_is_local(&a), rows[i].local);
	}
}

static void a_door_may_close_in_its_callback_and_leave_guests(void **state)
{
	struct loop *l = test_loop();
	struct house h;
	struct knock k;
	struct addr at;

	(void)state;
	house_open(&h, l, "127.0.0.1:0", 2);
	h.close_door = true;
	listener_addr(&h.door, &at);
	knock_at(&k, l, &at, DIAL_MS);
	RUN_UNTIL(l, h.n == 1 && k.dones == 1);
	listener_close(&h.door); /* again: nothing */
	stream_close(k.s);
	stream_close(h.guest[0]);
	loop_run(l); /* both part well, and nothing is left */
	loop_free(l);
}

/* Without descriptors accept() fails again and again, and the socket stays readable: a careless
 * loop would spin. */
static void without_descriptors_a_door_rests(void **state)
{
	struct rlimit old, low;
	struct loop *l = test_loop();
	struct house h;
	struct knock k;
	struct addr at;
	int probe, turns = 0;

	(void)state;
	house_open(&h, l, "127.0.0.1:0", 4);
	listener_addr(&h.door, &at);
	knock_at(&k, l, &at, DIAL_MS);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	probe = dup(0);
	assert_true(probe >= 0);
	close(probe);
	low = old;
	low.rlim_cur = (rlim_t)probe;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	{
		uint64_t until = loop_now_ms(l) + 3ull * LISTEN_RETRY_MS;

		while (loop_now_ms(l) < until) {
			assert_true(loop_turn(l));
			turns++;
		}
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(h.n, 0);
	assert_true(turns < 20);
	RUN_UNTIL(l, h.n == 1 && k.dones == 1);
	stream_abort(k.s);
	house_close(&h);
	loop_free(l);
}

static void an_inherited_socket_is_a_door(void **state)
{
	struct loop *l = test_loop();
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct house h = { 0 };
	struct knock k;
	struct addr real;
	struct err err = { 0 };

	(void)state;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listener_open_fd(&h.door, l, &house_ops, dup(fd), 4, &err), -1);
	assert_int_equal(err.code, ERR_INVALID); /* it does not listen yet */
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(listener_open_fd(&h.door, l, &house_ops, fd, 4, &err), 0);
	listener_addr(&h.door, &real);
	knock_at(&k, l, &real, DIAL_MS);
	RUN_UNTIL(l, h.n == 1 && k.dones == 1);
	stream_abort(k.s);
	house_close(&h);
	loop_free(l);
}

static void nobody_at_home_is_an_error(void **state)
{
	char path[100];
	struct addr to[2];
	struct err err = { 0 };
	struct loop *l = test_loop();
	struct knock k;
	int fd[2];

	(void)state;
	tcp_pair(fd); /* a port that is surely taken by somebody who does not listen */
	to[0].len = sizeof(to[0].at);
	assert_int_equal(getsockname(fd[0], (struct sockaddr *)&to[0].at, &to[0].len), 0);
	socket_path(path, sizeof(path));
	assert_int_equal(addr_unix(path, &to[1], &err), 0);
	for (size_t i = 0; i < 2; i++) {
		knock_at(&k, l, &to[i], DIAL_MS);
		RUN_UNTIL(l, k.dones == 1);
		assert_null(k.s);
		assert_int_equal(k.why.code, ERR_UNAVAILABLE);
		assert_int_equal(k.why.sys, i == 0 ? ECONNREFUSED : ENOENT);
	}
	close(fd[0]);
	close(fd[1]);
	loop_free(l);
}

/* A listening socket whose backlog is full lets nobody in: TCP drops the SYN, a unix socket says
 * "not now". Either way the deadline ends it. */
static void a_deadline_ends_the_wait(void **state)
{
	static const struct {
		const char *name;
		int family;
	} rows[] = { { "tcp", AF_INET }, { "unix", AF_UNIX } };
	char path[100];

	(void)state;
	socket_path(path, sizeof(path));
	FOR_ROWS(row, rows) {
		int full = socket(row->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct loop *l = test_loop();
		struct knock k[8], last;
		struct addr at;
		struct err err;
		uint64_t start;

		if (row->family == AF_INET)
			assert_int_equal(addr_ip("127.0.0.1", 0, &at, &err), 0);
		else
			assert_int_equal(addr_unix(path, &at, &err), 0);
		assert_int_equal(bind(full, (struct sockaddr *)&at.at, at.len), 0);
		assert_int_equal(listen(full, 0), 0);
		at.len = sizeof(at.at);
		assert_int_equal(getsockname(full, (struct sockaddr *)&at.at, &at.len), 0);
		for (size_t i = 0; i < 8; i++)
			knock_at(&k[i], l, &at, 60000);
		RUN_UNTIL(l, k[0].dones == 1);
		knock_at(&last, l, &at, 50);
		start = loop_now_ms(l);
		RUN_UNTIL(l, last.dones == 1);
		assert_null(last.s);
		assert_int_equal(last.why.code, ERR_TIMEOUT);
		assert_true(loop_now_ms(l) - start >= 45);
		for (size_t i = 0; i < 8; i++) {
			dial_cancel(&k[i].dial);
			if (k[i].s)
				stream_abort(k[i].s);
		}
		close(full);
		if (row->family == AF_UNIX)
			(void)unlink(path);
		loop_free(l);
	}
}

static void a_foreign_socket_is_connected_as_it_is(void **state)
{
	struct loop *l = test_loop();
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in mine = { .sin_family = AF_INET };
	socklen_t len = sizeof(mine);
	struct house h;
	struct knock k = { 0 };
	struct addr at;
	struct err err;

	(void)state;
	mine.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&mine, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&mine, &len), 0);
	house_open(&h, l, "127.0.0.1:0", 4);
	listener_addr(&h.door, &at);
	assert_int_equal(dial_start_fd(&k.dial, l, fd, &at, DIAL_MS, on_done, &err), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	RUN_UNTIL(l, k.dones == 1 && h.n == 1);
	assert_non_null(k.s);
	assert_int_equal(addr_port(&h.last), ntohs(mine.sin_port)); /* that very socket */
	stream_abort(k.s);

	/* one that cannot be: closed all the same */
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(dial_start_fd(&k.dial, l, fd, &at, DIAL_MS, on_done, &err), -1);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	house_close(&h);
	loop_free(l);
}

static void a_cancelled_dial_is_silent(void **state)
{
	struct loop *l = test_loop();
	struct house h;
	struct knock k;
	struct addr at;

	(void)state;
	house_open(&h, l, "127.0.0.1:0", 4);
	listener_addr(&h.door, &at);
	knock_at(&k, l, &at, DIAL_MS);
	dial_cancel(&k.dial);
	dial_cancel(&k.dial);
	house_close(&h);
	loop_run(l);
	assert_int_equal(k.dones, 0);
	loop_free(l);
}

/* One more descriptor of the socket that listens there, as another process would have. */
static int listens_too(const struct addr *at)
{
	for (int i = 0; i < 64; i++) {
		struct sockaddr_storage here;
		socklen_t len = sizeof(here), on_len = sizeof(int);
		int on = 0;

		if (getsockopt(i, SOL_SOCKET, SO_ACCEPTCONN, &on, &on_len) == 0 && on &&
		    getsockname(i, (struct sockaddr *)&here, &len) == 0 && len == at->len &&
		    memcmp(&here, &at->at, len) == 0)
			return dup(i);
	}
	fail_msg("nobody listens there");
	return -1;
}

/* As of an old and a new process. */
static void a_stopped_door_leaves_the_socket_to_others(void **state)
{
	struct loop *l = test_loop();
	struct house old, young;
	struct knock k[3];
	struct addr at;
	struct err err = { 0 };

	(void)state;
	house_open(&old, l, "127.0.0.1:0", 4);
	listener_addr(&old.door, &at);
	young = (struct house){ 0 };
	assert_int_equal(listener_open_fd(&young.door, l, &house_ops, listens_too(&at), 4, &err),
			 0);
	knock_at(&k[0], l, &at, DIAL_MS);
	RUN_UNTIL(l, k[0].dones == 1 && old.n + young.n == 1);
	listener_pause(&young.door, true);
	knock_at(&k[1], l, &at, DIAL_MS);
	RUN_UNTIL(l, old.n > 0 && old.n + young.n == 2);
	listener_stop(&old.door);
	listener_stop(&old.door); /* a second time */
	assert_int_equal(listener_alive(&old.door), old.n);
	knock_at(&k[2], l, &at, DIAL_MS);
	RUN_UNTIL(l, k[2].dones == 1);
	assert_non_null(k[2].s); /* not refused: it waits */
	assert_int_equal(old.n + young.n, 2);
	listener_pause(&young.door, false);
	RUN_UNTIL(l, old.n + young.n == 3);
	assert_true(young.n > 0);
	stream_abort(TAKE(old.guest[0])); /* and still counts down */
	RUN_UNTIL(l, listener_alive(&old.door) == old.n - 1);
	for (size_t i = 0; i < COUNT(k); i++)
		stream_abort(k[i].s);
	house_close(&old);
	house_close(&young);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_come_in_by_tcp_and_by_path),
		cmocka_unit_test(a_path_has_its_mode_and_goes_with_the_door),
		cmocka_unit_test(the_limit_keeps_clients_waiting_outside),
		cmocka_unit_test(an_address_has_a_share_of_the_door),
		cmocka_unit_test(who_counts_as_one_address),
		cmocka_unit_test(a_door_may_close_in_its_callback_and_leave_guests),
		cmocka_unit_test(without_descriptors_a_door_rests),
		cmocka_unit_test(an_inherited_socket_is_a_door),
		cmocka_unit_test(nobody_at_home_is_an_error),
		cmocka_unit_test(a_deadline_ends_the_wait),
		cmocka_unit_test(a_foreign_socket_is_connected_as_it_is),
		cmocka_unit_test(a_cancelled_dial_is_silent),
		cmocka_unit_test(a_stopped_door_leaves_the_socket_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
