/* test_node_door.c - node's door against gateways of every kind. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fdmsg.h"
#include "base/link_hello.h"
#include "base/memory_file.h"
#include "net/timer.h"
#include "node/door/gateway_door.h"
#include "node/door/reply_queue.h"

enum { GUARD_MS = 60000, ASKED_MAX = DOOR_ASKED_MAX + 64 };

static struct scene {
	struct loop *loop;
	struct timer guard;
	struct gateway_door *door;
	struct door_user user;
	struct door_asked *asked[ASKED_MAX];
	struct node_request last;
	char text[64];
	size_t text_len, n, enough;
	bool answer_at_once, close_when_asked;
	char path[64];
} s;

static const struct node_request GOOD = {
	.verb = NODE_GET, .tag = 7, .team = "t", .id = "sandbox-1"
};

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static void on_request(struct door_user *u, struct door_asked *a, const struct node_request *rq,
		       struct bytes text)
{
	assert_ptr_equal(u, &s.user);
	assert_true(s.n < ASKED_MAX);
	s.asked[s.n++] = a;
	s.last = *rq;
	s.text_len = text.len;
	assert_true(text.len > NODE_TEXT_MAX || bytes_to_str(text, s.text, sizeof(s.text)));
	if (s.n == s.enough)
		loop_stop(s.loop);
	if (s.answer_at_once)
		door_answer(a, &(struct node_reply){ .count = 5 }, text, NULL, 0);
	if (s.close_when_asked) {
		door_close(TAKE(s.door));
		loop_stop(s.loop);
	}
}

static void scene_open_for(uid_t uid)
{
	static const struct door_user_ops ops = { on_request };
	struct err err;

	s = (struct scene){ .user = { &ops } };
	snprintf(s.path, sizeof(s.path), "/tmp/hotcell-door-%d.sock", (int)getpid());
	assert_int_equal(loop_open(&s.loop, &err), 0);
	if (door_open(s.loop, s.path, uid, getegid(), &s.user, &s.door, &err) < 0)
		fail_msg("%s", err.msg);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
}

static void scene_open(void)
{
	scene_open_for(geteuid());
}

static void scene_end(void)
{
	timer_stop(&s.guard);
	door_close(TAKE(s.door));
	assert_int_equal(access(s.path, F_OK), -1);
	loop_free(s.loop);
}

static int knock_silently(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(at.sun_path, s.path, sizeof(s.path));
	assert_int_equal(connect(sock, (struct sockaddr *)&at, sizeof(at)), 0);
	return sock;
}

static ssize_t greet(int sock, struct link_hello hello)
{
	struct link_hello answer;
	ssize_t n;

	assert_int_equal(send(sock, &hello, sizeof(hello), 0), sizeof(hello));
	while ((n = recv(sock, &answer, sizeof(answer), 0)) < 0 && errno == EAGAIN)
		assert_true(loop_turn(s.loop));
	return n;
}

static int knock(void)
{
	int sock = knock_silently();

	assert_int_equal(greet(sock, link_hello_make(NODE_VERSION_MIN, NODE_VERSION_MAX)),
			 sizeof(struct link_hello));
	return sock;
}

static void ask(int sock, const struct node_request *rq, struct bytes text)
{
	struct err err;

	if (fdmsg_send_pair(sock, (struct bytes){ (const uint8_t *)rq, sizeof(*rq) }, text, NULL, 0,
			    &err) < 0)
		fail_msg("%s", err.msg);
}

static void run_until(size_t enough)
{
	s.enough = enough;
	while (s.n < enough)
		assert_true(loop_turn(s.loop));
}

/* Turns the loop until the gateway has something to read. 0: the door hung up. */
static size_t hear(int sock, struct node_reply *ret, char *after, size_t size, int *fds, size_t *n)
{
	uint8_t in[4096];
	struct err err = { 0 };
	size_t len = 0, n_fds = 0;

	while (fdmsg_recv_some(sock, in, sizeof(*ret), sizeof(in), &len, fds, fds ? 4 : 0,
			       n ? n : &n_fds, &err) < 0) {
		if (err.sys == 0 || err.sys == ECONNRESET)
			return 0;
		assert_int_equal(err.sys, EAGAIN);
		assert_true(loop_turn(s.loop));
	}
	memcpy(ret, in, sizeof(*ret));
	assert_int_equal(ret->text_len, len - sizeof(*ret));
	if (after)
		assert_true(bytes_to_str((struct bytes){ in + sizeof(*ret), ret->text_len }, after,
					 size));
	return len;
}

