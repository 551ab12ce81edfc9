/* forkserver.c - the injector's side of it; the other one is in forkserver/. */
/* #syscalls: poll recvmsg sendmsg shutdown close */
#include "injector/forkserver.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/fdmsg.h"
#include "injector/forkserver/forks.h"
#include "injector/forkserver/order.h"

static int hear(struct forkserver *n, int *fds, size_t max, size_t *ret_n, struct err *err)
{
	struct pollfd ready = { .fd = n->sock, .events = POLLIN };
	struct raised answer;
	int got;

	/* a loop that watches it has made it non-blocking; a signal that comes is the loop's */
	do
		got = poll(&ready, 1, FORKSERVER_MS);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		return err_set(err, ERR_UNAVAILABLE, 0, "no answer from the forkserver of workers");
	if (fdmsg_recv(n->sock, &answer, sizeof(answer), fds, max, ret_n, err) < 0)
		return err_wrap(err, "the forkserver of workers");
	if (answer.code != ERR_NONE)
		return err_set(err, (enum err_code)answer.code, answer.sys, "fork a worker");
	return 0;
}

int forkserver_start(struct forkserver *n, const struct forkserver_terms *t, struct err *err)
{
	pid_t self = getpid(), pid;
	int pair[2];
	size_t none = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, ERR_INTERNAL, errno, "the way to the forkserver");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		forkserver_be(t, pair[1], self);
	}
	close(pair[1]);
	n->sock = pair[0];
	if (pid < 0)
		return err_set(err, ERR_INTERNAL, errno, "fork the forkserver");
	return hear(n, NULL, 0, &none, err);
}

int forkserver_raise(struct forkserver *n, int channel, int text, struct err *err)
{
	const struct order order = { .version = 1 };
	size_t n_fds = 0;
	int pidfd = -1;

	if (fdmsg_send(n->sock, &order, sizeof(order), (const int[]){ channel, text }, ORDER_FDS,
		       err) < 0)
		return err_wrap(err, "the forkserver of workers");
	if (hear(n, &pidfd, 1, &n_fds, err) < 0) {
		if (err->code == ERR_UNAVAILABLE) /* a late answer must not be taken for the next */
			(void)shutdown(n->sock, SHUT_RDWR);
		return -1;
	}
	return n_fds == 1 ? pidfd : err_set(err, ERR_INTERNAL, 0, "a worker without a handle");
}

void forkserver_end(struct forkserver *n)
{
	if (n->sock >= 0)
		close(n->sock);
	n->sock = -1;
}
