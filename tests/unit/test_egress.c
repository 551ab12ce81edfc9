/* test_egress.c - doors on loopback, handed over by a node of our own: who is refused, who is
 * counted, who may ask. */
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "egress/control.h"
#include "egress/doors.h"
#include "base/fdmsg.h"
#include "base/link_hello.h"

enum { PATIENCE_MS = 20000, SLOT = 7, OTHER = 1999 };

#define QUERY "\x12\x34\1\0\0\1\0\0\0\0\0\0\3www\7example\3org\0\0\1\0\1"

enum { HEARD = 100 }; /* in DOORS_HEARD_MS */

static const struct policy_ground ground;

struct world {
	struct loop *loop;
	struct house house;
	struct control *control;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char folder[64];
	int node;
	uint64_t tag;
	struct sockaddr_in tcp, udp; /* where the doors made last are */
};

/* Turn the loop, on which other things may be happening, until fd is readable. */
static void turn_until_readable(struct world *w, int fd)
{
	uint64_t end = clock_mono_ns() + PATIENCE_MS * NSEC_PER_MSEC;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (poll(&p, 1, 0) == 0) {
		assert_true(clock_mono_ns() < end);
		(void)loop_turn(w->loop);
	}
}

/* What it hears first is what the caller says. */
static int dial_saying(struct world *w, const void *first, size_t len)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path, w->path, sizeof(at.sun_path));
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(send(fd, first, len, 0), len);
	turn_until_readable(w, fd);
	return fd;
}

static int dial_control(struct world *w)
{
	struct link_hello hello = link_hello_make(EGRESS_VERSION_MAX, EGRESS_VERSION_MAX);
	int fd = dial_saying(w, &hello, sizeof(hello));

	assert_int_equal(recv(fd, &hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(hello.max, EGRESS_VERSION_MAX);
	return fd;
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err = { 0 };

	assert_non_null(w);
	log_init("test", LOG_ERROR);
	snprintf(w->folder, sizeof(w->folder), "/tmp/test_egress.XXXXXX");
	assert_non_null(mkdtemp(w->folder));
	snprintf(w->path, sizeof(w->path), "%s/egress.sock", w->folder);
	assert_int_equal(loop_open(&w->loop, &err), 0);
	w->house =
		(struct house){ w->loop, NULL, &ground, { 512, HEARD * 1000 / DOORS_HEARD_MS, 0 } };
	assert_int_equal(control_open(&w->control, &w->house, w->path, getuid(), &err), 0);
	w->node = dial_control(w);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	close(w->node);
	control_close(w->control);
	loop_free(w->loop);
	(void)unlink(w->path);
	(void)rmdir(w->folder);
	free(w);
	return 0;
}

/* `ret_fd`: what came back with the answer, or -1. NULL: nothing must. */
static struct egress_reply ask_for(struct world *w, struct egress_request rq, const int *fds,
				   size_t n_fds, int *ret_fd)
{
	struct egress_reply r = { 0 };
	struct err err = { 0 };
	size_t n;

	rq.tag = ++w->tag;
	assert_int_equal(fdmsg_send(w->node, &rq, sizeof(rq), fds, n_fds, &err), 0);
	turn_until_readable(w, w->node);
	if (ret_fd)
		*ret_fd = -1;
	assert_int_equal(fdmsg_recv(w->node, &r, sizeof(r), ret_fd, ret_fd ? 1 : 0, &n, &err), 0);
	assert_int_equal(r.tag, w->tag);
	return r;
}

static struct egress_reply ask_with(struct world *w, struct egress_request rq, const int *fds,
				    size_t n_fds)
{
	return ask_for(w, rq, fds, n_fds, NULL);
}

static struct egress_reply ask(struct world *w, enum egress_verb verb, uint32_t slot)
{
	return ask_with(w, (struct egress_request){ .verb = verb, .slot = slot }, NULL, 0);
}

static int bound(int type, struct sockaddr_in *ret)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(*ret);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret, &len), 0);
	return fd;
}

static struct egress_reply hand_over(struct world *w, uint32_t slot)
{
	const struct egress_request rq = { .verb = EGRESS_OPEN, .slot = slot };
	int fds[] = { bound(SOCK_STREAM, &w->tcp), bound(SOCK_DGRAM, &w->udp) };
	struct egress_reply r;

