/* forks.c - see forks.h.
 *
 * Its filter is for good and holds for all it forks, so it has what a worker needs; each worker
 * then takes a smaller one for itself (newborn.c). What is the same for all of them it gives up
 * before.
 */
/* #syscalls: fork set_robust_list tgkill_forked pidfd_open recvmsg sendmsg close getpid */
#include "injector/forkserver/forks.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "jail/confine.h"
#include "jail/confine_calls.h"
#include "base/fdmsg.h"
#include "jail/sanitized.h"
#include "injector/forkserver/newborn.h"
#include "injector/forkserver/order.h"
#include "injector/forkserver/syscalls.h"

enum { FAILED = 1 };

/* -1: errno is why. */
static int raise_one(const struct worker_tools *tools, int sock, const int *fds)
{
	pid_t self = getpid(), pid = fork();

	if (pid < 0)
		return -1;
	if (pid == 0) {
		close(sock);
		newborn_live(tools, fds, self);
	}
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static bool serve_one(const struct worker_tools *tools, int sock)
{
	struct raised answer = { 0 };
	AUTO(auto_close) int pidfd = -1;
	int fds[ORDER_FDS];
	struct order order;
	struct err err;
	size_t n = 0;

	if (fdmsg_recv(sock, &order, sizeof(order), fds, ORDER_FDS, &n, &err) < 0 || n != ORDER_FDS)
		return false;
	pidfd = raise_one(tools, sock, fds);
	if (pidfd < 0)
		answer = (struct raised){ ERR_EXHAUSTED, errno };
	close(fds[0]);
	close(fds[1]);
	return fdmsg_send(sock, &answer, sizeof(answer), &pidfd, pidfd >= 0, &err) == 0;
}

static int open_tools(const struct forkserver_terms *t, struct worker_tools *ret, struct err *err)
{
	const struct tls_trust trust = { .extra = t->extra_ca };

	if (tls_client_open(&trust, &ret->client, err) < 0)
		return -1;
	return tls_server_open(&ret->server, err);
}

/* What 512 connections hold at most, and some more: beyond that a connection fails, not the host.
 * Each worker has so much for itself. */
static int bound(struct err *err)
{
	const struct rlimit memory = { WORKER_MEMORY_MAX, WORKER_MEMORY_MAX };

	if (!SANITIZED && setrlimit(RLIMIT_DATA, &memory) < 0)
		return err_set(err, ERR_INTERNAL, errno, "bound the memory of workers");
	return 0;
}

static int give_up(const struct forkserver_terms *t, pid_t parent, struct err *err)
{
	const struct confine limits = { .user = t->user };
	const struct sigaction leave = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };

	if (confine(&limits, err) < 0 || bound(err) < 0)
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0) < 0) /* not to be looked into, nor its workers */
		return err_set(err, ERR_INTERNAL, errno, "hide");
	if (sigaction(SIGCHLD, &leave, NULL) < 0) /* nobody waits for the dead */
		return err_set(err, ERR_INTERNAL, errno, "leave children alone");
	if (newborn_end_with(parent, err) < 0)
		return -1;
	return confine_calls(syscalls, err);
}

static int serve(const struct forkserver_terms *t, int sock, pid_t parent, struct err *err)
{
	struct worker_tools tools;

	if (open_tools(t, &tools, err) < 0 || give_up(t, parent, err) < 0)
		return -1;
	/* it is told when all is well: an order without descriptors would end it */
	if (fdmsg_send(sock, &(struct raised){ 0 }, sizeof(struct raised), NULL, 0, err) < 0)
		return -1;
	while (serve_one(&tools, sock))
		;
	return 0;
}

_Noreturn void forkserver_be(const struct forkserver_terms *t, int sock, pid_t parent)
{
	struct err err;

	log_init("injector-forkserver", LOG_INFO);
	if (serve(t, sock, parent, &err) == 0)
		_exit(0);
	log_error("%s", err.msg);
	_exit(FAILED);
}
