/* test_net_supervisor.c - what a service manager says in the environment, true and false. */
#include "tests/unit/test_net_layers.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "net/listen.h"
#include "net/supervisor.h"
#include "net/watchdog.h"

enum { FIRST = 3, FDS_MAX = 64 };

static int listening(int type)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&at, sizeof(at)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* As `fd` number `at`, as it comes from exec: open, and it blocks. */
static void put_at(int fd, int at)
{
	if (fd == at)
		return;
	assert_int_equal(dup2(fd, at), at);
	close(fd);
}

static void say(const char *pid, const char *fds, const char *names)
{
	char own[32];

	(void)snprintf(own, sizeof(own), "%d", getpid());
	assert_int_equal(setenv("LISTEN_PID", pid ? pid : own, 1), 0);
	assert_int_equal(setenv("LISTEN_FDS", fds, 1), 0);
	if (names)
		assert_int_equal(setenv("LISTEN_FDNAMES", names, 1), 0);
}

static void nothing_is_left_in_the_environment(void)
{
	assert_null(getenv("LISTEN_PID"));
	assert_null(getenv("LISTEN_FDS"));
	assert_null(getenv("LISTEN_FDNAMES"));
	assert_null(getenv("NOTIFY_SOCKET"));
}

/* Descriptors have the numbers that a manager gives them, so in a process of its own. */
static void apart(void (*run)(void))
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		for (int fd = FIRST; fd < FDS_MAX; fd++)
			close(fd);
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void must(bool ok, int line)
{
	if (ok)
		return;
	(void)fprintf(stderr, "line %d of test_net_supervisor.c\n", line);
	_exit(1);
}
#define MUST(what) must(what, __LINE__)

static void take_two(void)
{
	struct supervisor s;
	struct err err = { 0 };
	int fd;

	put_at(listening(SOCK_STREAM), FIRST);
	put_at(listening(SOCK_STREAM), FIRST + 1);
	say(NULL, "2", "http:https");
	MUST(supervisor_open(&s, &err) == 0);
	nothing_is_left_in_the_environment();
	fd = supervisor_take(&s, "https");
	MUST(fd == FIRST + 1);
	MUST(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	MUST(fcntl(fd, F_GETFL) & O_NONBLOCK);
	MUST(supervisor_take(&s, "https") == -1); /* once */
	MUST(supervisor_take(&s, "ssh") == -1);
	MUST(strcmp(supervisor_drop(&s), "http") == 0);
	MUST(!supervisor_drop(&s));
	MUST(fcntl(FIRST, F_GETFD) < 0);
	supervisor_close(&s);
	MUST(fcntl(FIRST + 1, F_GETFD) >= 0); /* it was taken */
}

static void sockets_come_by_name(void **state)
{
	(void)state;
	apart(take_two);
}

static void not_ours(void)
{
	struct supervisor s;
	struct err err = { 0 };

	put_at(listening(SOCK_STREAM), FIRST);
	say("1", "1", "http");
	MUST(supervisor_open(&s, &err) == 0);
	MUST(s.n_sockets == 0 && supervisor_take(&s, "http") == -1);
	MUST(fcntl(FIRST, F_GETFD) >= 0); /* nothing was done to it */
	nothing_is_left_in_the_environment();
	supervisor_say(&s, "READY=1"); /* to nobody */
	supervisor_close(&s);
}

static void what_another_process_was_told_is_not_ours(void **state)
{
	(void)state;
	apart(not_ours);
}

static void lies(void)
{
	static const struct {
		const char *pid, *fds, *names;
	} rows[] = {
		{ "one", "1", "http" },
		{ NULL, "one", "http" },
		{ NULL, "-1", "http" },
		{ NULL, "9", "http" },
		{ NULL, "99999999999", "a" },
		{ NULL, "1", NULL },
		{ NULL, "1", "" },
		{ NULL, "2", "http" },
		{ NULL, "2", "http:http" },
		{ NULL, "4", "a:b:c:d" }, /* the fourth is not open */
		{ NULL, "3", "a:b:c" },   /* the third does not listen */
		{ NULL, "1", "a-name-that-is-longer-than-any-name-of-ours" },
	};
	struct supervisor s;
	struct err err = { 0 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		put_at(listening(SOCK_STREAM), FIRST);
		put_at(listening(SOCK_STREAM), FIRST + 1);
		put_at(listening(SOCK_DGRAM), FIRST + 2);
		close(FIRST + 3);
		say(rows[i].pid, rows[i].fds, rows[i].names);
		if (supervisor_open(&s, &err) == 0) {
			(void)fprintf(stderr, "row %zu is believed\n", i);
			_exit(1);
		}
		nothing_is_left_in_the_environment();
		MUST(err.msg[0] != '\0' && s.n_sockets == 0);
	}
}

static void lies_are_refused(void **state)
{
	(void)state;
	apart(lies);
}

static void tell(struct sockaddr_un *at, socklen_t len, const char *text)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct supervisor s;
	struct err err = { 0 };
	char got[64] = "";

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)at, len), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", text, 1), 0);
	assert_int_equal(supervisor_open(&s, &err), 0);
	nothing_is_left_in_the_environment();
	supervisor_say(&s, "READY=1\nSTATUS=fine");
	assert_int_equal(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT), 19);
	assert_string_equal(got, "READY=1\nSTATUS=fine");
	supervisor_close(&s);
	close(fd);
}

