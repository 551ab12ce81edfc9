/* test_vm_qmp_qemu.c - the same conversations with the real QEMU; skipped where there is none. */
#include "tests/unit/vm_qmp_scenes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "net/fd_stream.h"

#define QEMU "/usr/bin/qemu-system-x86_64"

static pid_t qemu;

/* The socket listens before QEMU starts, as warden has it: a connect succeeds at once. */
static int start_qemu(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(sa_family_t); /* autobind: a name of the system's choice */
	int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(door, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(door, 1), 0);
	len = sizeof(at);
	assert_int_equal(getsockname(door, (struct sockaddr *)&at, &len), 0);
	qemu = fork();
	assert_true(qemu >= 0);
	if (qemu == 0) {
		signal(SIGPIPE, SIG_DFL);
		dup2(door, 3);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is cut off leaves no QEMU behind */
		execl(QEMU, QEMU, "-nodefaults", "-no-user-config", "-machine", "none", "-display",
		      "none", "-S", "-chardev", "socket,id=q,fd=3,server=on,wait=off", "-mon",
		      "chardev=q,mode=control", NULL);
		_exit(127);
	}
	assert_int_equal(connect(fd, (struct sockaddr *)&at, len), 0);
	close(door);
	return fd;
}

static void peer_start(struct scene *s, struct stream **ret)
{
	struct err err;

	if (fd_stream_open(s->loop, start_qemu(), FD_STREAM_BOTH, ret, &err) < 0)
		fail_msg("%s", err.msg);
}

static void peer_end(void)
{
	if (qemu <= 0)
		return;
	kill(qemu, SIGKILL);
	waitpid(qemu, NULL, 0);
	qemu = 0;
}

static void a_killed_qemu_is_noticed(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	scene_run(&s, until_ready);
	peer_end();
	scene_run(&s, until_gone);
	assert_int_equal(s.why.code, ERR_UNAVAILABLE);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		QMP_SCENES,
		cmocka_unit_test(a_killed_qemu_is_noticed),
	};

	if (faccessat(AT_FDCWD, QEMU, X_OK, 0) < 0)
		return 77; /* Meson's word for skipped */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
