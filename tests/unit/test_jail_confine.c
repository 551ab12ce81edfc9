/* test_jail_confine.c - what a confined process can no longer do, and what it still can. Each case
 * confines a child of its own, for there is no way back. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/bytes.h"
#include "jail/confine.h"
#include "jail/confine_calls.h"
#include "jail/sanitized.h"

enum { NOBODY = 65534, BROKEN = 99 };

static const char *const few[] = { "read",       "write",      "openat", "close",
				   "brk",        "mmap",       "munmap", "mprotect",
				   "madvise",    "futex",      "clone",  "set_robust_list",
				   "rseq",       "exit",       "socket", "rt_sigprocmask",
				   "getuid",     "geteuid",    "getgid", "exit_group",
				   "prctl",      "tgkill",     "getpid", "sched_getaffinity",
				   "newfstatat", "socketpair", NULL };

#define EXPECT(cond)                                    \
	do {                                            \
		if (!(cond)) {                          \
			fprintf(stderr, "%s\n", #cond); \
			return __LINE__ % 90 + 1;       \
		}                                       \
	} while (0)

/* The child's verdict: 0, or something about the line that was not as expected. */
static int in_child(int (*what)(const struct confine *c), const struct confine *c)
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct err err = { 0 };

		if (confine(c, &err) < 0) {
			fprintf(stderr, "%s\n", err.msg);
			_exit(BROKEN);
		}
		_exit(what(c));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool refused(long rc, int why)
{
	return rc == -1 && errno == why;
}

static int try_calls(const struct confine *c)
{
	int pair[2];

	(void)c;
	EXPECT(syscall(SYS_getuid) >= 0);
	EXPECT(refused(syscall(SYS_getppid), EPERM));
	EXPECT(refused(syscall(SYS_execve, "/bin/true", NULL, NULL), EPERM));
	EXPECT(refused(syscall(SYS_fork), EPERM));
	EXPECT(refused(syscall(SYS_clone, 0, 0, 0, 0, 0), EPERM));
	EXPECT(refused(syscall(SYS_clone3, NULL, 0), ENOSYS));
	EXPECT(refused(syscall(SYS_tgkill, 1, 1, 0), EPERM));
	EXPECT(refused(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), EPERM));
	EXPECT(refused(socket(AF_NETLINK, SOCK_RAW, 0), EPERM));
	EXPECT(refused(socket(AF_INET6, SOCK_STREAM, 0), EPERM));
	EXPECT(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	EXPECT(refused(socket(AF_INET, SOCK_STREAM, 0), EPERM));
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	EXPECT(refused(socketpair(AF_INET, SOCK_STREAM, 0, pair), EPERM));
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	       MAP_FAILED);
	EXPECT(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	return 0;
}

static void what_is_not_named_is_refused(void **state)
{
	const struct confine c = { .user = "", .syscalls = few };

	(void)state;
	if (SANITIZED)
		skip();
	assert_int_equal(in_child(try_calls, &c), 0);
}

static int try_internet(const struct confine *c)
{
	(void)c;
	EXPECT(socket(AF_INET, SOCK_STREAM, 0) >= 0);
	EXPECT(refused(socket(AF_UNIX, SOCK_STREAM, 0), EPERM));
	EXPECT(refused(socket(AF_INET6, SOCK_STREAM, 0), EPERM));
	return 0;
}

static void the_internet_has_a_name_of_its_own(void **state)
{
	static const char *const dials[] = { "socket_inet", "write", "exit_group", NULL };
	const struct confine c = { .user = "", .syscalls = dials };

	(void)state;
	if (SANITIZED)
		skip();
	assert_int_equal(in_child(try_internet, &c), 0);
}

static void *in_thread(void *arg)
{
	*(bool *)arg = refused(syscall(SYS_getppid), EPERM);
	return NULL;
}

static int try_thread(const struct confine *c)
{
	pthread_t t;
	bool was_refused = false;

	(void)c;
	EXPECT(pthread_create(&t, NULL, in_thread, &was_refused) == 0);
	EXPECT(pthread_join(t, NULL) == 0);
	EXPECT(was_refused);
	return 0;
}

static void threads_can_start_and_are_confined_too(void **state)
{
	const struct confine c = { .user = "", .syscalls = few };

	(void)state;
	if (SANITIZED)
		skip();
	assert_int_equal(in_child(try_thread, &c), 0);
}

/* A child of one that may fork takes a filter of its own, and is left with less. */
static int try_child(void)
{
	static const char *const fewer[] = { "write",   "getpid",     "gettid", "tgkill",
					     "getppid", "exit_group", NULL };
	struct err err;

	EXPECT(confine_calls(fewer, &err) == 0);
	EXPECT(refused(syscall(SYS_getuid), EPERM));
	EXPECT(refused(syscall(SYS_getppid), EPERM)); /* its parent's has it not */
	EXPECT(refused(fork(), EPERM));
	EXPECT(syscall(SYS_tgkill, getpid(), gettid(), 0) == 0);
	EXPECT(refused(syscall(SYS_tgkill, 1, 1, 0), EPERM));
	return 0;
}

