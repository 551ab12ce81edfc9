/* test_injector_forkserver.c - what the injector hears of its forkserver. */
#include "tests/unit/check.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fdmsg.h"
#include "injector/forkserver.h"
#include "injector/forkserver/order.h"

enum { LOOKS_MAX = 10000, LOOK_MS = 1 };

static int handled[2]; /* a byte comes when the signal has come */

static void on_signal(int number)
{
	(void)number;
	if (write(handled[1], "x", 1) < 0)
		abort();
}

static bool sleeps(pid_t pid)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	fclose(file);
	return state == 'S';
}

/* Takes one order; sends its client a signal, and only then the answer. */
static _Noreturn void be_late(int sock, pid_t client)
{
	struct order order;
	struct err err;
	size_t n = 0;
	int fds[ORDER_FDS];
	char got;
	bool ok = fdmsg_recv(sock, &order, sizeof(order), fds, ORDER_FDS, &n, &err) == 0;

	for (int i = 0; i < LOOKS_MAX && !sleeps(client); i++)
		(void)poll(NULL, 0, LOOK_MS);
	ok = ok && kill(client, SIGUSR1) == 0 && read(handled[0], &got, 1) == 1;
	ok = ok &&
	     fdmsg_send(sock, &(struct raised){ 0 }, sizeof(struct raised), fds, 1, &err) == 0;
	_exit(ok ? 0 : 1);
}

static void a_signal_does_not_end_the_forkserver(void **state)
{
	const struct sigaction action = { .sa_handler = on_signal };
	struct forkserver f;
	struct err err = { 0 };
	int pair[2], null[2], worker, status;
	pid_t self = getpid(), pid;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe(null), 0);
	assert_int_equal(pipe(handled), 0);
	pid = fork();
	if (pid == 0)
		be_late(pair[1], self);
	assert_true(pid > 0);
	close(pair[1]);
	f.sock = pair[0];
	worker = forkserver_raise(&f, null[0], null[1], &err);
	if (worker < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(worker);
	close(null[0]);
	close(null[1]);
	forkserver_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_does_not_end_the_forkserver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
