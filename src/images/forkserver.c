/* forkserver.c - the daemon's side of it; the other one is forks.c. */
/* #syscalls: poll recvmsg sendmsg shutdown close */
#include "images/forkserver.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <linux/sched.h>

#include "base/fdmsg.h"
#include "images/forks.h"

static int hear(struct forkserver *f, struct order_answer *ret, int *fds, size_t max, size_t *ret_n,
		struct err *err)
{
	struct pollfd ready = { .fd = f->sock, .events = POLLIN };

	int n;

	/* a loop that watches it has made it non-blocking; a signal that comes is the loop's */
	do
		n = poll(&ready, 1, FORKSERVER_MS);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		return err_set(err, ERR_UNAVAILABLE, 0, "no answer from the forkserver of jobs");
	if (fdmsg_recv(f->sock, ret, sizeof(*ret), fds, max, ret_n, err) < 0)
		return err_wrap(err, "the forkserver of jobs");
	if (ret->code != ERR_NONE)
		return err_set(err, (enum err_code)ret->code, ret->sys, "the forkserver of jobs");
	return 0;
}

/* As fork() does it; root has namespaces to give. */
static pid_t fork_apart(void)
{
	struct clone_args args = { .flags =
					   CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS,
				   .exit_signal = SIGCHLD };

	return geteuid() == 0 ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : fork();
}

int forkserver_start(struct forkserver *f, const struct config_value *set, const struct places *p,
		     struct err *err)
{
	struct order_answer answer;
	size_t none = 0;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, ERR_INTERNAL, errno, "the way to the forkserver");
	pid = fork_apart();
	if (pid == 0) {
		close(pair[0]);
		forks_be(set, p, pair[1]);
	}
	close(pair[1]);
	f->sock = pair[0];
	if (pid < 0)
		return err_set(err, ERR_INTERNAL, errno, "fork the forkserver");
	return hear(f, &answer, NULL, 0, &none, err);
}

static int ask(struct forkserver *f, const struct order *o, const int *fds, size_t n,
	       struct order_answer *ret, int *ret_fd, struct err *err)
{
	size_t n_fds = 0;

	if (fdmsg_send(f->sock, o, sizeof(*o), fds, n, err) < 0)
		return err_wrap(err, "the forkserver of jobs");
	if (hear(f, ret, ret_fd, ret_fd ? 1 : 0, &n_fds, err) < 0) {
		if (err->code == ERR_UNAVAILABLE) /* a late answer must not be taken for the next */
			(void)shutdown(f->sock, SHUT_RDWR);
		return -1;
	}
	return ret_fd && n_fds != 1 ? err_set(err, ERR_INTERNAL, 0, "a job without a handle") : 0;
}

int forkserver_job(struct forkserver *f, const struct order *o, const int *fds, size_t n,
		   int32_t *ret_pid, struct err *err)
{
	struct order_answer answer;
	int pidfd = -1;

	if (ask(f, o, fds, n, &answer, &pidfd, err) < 0)
		return -1;
	*ret_pid = answer.pid;
	return pidfd;
}

int forkserver_clean(struct forkserver *f, const char *id, int32_t pid, struct err *err)
{
	struct order o = { .verb = ORDER_CLEAN, .pid = pid };
	struct order_answer answer;

	snprintf(o.id, sizeof(o.id), "%s", id);
	return ask(f, &o, NULL, 0, &answer, NULL, err);
}

void forkserver_end(struct forkserver *f)
{
	if (f->sock >= 0)
		close(f->sock);
	f->sock = -1;
}