	assert_int_equal(listen(fds[0], 128), 0);
	r = ask_with(w, rq, fds, 2);
	close(fds[0]);
	close(fds[1]);
	return r;
}

static int dial(const struct sockaddr_in *to, int type)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0 && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

static void must_be_reset(struct world *w, const struct sockaddr_in *to)
{
	AUTO(auto_close) int fd = dial(to, SOCK_STREAM);
	char byte;

	assert_true(fd >= 0);
	turn_until_readable(w, fd);
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
}

/* Nobody listens there any more. */
static void must_be_closed(const struct sockaddr_in *to)
{
	AUTO(auto_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof(*to)), -1);
	assert_int_equal(errno, ECONNREFUSED);
}

static size_t resolve(struct world *w, struct bytes in, uint8_t *out, size_t size)
{
	AUTO(auto_close) int fd = dial(&w->udp, SOCK_DGRAM);
	ssize_t n;

	assert_int_equal(send(fd, in.ptr, in.len, 0), (ssize_t)in.len);
	turn_until_readable(w, fd);
	n = recv(fd, out, size, 0);
	assert_true(n >= 0);
	return (size_t)n;
}

static void must_not_exist(struct world *w)
{
	uint8_t out[512];

	assert_int_equal(resolve(w, BYTES_LIT(QUERY), out, sizeof(out)), sizeof(QUERY) - 1);
	assert_int_equal(out[3] & 0xf, 3); /* NXDOMAIN */
	assert_memory_equal(out, QUERY, 2);
}

static void connections_are_reset_and_names_do_not_exist(void **state)
{
	struct world *w = *state;
	struct egress_request name = { .verb = EGRESS_NAME, .slot = SLOT, .id = "a1b2" };
	struct egress_reply r;

	assert_int_equal(hand_over(w, SLOT).code, ERR_NONE);
	must_be_reset(w, &w->tcp);
	must_not_exist(w);
	must_not_exist(w);
	r = ask(w, EGRESS_COUNT, SLOT);
	assert_int_equal(r.code, ERR_NONE);
	assert_int_equal(r.counts.tcp_refused, 1);
	assert_int_equal(r.counts.names_refused, 2);
	assert_int_equal(ask_with(w, name, NULL, 0).code, ERR_NONE);
	r = ask(w, EGRESS_COUNT, SLOT);
	assert_int_equal(r.counts.tcp_refused + r.counts.names_refused, 0);
	must_not_exist(w);
	for (int i = 0; i < 2; i++) { /* of all that there were: also when its doors are closed */
		r = ask(w, EGRESS_TOTALS, 0);
		assert_int_equal(r.counts.tcp_refused, 1);
		assert_int_equal(r.counts.names_refused, 3);
		assert_int_equal(ask(w, EGRESS_CLOSE, SLOT).code, ERR_NONE);
	}
}

static void what_is_not_a_question_is_told_or_ignored(void **state)
{
	struct world *w = *state;
	uint8_t out[512], big[1400] = QUERY;

	assert_int_equal(hand_over(w, SLOT).code, ERR_NONE);
	assert_int_equal(resolve(w, BYTES_LIT(QUERY "x"), out, sizeof(out)), 12);
	assert_int_equal(out[3] & 0xf, 1); /* FORMERR */
	assert_int_equal(resolve(w, (struct bytes){ big, sizeof(big) }, out, sizeof(out)), 12);
	assert_int_equal(out[3] & 0xf, 1);
	{
		AUTO(auto_close) int fd = dial(&w->udp, SOCK_DGRAM);

		assert_int_equal(send(fd, "", 0, 0), 0);
		assert_int_equal(send(fd, "\x12\x34\x80", 3, 0), 3);
		must_not_exist(w); /* came after them */
		assert_int_equal(recv(fd, out, sizeof(out), 0), -1);
	}
	assert_int_equal(ask(w, EGRESS_COUNT, SLOT).counts.names_refused, 3);
}

