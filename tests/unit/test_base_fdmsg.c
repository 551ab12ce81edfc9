/* test_base_fdmsg.c - messages with descriptors: whole, or refused with nothing left open. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/own.h"
#include "base/fdmsg.h"

struct message {
	char text[16];
};

static int make_pair(void **state)
{
	int *pair = calloc(2, sizeof(int));

	if (!pair ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	*state = pair;
	return 0;
}

static int close_pair(void **state)
{
	int *pair = *state;

	auto_close(&pair[0]);
	auto_close(&pair[1]);
	free(pair);
	return 0;
}

static size_t open_descriptors(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			n++;
	return n;
}

static void a_message_arrives_with_its_descriptors(void **state)
{
	const int *pair = *state;
	const struct message out = { "hello" };
	struct message in = { 0 };
	struct err err = { 0 };
	int given[2] = { 0, 1 }, got[4];
	size_t n = 0;

	assert_int_equal(fdmsg_send(pair[0], &out, sizeof(out), given, 2, &err), 0);
	assert_int_equal(fdmsg_recv(pair[1], &in, sizeof(in), got, 4, &n, &err), 0);
	assert_string_equal(in.text, "hello");
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
		close(got[i]);
	}
}

static void what_is_not_a_message_is_refused_and_closed(void **state)
{
	static const struct {
		const char *name;
		size_t len, n_fds, max_fds;
	} rows[] = {
		{ "too short", 3, 1, 4 },
		{ "too long", 32, 1, 4 },
		{ "too many descriptors", sizeof(struct message), 3, 2 },
		{ "a descriptor where none is expected", sizeof(struct message), 1, 0 },
		{ "far too many", sizeof(struct message), FDMSG_FDS_MAX, 4 },
	};
	const int *pair = *state;
	const int given[FDMSG_FDS_MAX] = { 0 };
	const char bytes[32] = { 0 };

	FOR_ROWS(row, rows) {
		size_t before = open_descriptors(), n = 0;
		struct message in;
		struct err err = { 0 };
		int got[FDMSG_FDS_MAX];

		assert_int_equal(fdmsg_send(pair[0], bytes, row->len, given, row->n_fds, &err), 0);
		assert_int_equal(fdmsg_recv(pair[1], &in, sizeof(in), got, row->max_fds, &n, &err),
				 -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_int_equal(open_descriptors(), before);
	}
}

static void nothing_yet_and_gone_are_told_apart(void **state)
{
	int *pair = *state;
	struct message in;
	struct err err = { 0 };
	size_t n = 0;

	assert_int_equal(fdmsg_recv(pair[1], &in, sizeof(in), NULL, 0, &n, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(err.sys, EAGAIN);
	close(take_fd(&pair[0]));
	assert_int_equal(fdmsg_recv(pair[1], &in, sizeof(in), NULL, 0, &n, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(err.sys, 0);
}

static void a_peer_that_does_not_read_is_an_error_not_a_wait(void **state)
{
	const int *pair = *state;
	const struct message out = { "again" };
	struct err err = { 0 };
	int sent = 0;

	while (sent < 100000 && fdmsg_send(pair[0], &out, sizeof(out), NULL, 0, &err) == 0)
		sent++;
	assert_in_range(sent, 1, 99999);
	assert_int_equal(err.sys, EAGAIN);
}

static void two_pieces_arrive_as_one_message_of_their_length(void **state)
{
	static const struct {
		const char *name;
		struct bytes tail;
		const char *want;
	} rows[] = {
		{ "head and tail", BYTES_LIT(" and tail"), "head and tail" },
		{ "no tail", { 0 }, "head" },
	};
	const int *pair = *state;
	const int given = 0;

	FOR_ROWS(row, rows) {
		char in[32] = "";
		struct err err = { 0 };
		size_t n = 0, len = 0;
		int got = -1;

		assert_int_equal(
			fdmsg_send_pair(pair[0], BYTES_LIT("head"), row->tail, &given, 1, &err), 0);
		assert_int_equal(
			fdmsg_recv_some(pair[1], in, 4, sizeof(in), &len, &got, 1, &n, &err), 0);
		assert_int_equal(len, strlen(row->want));
		assert_string_equal(in, row->want);
		assert_int_equal(n, 1);
		close(got);
	}
}

static void a_message_outside_its_lengths_is_refused_and_closed(void **state)
{
	static const struct {
		const char *name;
		size_t len;
		int rc;
	} rows[] = {
		{ "one short", 3, -1 },    { "shortest", 4, 0 },       { "longest", 8, 0 },
		{ "one too many", 9, -1 }, { "far too many", 32, -1 },
	};
	const int *pair = *state;
	const int given[2] = { 0 };
	const char bytes[32] = { 0 };

	FOR_ROWS(row, rows) {
		size_t before = open_descriptors(), n = 0, len = 0;
		struct err err = { 0 };
		char in[8];
		int got[2];

		assert_int_equal(fdmsg_send(pair[0], bytes, row->len, given, 2, &err), 0);
		assert_int_equal(fdmsg_recv_some(pair[1], in, 4, 8, &len, got, 2, &n, &err),
				 row->rc);
		assert_int_equal(n, row->rc == 0 ? 2 : 0);
		while (n > 0)
			close(got[--n]);
		assert_int_equal(open_descriptors(), before);
		if (row->rc < 0)
			assert_int_equal(err.code, ERR_INVALID);
	}
}

/* The bytes survive, so that who waits for the answer can be told. */
static void no_room_for_descriptors_is_told_apart(void **state)
{
	const int *pair = *state;
	const int given[3] = { 0 };
	struct rlimit before, tight;
	size_t open = open_descriptors(), n = 0, len = 0;
	struct err err = { 0 };
	char in[8] = "";
	int got[4], rc, highest = dup(0);

	close(highest);
	assert_int_equal(fdmsg_send(pair[0], "hello", 5, given, 3, &err), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	tight = before;
	tight.rlim_cur = (rlim_t)highest + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	rc = fdmsg_recv_some(pair[1], in, 1, sizeof(in), &len, got, 4, &n, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rc, -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	assert_int_equal(len, 5);
	assert_string_equal(in, "hello");
	assert_int_equal(open_descriptors(), open);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_message_arrives_with_its_descriptors, make_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(what_is_not_a_message_is_refused_and_closed,
						make_pair, close_pair),
		cmocka_unit_test_setup_teardown(nothing_yet_and_gone_are_told_apart, make_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(a_peer_that_does_not_read_is_an_error_not_a_wait,
						make_pair, close_pair),
		cmocka_unit_test_setup_teardown(two_pieces_arrive_as_one_message_of_their_length,
						make_pair, close_pair),
		cmocka_unit_test_setup_teardown(a_message_outside_its_lengths_is_refused_and_closed,
						make_pair, close_pair),
		cmocka_unit_test_setup_teardown(no_room_for_descriptors_is_told_apart, make_pair,
						close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