static void a_manager_is_told(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const char *dir = getenv("TMPDIR");
	struct supervisor s;
	struct err err = { 0 };
	char name[64];

	(void)state;
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify-%d", dir ? dir : "/tmp",
		       getpid());
	tell(&at, sizeof(at), at.sun_path);
	assert_int_equal(setenv("NOTIFY_SOCKET", at.sun_path, 1), 0); /* nobody is there */
	assert_int_equal(supervisor_open(&s, &err), -1);
	(void)unlink(at.sun_path);

	(void)snprintf(name, sizeof(name), "@hotcell-test-%d", getpid());
	memset(at.sun_path, 0, sizeof(at.sun_path));
	memcpy(at.sun_path + 1, name + 1, strlen(name) - 1);
	tell(&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name)), name);

	assert_int_equal(setenv("NOTIFY_SOCKET", "relative", 1), 0);
	assert_int_equal(supervisor_open(&s, &err), -1);
}

static size_t beats_of(const char *usec, const char *pid, uint64_t ms)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct loop *l = test_loop();
	struct watchdog dog = { 0 };
	struct notify n;
	struct err err = { 0 };
	char got[64] = "", name[64];
	uint64_t until = loop_now_ms(l) + ms;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	size_t beats = 0;

	(void)snprintf(name, sizeof(name), "@hotcell-dog-%d", getpid());
	memcpy(at.sun_path + 1, name + 1, strlen(name) - 1);
	assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&at,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
			 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
	assert_int_equal(setenv("WATCHDOG_USEC", usec, 1), 0);
	if (pid)
		assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
	assert_int_equal(notify_open(&n, &err), 0);
	assert_null(getenv("WATCHDOG_USEC"));
	assert_null(getenv("WATCHDOG_PID"));
	watchdog_ready(&dog, l, &n);
	assert_int_equal(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT), 7);
	assert_string_equal(got, "READY=1");
	while (loop_now_ms(l) < until && loop_turn(l))
		while (recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT) > 0) {
			assert_memory_equal(got, "WATCHDOG=1", 10);
			beats++;
		}
	watchdog_stop(&dog);
	notify_close(&n);
	loop_free(l);
	close(fd);
	return beats;
}

/* Twice in the time after which it would be given up; not when another process is meant. */
static void a_loop_that_turns_is_heard_of(void **state)
{
	(void)state;
	assert_true(beats_of("20000", NULL, 100) >= 3);
	assert_int_equal(beats_of("20000", "1", 20), 0);
	assert_int_equal(beats_of("much", NULL, 20), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets_come_by_name),
		cmocka_unit_test(what_another_process_was_told_is_not_ours),
		cmocka_unit_test(lies_are_refused),
		cmocka_unit_test(a_loop_that_turns_is_heard_of),
		cmocka_unit_test(a_manager_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