static void doors_close_when_node_says_so_and_only_then(void **state)
{
	struct world *w = *state;
	struct sockaddr_in first;

	assert_int_equal(hand_over(w, SLOT).code, ERR_NONE);
	first = w->tcp;
	assert_int_equal(hand_over(w, SLOT).code, ERR_NONE); /* anew */
	must_be_closed(&first);
	must_be_reset(w, &w->tcp);
	close(w->node); /* node died: doors stay */
	w->node = dial_control(w);
	must_be_reset(w, &w->tcp);
	assert_int_equal(ask(w, EGRESS_CLOSE, SLOT).code, ERR_NONE);
	assert_int_equal(ask(w, EGRESS_CLOSE, SLOT).code, ERR_NONE);
	assert_int_equal(ask(w, EGRESS_COUNT, SLOT).code, ERR_NOT_FOUND);
	must_be_closed(&w->tcp);
	assert_int_equal(hand_over(w, SLOT).code, ERR_NONE);
	assert_int_equal(hand_over(w, OTHER).code, ERR_NONE);
	assert_int_equal(ask(w, EGRESS_RESET, 0).code, ERR_NONE);
	assert_int_equal(ask(w, EGRESS_COUNT, SLOT).code, ERR_NOT_FOUND);
	assert_int_equal(ask(w, EGRESS_COUNT, OTHER).code, ERR_NOT_FOUND);
}

/* A node that was killed left requests behind; they must not follow on those of the next one. */
static void what_a_former_node_has_asked_is_void(void **state)
{
	struct world *w = *state;
	struct pollfd former = { .fd = w->node, .events = POLLIN };

	assert_int_equal(ask(w, EGRESS_RESET, 0).code, ERR_NONE);
	w->node = dial_control(w);
	assert_int_equal(ask(w, EGRESS_RESET, 0).code, ERR_NONE);
	assert_int_equal(poll(&former, 1, 0), 1);
	assert_true(former.revents & POLLHUP);
	close(former.fd);
	assert_int_equal(hand_over(w, SLOT).code, ERR_NONE);
}

static void without_a_hello_nothing_is_done(void **state)
{
	const struct egress_request close_it = { .tag = 1, .verb = EGRESS_CLOSE, .slot = SLOT };
	struct link_hello other = link_hello_make(EGRESS_VERSION_MAX + 1, EGRESS_VERSION_MAX + 1);
	struct world *w = *state;
	char byte;
	int fd;

	fd = dial_saying(w, &close_it, sizeof(close_it));
	assert_true(recv(fd, &byte, 1, 0) <= 0); /* hung up on */
	close(fd);
	fd = dial_saying(w, &other, sizeof(other));
	assert_int_equal(recv(fd, &other, sizeof(other), 0), sizeof(other)); /* why is known */
	assert_int_equal(other.max, EGRESS_VERSION_MAX);
	turn_until_readable(w, fd);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
	assert_int_equal(ask(w, EGRESS_RESET, 0).code, ERR_NONE); /* others are not touched */
}

static void wrong_requests_are_refused(void **state)
{
	struct world *w = *state;
	struct egress_request bad_name = { .verb = EGRESS_NAME, .slot = SLOT, .id = "box" };
	struct egress_request open_wrong = { .verb = EGRESS_OPEN, .slot = SLOT };
	int pipes[2], fds[2];

	assert_int_equal(ask(w, EGRESS_VERBS, 0).code, ERR_INVALID);
	assert_int_equal(ask(w, EGRESS_CLOSE, EGRESS_SLOTS_MAX).code, ERR_INVALID);
	assert_int_equal(ask(w, EGRESS_OPEN, SLOT).code, ERR_INVALID);
	assert_int_equal(ask_with(w, bad_name, NULL, 0).code, ERR_NOT_FOUND);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(ask_with(w, open_wrong, pipes, 1).code, ERR_INVALID);
	assert_int_equal(ask_with(w, open_wrong, pipes, 2).code, ERR_INVALID);
	fds[0] = bound(SOCK_STREAM, &w->tcp); /* does not listen */
	fds[1] = bound(SOCK_DGRAM, &w->udp);
	assert_int_equal(ask_with(w, open_wrong, fds, 2).code, ERR_INVALID);
	assert_int_equal(ask(w, EGRESS_COUNT, SLOT).code, ERR_NOT_FOUND);
	assert_int_equal(hand_over(w, SLOT).code, ERR_NONE);
	memset(bad_name.id, 'a', sizeof(bad_name.id)); /* without an end */
	assert_int_equal(ask_with(w, bad_name, NULL, 0).code, ERR_INVALID);
	snprintf(bad_name.id, sizeof(bad_name.id), "a\nb");
	assert_int_equal(ask_with(w, bad_name, NULL, 0).code, ERR_INVALID);
	close(pipes[0]);
	close(pipes[1]);
	close(fds[0]);
	close(fds[1]);
}

