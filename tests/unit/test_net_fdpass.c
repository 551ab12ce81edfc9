/* test_net_fdpass.c - descriptors in messages: all that arrive are owned, none leaks. */
#include "tests/unit/test_net_layers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "net/fdpass.h"

enum { SIZE = 24 };

static void seq_pair(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
}

static size_t open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

static void descriptors_arrive_with_their_message(void **state)
{
	static const struct {
		const char *name;
		size_t n;
	} rows[] = { { "none", 0 }, { "one", 1 }, { "most", FDPASS_FDS_MAX } };
	size_t before = open_fds();

	(void)state;
	FOR_ROWS(row, rows) {
		uint8_t in[SIZE] = { 0 };
		int sock[2], give[FDPASS_FDS_MAX], p[2];
		struct fd_pack got;
		struct err err = { 0 };

		seq_pair(sock);
		assert_int_equal(pipe2(p, O_CLOEXEC), 0);
		for (size_t i = 0; i < FDPASS_FDS_MAX; i++)
			give[i] = p[i % 2];
		assert_int_equal(fdpass_send(sock[0], BYTES_LIT("exactly twenty-four byte"), give,
					     row->n, &err),
				 FDPASS_OK);
		assert_int_equal(fdpass_recv(sock[1], in, SIZE, FDPASS_FDS_MAX, &got, &err),
				 FDPASS_OK);
		assert_memory_equal(in, "exactly twenty-four byte", SIZE);
		assert_int_equal(got.n, row->n);
		for (size_t i = 0; i < got.n; i++) {
			assert_true(same_file(got.fd[i], p[i % 2]));
			assert_true(fcntl(got.fd[i], F_GETFD) & FD_CLOEXEC);
		}
		assert_int_equal(fdpass_recv(sock[1], in, SIZE, 1, &(struct fd_pack){ 0 }, &err),
				 FDPASS_AGAIN);
		fd_pack_done(&got);
		close(p[0]);
		close(p[1]);
		close(sock[0]);
		assert_int_equal(fdpass_recv(sock[1], in, SIZE, 1, &got, &err), FDPASS_END);
		close(sock[1]);
	}
	assert_int_equal(open_fds(), before);
}

/* What the library itself would never send. */
static void send_raw(int sock, size_t bytes, size_t n_fds)
{
	enum { MOST = 250 };
	uint8_t data[SIZE * 4] = { 0 };
	union {
		struct cmsghdr align;
		uint8_t room[CMSG_SPACE(MOST * sizeof(int))];
	} c = { 0 };
	struct iovec iov = { data, bytes };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[MOST];

	for (size_t i = 0; i < MOST; i++)
		fds[i] = STDERR_FILENO;
	if (n_fds > 0) {
		m.msg_control = c.room;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						       .cmsg_type = SCM_RIGHTS,
						       .cmsg_len = CMSG_LEN(n_fds * sizeof(int)) };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds, n_fds * sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &m, 0), bytes);
}

static void broken_messages_are_refused_and_leave_nothing_open(void **state)
{
	static const struct {
		const char *name;
		size_t bytes, fds, max_fds;
		const char *why;
	} rows[] = {
		{ "too short", SIZE - 1, 1, 4, "message is not of 24 bytes" },
		{ "too long", SIZE + 1, 1, 4, "message is not of 24 bytes" },
		{ "empty with a descriptor", 0, 1, 4, "message is not of 24 bytes" },
		{ "one too many", SIZE, 5, 4, "5 descriptors, limit is 4" },
		{ "unwanted", SIZE, 1, 0, "1 descriptors, limit is 0" },
		{ "more than fit", SIZE, 250, 4, "descriptors were cut off" },
		{ "one more than fits", SIZE, FDPASS_FDS_MAX + 1, FDPASS_FDS_MAX,
		  "descriptors were cut off" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		size_t before = open_fds();
		uint8_t in[SIZE];
		struct fd_pack got;
		struct err err = { 0 };
		int sock[2];

		seq_pair(sock);
		send_raw(sock[0], row->bytes, row->fds);
		assert_int_equal(fdpass_recv(sock[1], in, SIZE, row->max_fds, &got, &err),
				 FDPASS_BAD);
		assert_string_equal(err.msg, row->why);
		assert_int_equal(got.n, 0);
		close(sock[0]);
		close(sock[1]);
		assert_int_equal(open_fds(), before);
	}
}

static void a_full_socket_says_not_now(void **state)
{
	int sock[2], n = 0;
	struct err err;
	enum fdpass rc;

	(void)state;
	seq_pair(sock);
	while ((rc = fdpass_send(sock[0], BYTES_LIT("message"), NULL, 0, &err)) == FDPASS_OK)
		n++;
	assert_int_equal(rc, FDPASS_AGAIN);
	assert_true(n > 0);
	close(sock[1]);
	assert_int_equal(fdpass_send(sock[0], BYTES_LIT("message"), NULL, 0, &err), FDPASS_BAD);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	close(sock[0]);
}

struct inbox {
	struct fd_reader reader;
	int messages, ends, kept, leave_at;
	struct err why;
	bool broke;
};

static void on_message(struct fd_reader *r, struct bytes msg, struct fd_pack *fds)
{
	struct inbox *b = CONTAINER_OF(r, struct inbox, reader);

	assert_int_equal(msg.len, SIZE);
	b->messages++;
	if (b->kept < 0 && fds->n > 0)
		b->kept = take_fd(&fds->fd[0]); /* the others are closed for us */
	if (b->messages == b->leave_at)
		fd_reader_close(r);
}

static void on_reader_end(struct fd_reader *r, const struct err *err)
{
	struct inbox *b = CONTAINER_OF(r, struct inbox, reader);

	b->ends++;
	b->broke = err != NULL;
	if (err)
		b->why = *err;
}

static void a_reader_gets_every_message_and_then_the_end(void **state)
{
	static const struct fd_reader_ops ops = { on_message, on_reader_end };
	static const struct {
		const char *name;
		size_t last_bytes;
		int leave_at;
		int want_messages, want_ends;
		bool want_broke;
	} rows[] = {
		{ "closed", 0, 0, 5, 1, false },
		{ "broken", 7, 0, 5, 1, true },
		{ "left by its owner", 0, 3, 3, 0, false },
	};

	(void)state;
	loop_free(test_loop()); /* libuv keeps two descriptors from its first loop on */
	FOR_ROWS(row, rows) {
		size_t before = open_fds();
		struct loop *l = test_loop();
		struct inbox b = { .kept = -1, .leave_at = row->leave_at };
		struct err err;
		int sock[2];

		seq_pair(sock);
		for (int i = 0; i < 5; i++)
			send_raw(sock[0], SIZE, 2);
		if (row->last_bytes > 0)
			send_raw(sock[0], row->last_bytes, 2);
		close(sock[0]);
		assert_int_equal(fd_reader_open(&b.reader, l, &ops, sock[1], SIZE, 2, &err), 0);
		loop_run(l);
		assert_int_equal(b.messages, row->want_messages);
		assert_int_equal(b.ends, row->want_ends);
		assert_int_equal(b.broke, row->want_broke);
		assert_true(b.kept >= 0);
		close(b.kept);
		close(sock[1]);
		loop_free(l);
		assert_int_equal(open_fds(), before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_arrive_with_their_message),
		cmocka_unit_test(broken_messages_are_refused_and_leave_nothing_open),
		cmocka_unit_test(a_full_socket_says_not_now),
		cmocka_unit_test(a_reader_gets_every_message_and_then_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