static int try_fork(const struct confine *c)
{
	pid_t pid = fork();
	int status = 0;

	(void)c;
	if (pid == 0)
		_exit(try_child());
	EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	EXPECT(refused(syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER, 0, 0, 0, 0), EPERM));
	EXPECT(refused(syscall(SYS_vfork), EPERM));
	return WEXITSTATUS(status);
}

static void one_that_forks_allows_no_more_than_that(void **state)
{
	static const char *const forks[] = {
		"fork",   "set_robust_list", "tgkill_forked", "write", "wait4",  "getpid",
		"gettid", "seccomp",         "brk",           "mmap",  "munmap", "rt_sigprocmask",
		"getuid", "exit_group",      "rseq",          NULL
	};
	const struct confine c = { .user = "", .syscalls = forks };

	(void)state;
	if (SANITIZED)
		skip();
	assert_int_equal(in_child(try_fork, &c), 0);
}

static int try_user(const struct confine *c)
{
	(void)c;
	EXPECT(getuid() == NOBODY && geteuid() == NOBODY && getgid() == NOBODY);
	EXPECT(setuid(0) < 0);
	return 0;
}

static void root_becomes_the_user(void **state)
{
	const struct confine number = { .user = "65534", .syscalls = few };
	const struct confine missing = { .user = "no-such-user-at-all", .syscalls = few };

	(void)state;
	if (getuid() != 0)
		skip();
	assert_int_equal(in_child(try_user, &number), 0);
	assert_int_equal(in_child(try_user, &missing), BROKEN);
}

static int try_hidden(const struct confine *c)
{
	(void)c;
	EXPECT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	return 0;
}

/* As another user, which bites where fs.suid_dumpable is not 0, and as who it is. */
static void a_confined_process_has_no_cores(void **state)
{
	const struct confine another = { .user = "65534" }, same = { .user = "" };

	(void)state;
	if (SANITIZED)
		skip();
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
	assert_int_equal(in_child(try_hidden, &same), 0);
	if (getuid() == 0)
		assert_int_equal(in_child(try_hidden, &another), 0);
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

static int try_files(const struct confine *c)
{
	char path[128];

	EXPECT(refused(open("/etc/passwd", O_RDONLY), EACCES));
	EXPECT(refused(open("/", O_RDONLY | O_DIRECTORY), EACCES));
	snprintf(path, sizeof(path), "%s/a", c->paths[0].path);
	EXPECT(open(path, O_RDWR | O_CREAT, 0600) >= 0);
	snprintf(path, sizeof(path), "%s/b", c->paths[1].path);
	EXPECT(open(path, O_RDONLY) >= 0);
	EXPECT(refused(open(path, O_RDWR), EACCES));
	snprintf(path, sizeof(path), "%s/c", c->paths[1].path);
	EXPECT(refused(open(path, O_RDWR | O_CREAT, 0600), EACCES));
	EXPECT(open("/dev/zero", O_RDONLY) >= 0);
	return 0;
}

static void files_outside_are_out_of_reach(void **state)
{
	char writable[] = "/tmp/test_confine.XXXXXX", readable[] = "/tmp/test_confine.XXXXXX";
	char a[64], b[64];

	(void)state;
	if (!has_landlock())
		skip();
	assert_non_null(mkdtemp(writable));
	assert_non_null(mkdtemp(readable));
	snprintf(a, sizeof(a), "%s/a", writable);
	snprintf(b, sizeof(b), "%s/b", readable);
	close(open(b, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	{
		const struct confine_path paths[] = { { writable, CONFINE_WRITE },
						      { readable, CONFINE_READ },
						      { "/dev/zero", CONFINE_READ } };
		const struct confine c = { "", paths, COUNT(paths), few };

		assert_int_equal(in_child(try_files, &c), 0);
	}
	assert_int_equal(unlink(a), 0);
	assert_int_equal(unlink(b), 0);
	assert_int_equal(rmdir(writable), 0);
	assert_int_equal(rmdir(readable), 0);
}

static void mistakes_are_told(void **state)
{
	const char *const wrong[] = { "read", "no_such_call", NULL };
	const struct confine_path nowhere = { "/no/such/folder", CONFINE_READ };
	const struct confine name = { .user = "", .syscalls = wrong };
	const struct confine path = { "", &nowhere, 1, few };

	(void)state;
	if (!SANITIZED)
		assert_int_equal(in_child(try_calls, &name), BROKEN);
	if (has_landlock())
		assert_int_equal(in_child(try_calls, &path), BROKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_named_is_refused),
		cmocka_unit_test(the_internet_has_a_name_of_its_own),
		cmocka_unit_test(threads_can_start_and_are_confined_too),
		cmocka_unit_test(one_that_forks_allows_no_more_than_that),
		cmocka_unit_test(root_becomes_the_user),
		cmocka_unit_test(a_confined_process_has_no_cores),
		cmocka_unit_test(files_outside_are_out_of_reach),
		cmocka_unit_test(mistakes_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