static void a_message_of_another_size_ends_the_connection(void **state)
{
	struct world *w = *state;
	char byte;

	assert_int_equal(send(w->node, "hello", 5, 0), 5);
	turn_until_readable(w, w->node);
	assert_true(recv(w->node, &byte, 1, 0) <= 0);
	close(w->node);
	w->node = dial_control(w);
	assert_int_equal(ask(w, EGRESS_CLOSE, SLOT).code, ERR_NONE);
}

static void give_rules(struct world *w, const char *text, uint32_t code)
{
	const struct egress_request rq = { .verb = EGRESS_RULE, .slot = SLOT };
	struct err err = { 0 };
	int fd = memory_file_make("rules", bytes_str(text), &err);

	assert_true(fd >= 0);
	assert_int_equal(ask_with(w, rq, &fd, 1).code, code);
	close(fd);
}

/* The text that came back. */
static void must_tell(struct world *w, enum egress_verb verb, const char *in, const char *want)
{
	const struct egress_request rq = { .verb = verb, .slot = SLOT };
	AUTO(buf_done) struct buf text = BUF_MAX(1024 * 1024);
	struct err err = { 0 };
	int out, fd = in ? memory_file_make("in", bytes_str(in), &err) : -1;
	struct egress_reply r = ask_for(w, rq, &fd, in ? 1 : 0, &out);

	assert_int_equal(r.code, ERR_NONE);
	assert_true(out >= 0);
	assert_int_equal(memory_file_read(out, &text, &err), 0);
	print_message("      %.*s\n", (int)text.len, (const char *)text.ptr);
	assert_non_null(memmem(text.ptr, text.len, want, strlen(want)));
	close(out);
	if (in)
		close(fd);
}

static void what_was_decided_and_given_is_told(void **state)
{
	struct world *w = *state;
	const struct egress_request name = { .verb = EGRESS_NAME, .slot = SLOT, .id = "other" };

	assert_int_equal(ask(w, EGRESS_LOG, SLOT).code, ERR_NOT_FOUND);
	assert_int_equal(ask(w, EGRESS_KNOWN, SLOT).code, ERR_NOT_FOUND);
	assert_int_equal(hand_over(w, SLOT).code, ERR_NONE);
	must_tell(w, EGRESS_LOG, NULL, "[]");
	must_tell(w, EGRESS_KNOWN, NULL, "[]");
	give_rules(w, "{\"known\":[[\"a.com\",\"1.2.3.4\"]]}", ERR_NONE);
	must_tell(w, EGRESS_KNOWN, NULL, "[[\"a.com\",\"1.2.3.4\"]]");
	give_rules(w, "{\"known\":[[\"b.com\",\"1.2.3.4.5\"]]}", ERR_INVALID);
	must_not_exist(w);
	must_tell(w, EGRESS_LOG, NULL,
		  "\"kind\":\"name\",\"verdict\":\"refused\",\"name\":\"www.example.org\","
		  "\"why\":\"no rules yet\"}]");
	assert_int_equal(ask_with(w, name, NULL, 0).code, ERR_NONE); /* somebody else's now */
	must_tell(w, EGRESS_LOG, NULL, "[]");
	must_tell(w, EGRESS_KNOWN, NULL, "[]");
}

static void a_question_of_people_is_answered(void **state)
{
	struct world *w = *state;
	const struct egress_request rq = { .verb = EGRESS_EXPLAIN };
	int pipes[2];

	must_tell(w, EGRESS_EXPLAIN, "{\"rules\":{},\"question\":\"a.com\"}",
		  "\"allowed\":false,\"why\":\"operator: no network\"");
	assert_int_equal(ask(w, EGRESS_EXPLAIN, SLOT).code, ERR_INVALID);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(ask_with(w, rq, pipes, 1).code, ERR_INVALID);
	close(pipes[0]);
	close(pipes[1]);
}