static size_t open_count(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void a_request_is_answered_with_its_tag_and_text(void **state)
{
	struct node_request rq = GOOD;
	struct node_reply r;
	char after[32];
	struct stat st;
	int sock;

	(void)state;
	scene_open();
	assert_int_equal(stat(s.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	sock = knock();
	rq.verb = NODE_CREATE;
	memcpy(rq.template_id, "base", 5);
	rq.text_len = 13;
	ask(sock, &rq, BYTES_LIT("{\"a\":\"hello\"}"));
	run_until(1);
	assert_string_equal(s.last.template_id, "base");
	assert_string_equal(s.text, "{\"a\":\"hello\"}");
	door_answer(s.asked[0], &(struct node_reply){ .sandbox = { .id = "abc" } },
		    BYTES_LIT("{\"b\":1}"), NULL, 0);
	assert_true(hear(sock, &r, after, sizeof(after), NULL, NULL) > 0);
	assert_int_equal(r.tag, 7);
	assert_int_equal(r.code, 0);
	assert_string_equal(r.sandbox.id, "abc");
	assert_string_equal(after, "{\"b\":1}");
	close(sock);
	scene_end();
}

static void answers_come_in_any_order_and_as_errors_too(void **state)
{
	struct node_request rq = GOOD;
	struct node_reply r;
	struct err err;
	int sock;

	(void)state;
	scene_open();
	sock = knock();
	for (rq.tag = 1; rq.tag <= 3; rq.tag++)
		ask(sock, &rq, (struct bytes){ 0 });
	run_until(3);
	err_set(&err, ERR_NOT_FOUND, 0, "no such sandbox");
	door_refuse(s.asked[2], &err);
	door_answer(s.asked[0], &(struct node_reply){ 0 }, (struct bytes){ 0 }, NULL, 0);
	assert_true(hear(sock, &r, NULL, 0, NULL, NULL) > 0);
	assert_int_equal(r.tag, 3);
	assert_int_equal(r.code, ERR_NOT_FOUND);
	assert_string_equal(r.msg, "no such sandbox");
	assert_true(hear(sock, &r, NULL, 0, NULL, NULL) > 0);
	assert_int_equal(r.tag, 1);
	close(sock);
	scene_end(); /* the second is forgotten */
}

static void fill(char *at, size_t n)
{
	memset(at, 'x', n);
}

static void strangeness_is_refused_with_a_reason(void **state)
{
	struct node_request long_id = GOOD, long_team = GOOD, long_template = GOOD;
	const struct {
		const char *name;
		struct node_request rq;
		struct bytes text;
		const char *why;
	} rows[] = {
		{ "verb", { .verb = NODE_VERBS, .tag = 7 }, { 0 }, "verb" },
		{ "verb far away", { .verb = UINT32_MAX, .tag = 7 }, { 0 }, "verb" },
		{ "an id without end", (fill(long_id.id, 64), long_id), { 0 }, "id does not end" },
		{ "a team without end",
		  (fill(long_team.team, 64), long_team),
		  { 0 },
		  "team does not end" },
		{ "a template without end",
		  (fill(long_template.template_id, 64), long_template),
		  { 0 },
		  "template does not end" },
		{ "no id", { .verb = NODE_KILL, .tag = 7 }, { 0 }, "id is missing" },
		{ "an id with a newline",
		  { .verb = NODE_GET, .tag = 7, .id = "a\nb" },
		  { 0 },
		  "strange" },
		{ "no template",
		  { .verb = NODE_CREATE, .tag = 7, .team = "t" },
		  { 0 },
		  "template is missing" },
		{ "flags", { .tag = 7, .verb = NODE_LIST, .flags = 1u << 30 }, { 0 }, "flags" },
		{ "no sockets", { .tag = 7, .verb = NODE_SOCKETS, .id = "x" }, { 0 }, "count" },
		{ "many sockets",
		  { .tag = 7, .verb = NODE_SOCKETS, .id = "x", .count = 5 },
		  { 0 },
		  "count" },
		{ "less text than said",
		  { .tag = 7, .verb = NODE_LIST, .text_len = 6 },
		  BYTES_LIT("hello"),
		  "text" },
		{ "more text than said",
		  { .tag = 7, .verb = NODE_LIST, .text_len = 4 },
		  BYTES_LIT("hello"),
		  "text" },
		{ "a NUL in the text",
		  { .tag = 7, .verb = NODE_LIST, .text_len = 5 },
		  BYTES_LIT("he\0lo"),
		  "NUL" },
	};
	int sock;

	(void)state;
	scene_open();
	s.answer_at_once = true;
	sock = knock();
	FOR_ROWS(row, rows) {
		struct node_reply r;

		ask(sock, &row->rq, row->text);
		assert_true(hear(sock, &r, NULL, 0, NULL, NULL) > 0);
		assert_int_equal(r.tag, 7);
		assert_int_equal(r.code, ERR_INVALID);
		if (!strstr(r.msg, row->why))
			fail_msg("`%s` says nothing of `%s`", r.msg, row->why);
	}
	assert_int_equal(s.n, 0);
	ask(sock, &GOOD, (struct bytes){ 0 }); /* it is still welcome */
	assert_true(hear(sock, &(struct node_reply){ 0 }, NULL, 0, NULL, NULL) > 0);
	close(sock);
	scene_end();
}

static void strange_names_of_keys_are_refused(void **state)
{
	struct node_request long_key = GOOD, spaced = GOOD;
	struct node_reply r;
	int sock;

	(void)state;
	fill(long_key.key_id, sizeof(long_key.key_id));
	snprintf(spaced.idempotency, sizeof(spaced.idempotency), "a b");
	scene_open();
	sock = knock();
	ask(sock, &long_key, (struct bytes){ 0 });
	assert_true(hear(sock, &r, NULL, 0, NULL, NULL) > 0);
	assert_non_null(strstr(r.msg, "key_id does not end"));
	ask(sock, &spaced, (struct bytes){ 0 });
	assert_true(hear(sock, &r, NULL, 0, NULL, NULL) > 0);
	assert_non_null(strstr(r.msg, "idempotency has a strange character"));
	close(sock);
	scene_end();
}

static void what_is_no_request_at_all_ends_the_connection(void **state)
{
	static uint8_t big[sizeof(struct node_request) + NODE_TEXT_MAX + 1];
	static const struct {
		const char *name;
		size_t len;
		bool with_fd;
	} rows[] = {
		{ "one byte", 1, false },
		{ "one short of a request", sizeof(struct node_request) - 1, false },
		{ "no tag", sizeof(struct node_request), false },
		{ "too long", sizeof(big), false },
		{ "a descriptor", sizeof(struct node_request), true },
	};

	(void)state;
	scene_open();
	FOR_ROWS(row, rows) {
		size_t before = open_count();
		struct node_request rq = GOOD;
		struct node_reply r;
		struct err err;
		int sock = knock();

		rq.tag = row->with_fd ? 1 : 0;
		memcpy(big, &rq, sizeof(rq));
		assert_int_equal(fdmsg_send(sock, big, row->len, &sock, row->with_fd, &err), 0);
		assert_int_equal(hear(sock, &r, NULL, 0, NULL, NULL), 0);
		close(sock);
		assert_int_equal(open_count(), before);
	}
	assert_int_equal(s.n, 0);
	scene_end();
}

static void send_with(int sock, int file)
{
	struct node_request rq = GOOD;
	struct err err;

	rq.verb = NODE_BUILD_START;
	snprintf(rq.template_id, sizeof(rq.template_id), "template-1");
	assert_int_equal(fdmsg_send(sock, &rq, sizeof(rq), &file, 1, &err), 0);
	close(file);
}

static int file_of(size_t len)
{
	AUTO(buf_done) struct buf text = BUF_MAX(len);
	struct err err;
	uint8_t *at;
	int file;

	assert_int_equal(buf_reserve(&text, len, &at, &err), 0);
	memset(at, 'x', len);
	buf_claim(&text, len);
	file = memory_file_make("test", buf_view(&text), &err);
	assert_true(file >= 0);
	return file;
}

/* Of a build alone: what_is_no_request_at_all_ends_the_connection() has the others. */
static void a_long_text_comes_in_a_file(void **state)
{
	struct node_reply r;
	int sock, pipes[2];
	size_t before;

	(void)state;
	scene_open();
	sock = knock();
	before = open_count();
	send_with(sock, file_of(NODE_FILE_TEXT_MAX));
	run_until(1);
	assert_int_equal(s.text_len, NODE_FILE_TEXT_MAX);
	door_answer(s.asked[0], &(struct node_reply){ 0 }, (struct bytes){ 0 }, NULL, 0);
	assert_int_not_equal(hear(sock, &r, NULL, 0, NULL, NULL), 0);
	assert_int_equal(r.code, ERR_NONE);
	send_with(sock, file_of(NODE_FILE_TEXT_MAX + 1));
	assert_int_not_equal(hear(sock, &r, NULL, 0, NULL, NULL), 0);
	assert_int_not_equal(r.code, ERR_NONE);
	assert_int_equal(pipe(pipes), 0);
	close(pipes[1]);
	send_with(sock, pipes[0]);
	assert_int_not_equal(hear(sock, &r, NULL, 0, NULL, NULL), 0);
	assert_int_not_equal(r.code, ERR_NONE);
	assert_int_equal(open_count(), before);
	assert_int_equal(s.n, 1);
	close(sock);
	scene_end();
}

static void descriptors_are_passed_and_none_is_kept(void **state)
{
	struct node_request rq = GOOD;
	struct node_reply r;
	int sock, pipes[2], got[4] = { -1 };
	size_t before, n = 0;
	char byte = 0;

	(void)state;
	scene_open();
	sock = knock();
	ask(sock, &rq, (struct bytes){ 0 });
	ask(sock, &rq, (struct bytes){ 0 });
	run_until(2);
	before = open_count();
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	door_answer(s.asked[0], &(struct node_reply){ .count = 2 }, (struct bytes){ 0 }, pipes, 2);
	assert_int_equal(open_count(), before);
	assert_true(hear(sock, &r, NULL, 0, got, &n) > 0);
	assert_int_equal(n, 2);
	assert_int_equal(write(got[1], "x", 1), 1);
	assert_int_equal(read(got[0], &byte, 1), 1);
	close(got[0]);
	close(got[1]);
	assert_int_equal(open_count(), before);
	close(sock); /* the second answer finds nobody */
	run_until(2);
	assert_true(loop_turn(s.loop));
	before = open_count();
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	door_answer(s.asked[1], &(struct node_reply){ .count = 2 }, (struct bytes){ 0 }, pipes, 2);
	assert_int_equal(open_count(), before);
	scene_end();
}

/* Answers wait in order while it does not read; the descriptors among them are bounded. */
static void a_slow_gateway_gets_everything_in_order(void **state)
{
	enum { N = 2000 };
	struct node_request rq = GOOD;
	struct node_reply r;
	int sock, got[4];
	size_t with = 0, without = 0, before;

	(void)state;
	scene_open();
	sock = knock();
	for (rq.tag = 1; rq.tag <= N; rq.tag++) {
		ask(sock, &rq, (struct bytes){ 0 });
		run_until((size_t)rq.tag);
	}
	before = open_count();
	for (size_t i = 0; i < N; i++) {
		char text[2048];
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		memset(text, 'x', sizeof(text));
		door_answer(s.asked[i], &(struct node_reply){ .count = 1 },
			    (struct bytes){ (uint8_t *)text, sizeof(text) }, &fd, 1);
	}
	for (size_t i = 0; i < N; i++) {
		size_t n = 0;

		assert_true(hear(sock, &r, NULL, 0, got, &n) > 0);
		assert_int_equal(r.tag, i + 1);
		if (n == 1) {
			close(got[0]);
			with++;
		} else {
			assert_int_equal(r.code, ERR_EXHAUSTED);
			without++;
		}
	}
	assert_true(with > 0);
	assert_int_equal(with + without, N);
	assert_int_equal(open_count(), before);
	ask(sock, &GOOD, (struct bytes){ 0 }); /* and may ask again */
	run_until(N + 1);
	close(sock);
	scene_end();
}

static void a_gateway_that_never_reads_is_dropped_alone(void **state)
{
	struct node_request rq = GOOD;
	struct node_reply r;
	int deaf, good;
	uint8_t hole[4096];
	size_t told = 0, heard = 0;
	ssize_t got;

	(void)state;
	scene_open();
	deaf = knock();
	ask(deaf, &rq, (struct bytes){ 0 });
	run_until(1);
	good = knock();
	ask(good, &rq, (struct bytes){ 0 });
	run_until(2);
	/* the good one reads as it goes; the deaf one's queue overflows */
	while (told < 40000) {
		door_tell_gone(s.door, "abc", (uint32_t)++told);
		assert_true(hear(good, &r, NULL, 0, NULL, NULL) > 0);
		assert_int_equal(r.event, NODE_GONE);
		assert_int_equal(r.sandbox.generation, told);
		assert_int_equal(r.tag, 0);
	}
	while ((got = recv(deaf, hole, sizeof(hole), 0)) > 0)
		heard++;
	assert_true(got == 0 || errno == ECONNRESET);
	assert_in_range(heard, 1, 39999);
	/* its request was left behind; the answer reaches nobody and hurts nobody */
	door_answer(s.asked[0], &(struct node_reply){ 0 }, (struct bytes){ 0 }, NULL, 0);
	close(deaf);
	close(good);
	scene_end();
}

static void on_rest(struct timer *t)
{
	(void)t;
}

static void with_many_unanswered_it_may_ask_no_more(void **state)
{
	struct node_request rq = GOOD;
	struct timer rest;
	int sock;
	size_t sent = 0;

	(void)state;
	scene_open();
	sock = knock();
	while (s.n < DOOR_ASKED_MAX) {
		while (sent < DOOR_ASKED_MAX + 32 &&
		       send(sock, &rq, sizeof(rq), MSG_NOSIGNAL) == (ssize_t)sizeof(rq))
			sent++;
		assert_true(loop_turn(s.loop));
	}
	assert_int_equal(sent, DOOR_ASKED_MAX + 32);
	timer_init(&rest, s.loop, on_rest);
	timer_start(&rest, 50); /* nothing else happens: only the clock can end a turn */
	while (rest.active)
		assert_true(loop_turn(s.loop));
	assert_int_equal(s.n, DOOR_ASKED_MAX);
	door_answer(s.asked[0], &(struct node_reply){ 0 }, (struct bytes){ 0 }, NULL, 0);
	run_until(DOOR_ASKED_MAX + 1);
	assert_int_equal(s.n, DOOR_ASKED_MAX + 1);
	close(sock);
	scene_end();
}

static void strangers_are_turned_away(void **state)
{
	struct node_reply r;
	int sock;

	(void)state;
	if (geteuid() == 0) { /* root is always welcome: be somebody else */
		int status = 0;
		pid_t pid;

		scene_open_for(12345);
		assert_int_equal(chmod(s.path, 0666), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			char byte;
			ssize_t n;

			if (setresuid(54321, 54321, 54321) < 0)
				_exit(2);
			sock = knock_silently();
			fcntl(sock, F_SETFL, 0);
			n = recv(sock, &byte, 1, 0);
			_exit(n <= 0 ? 0 : 1);
		}
		assert_true(loop_turn(s.loop)); /* it knocks; it is shown out */
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	} else {
		scene_open_for(geteuid() + 1);
		sock = knock_silently();
		assert_int_equal(hear(sock, &r, NULL, 0, NULL, NULL), 0);
		close(sock);
	}
	scene_end();
}

/* Who says no hello, or that of another version, is not heard; events are not for them either. */
static void a_hello_comes_first(void **state)
{
	struct node_reply r;
	int sock;

	(void)state;
	scene_open();
	sock = knock_silently();
	assert_true(loop_turn(s.loop));
	door_tell_gone(s.door, "abc", 1);
	assert_int_equal(recv(sock, &r, sizeof(r), 0), -1);
	ask(sock, &GOOD, (struct bytes){ 0 });
	assert_int_equal(hear(sock, &r, NULL, 0, NULL, NULL), 0);
	close(sock);
	sock = knock_silently(); /* it is told what is spoken here, and that is all */
	assert_int_equal(greet(sock, link_hello_make(NODE_VERSION_MAX + 1, NODE_VERSION_MAX + 2)),
			 sizeof(struct link_hello));
	assert_int_equal(hear(sock, &r, NULL, 0, NULL, NULL), 0);
	close(sock);
	assert_int_equal(s.n, 0);
	scene_end();
}

static void no_more_than_so_many_gateways(void **state)
{
	int socks[DOOR_GATEWAYS_MAX + 1];
	struct node_reply r;

	(void)state;
	scene_open();
	s.answer_at_once = true;
	for (size_t i = 0; i < DOOR_GATEWAYS_MAX; i++) {
		socks[i] = knock();
		ask(socks[i], &GOOD, (struct bytes){ 0 });
		assert_true(hear(socks[i], &r, NULL, 0, NULL, NULL) > 0);
	}
	socks[DOOR_GATEWAYS_MAX] = knock_silently();
	assert_int_equal(hear(socks[DOOR_GATEWAYS_MAX], &r, NULL, 0, NULL, NULL), 0);
	close(socks[0]);
	assert_true(loop_turn(s.loop));
	socks[0] = knock();
	ask(socks[0], &GOOD, (struct bytes){ 0 });
	assert_true(hear(socks[0], &r, NULL, 0, NULL, NULL) > 0);
	for (size_t i = 0; i <= DOOR_GATEWAYS_MAX; i++)
		close(socks[i]);
	scene_end();
}

static void it_may_be_closed_from_a_request(void **state)
{
	int sock;

	(void)state;
	scene_open();
	sock = knock();
	ask(sock, &GOOD, (struct bytes){ 0 });
	ask(sock, &GOOD, (struct bytes){ 0 });
	s.close_when_asked = true;
	loop_run(s.loop);
	assert_int_equal(s.n, 1);
	close(sock);
	scene_end();
}

static void a_path_left_behind_is_taken_over_a_live_one_is_not(void **state)
{
	struct gateway_door *second;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct err err;
	int stale;

	(void)state;
	snprintf(s.path, sizeof(s.path), "/tmp/hotcell-door-%d.sock", (int)getpid());
	memcpy(at.sun_path, s.path, sizeof(s.path));
	stale = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(stale, (struct sockaddr *)&at, sizeof(at)), 0);
	close(stale);
	scene_open();
	assert_int_equal(door_open(s.loop, s.path, 0, getegid(), &s.user, &second, &err), -1);
	assert_non_null(strstr(err.msg, s.path));
	close(knock_silently());
	scene_end();
}

/* Also after a case that failed half way. */
static int remove_path(void **state)
{
	(void)state;
	if (s.path[0])
		(void)unlink(s.path);
	return 0;
}

#define CASE(f) cmocka_unit_test_teardown(f, remove_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_request_is_answered_with_its_tag_and_text),
		CASE(answers_come_in_any_order_and_as_errors_too),
		CASE(strangeness_is_refused_with_a_reason),
		CASE(strange_names_of_keys_are_refused),
		CASE(what_is_no_request_at_all_ends_the_connection),
		CASE(a_long_text_comes_in_a_file),
		CASE(descriptors_are_passed_and_none_is_kept),
		CASE(a_slow_gateway_gets_everything_in_order),
		CASE(a_gateway_that_never_reads_is_dropped_alone),
		CASE(with_many_unanswered_it_may_ask_no_more),
		CASE(strangers_are_turned_away),
		CASE(a_hello_comes_first),
		CASE(no_more_than_so_many_gateways),
		CASE(it_may_be_closed_from_a_request),
		CASE(a_path_left_behind_is_taken_over_a_live_one_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