static void where_a_proxy_resolves_a_name_has_a_stand_in(void **state)
{
	static const struct policy_ground open = { .mode = POLICY_OPEN, .proxy_resolves = true };
	static const struct addr proxy;
	struct world *w = *state;
	uint8_t out[512];
	size_t n;

	w->house.ground = &open;
	w->house.proxy = &proxy; /* not dialled here */
	assert_int_equal(hand_over(w, SLOT).code, ERR_NONE);
	give_rules(w, "{}", ERR_NONE);
	for (int i = 0; i < 2; i++) { /* the same again */
		n = resolve(w, BYTES_LIT(QUERY), out, sizeof(out));
		assert_int_equal(out[3] & 0xf, 0);
		assert_true(n > sizeof(QUERY));
		assert_memory_equal(out + n - 4, "\xc6\x12\x00\x01", 4); /* 198.18.0.1 */
	}
	must_tell(w, EGRESS_KNOWN, NULL, "[[\"www.example.org\",\"198.18.0.1\"]]");
}

/* One sandbox asks without a pause; another's calls are answered in between, and the first is
 * heard at its rate only. */
static void a_flood_starves_nobody(void **state)
{
	struct world *w = *state;
	AUTO(auto_close) int flood = -1;
	uint64_t begin;
	uint64_t heard, spent_ms;

	assert_int_equal(hand_over(w, SLOT).code, ERR_NONE);
	flood = dial(&w->udp, SOCK_DGRAM);
	assert_int_equal(hand_over(w, OTHER).code, ERR_NONE);
	begin = clock_mono_ns();
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 500; i++)
			(void)!send(flood, QUERY, sizeof(QUERY) - 1, MSG_DONTWAIT);
		must_be_reset(w, &w->tcp);
		must_not_exist(w);
	}
	spent_ms = (clock_mono_ns() - begin) / NSEC_PER_MSEC;
	heard = ask(w, EGRESS_COUNT, SLOT).counts.names_refused;
	assert_int_equal(ask(w, EGRESS_COUNT, OTHER).counts.names_refused, 20);
	assert_true(heard > 0);
	assert_true(heard <= (spent_ms / DOORS_HEARD_MS + 2) * HEARD);
}

/* Those beyond its rate wait at its door: they are taken later, each of them. */
static void so_many_connections_are_taken_in_a_second(void **state)
{
	enum { ALL = HEARD + HEARD / 4 }; /* less than may wait at a door */
	struct world *w = *state;
	int fds[ALL];
	char byte;
	uint64_t begin = clock_mono_ns();

	assert_int_equal(hand_over(w, SLOT).code, ERR_NONE);
	for (size_t i = 0; i < ALL; i++) {
		fds[i] = dial(&w->tcp, SOCK_STREAM);
		assert_true(fds[i] >= 0);
	}
	for (size_t i = 0; i < ALL; i++) {
		turn_until_readable(w, fds[i]);
		assert_int_equal(recv(fds[i], &byte, 1, 0), -1);
		close(fds[i]);
	}
	assert_true(clock_mono_ns() - begin >= DOORS_HEARD_MS * NSEC_PER_MSEC / 2);
	assert_int_equal(ask(w, EGRESS_COUNT, SLOT).counts.tcp_refused, ALL);
}

static void many_slots_at_once(void **state)
{
	struct world *w = *state;

	for (uint32_t slot = 0; slot < 300; slot++)
		assert_int_equal(hand_over(w, slot).code, ERR_NONE);
	must_be_reset(w, &w->tcp);
	must_not_exist(w);
	assert_int_equal(ask(w, EGRESS_RESET, 0).code, ERR_NONE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(connections_are_reset_and_names_do_not_exist),
		TEST(what_is_not_a_question_is_told_or_ignored),
		TEST(doors_close_when_node_says_so_and_only_then),
		TEST(what_a_former_node_has_asked_is_void),
		TEST(without_a_hello_nothing_is_done),
		TEST(wrong_requests_are_refused),
		TEST(a_message_of_another_size_ends_the_connection),
		TEST(what_was_decided_and_given_is_told),
		TEST(a_question_of_people_is_answered),
		TEST(where_a_proxy_resolves_a_name_has_a_stand_in),
		TEST(a_flood_starves_nobody),
		TEST(so_many_connections_are_taken_in_a_second),
		TEST(many_slots_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
