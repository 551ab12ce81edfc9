/* nursery.c - see nursery.h. */
/* #syscalls: poll recvmsg sendmsg shutdown close */
#include "opener/nursery.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "jail/confine.h"
#include "jail/fdmsg.h"
#include "jail/sanitized.h"
#include "net/loop.h"
#include "opener/worker/syscalls.h"
#include "opener/worker/worker.h"

enum { ORDER_FDS = 2, FAILED = 1 };

struct order {
	uint32_t version;
};

struct raised {
	uint32_t code; /* enum err_code */
	int32_t sys;
};

/* Not to outlive `parent`, and not to be looked into. */
static int hide(pid_t parent, struct err *err)
{
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "hide");
	return getppid() == parent ? 0 : err_set(err, ERR_UNAVAILABLE, 0, "its parent is gone");
}

/* --- a worker ------------------------------------------------------------------------------- */

struct life {
	struct loop *loop;
	struct worker worker;
};

static void on_end(struct worker *w)
{
	loop_stop(CONTAINER_OF(w, struct life, worker)->loop);
}

/* What 512 connections hold at most, and some more: beyond that a connection fails, not the host.
 */
static int bound(struct err *err)
{
	const struct rlimit memory = { WORKER_MEMORY_MAX, WORKER_MEMORY_MAX };

	if (!SANITIZED && setrlimit(RLIMIT_DATA, &memory) < 0)
		return err_set(err, ERR_INTERNAL, errno, "bound the memory of a worker");
	return 0;
}

static int live(const struct worker_tools *tools, const int fds[static ORDER_FDS], pid_t parent,
		struct err *err)
{
	static const struct worker_ops ops = { on_end };
	const struct confine limits = { .user = "", .syscalls = syscalls };
	AUTO(buf_done) struct buf text = BUF_SECRET(WORKER_TEXT_MAX);
	struct life life = { 0 };

	if (hide(parent, err) < 0 || bound(err) < 0 || memory_file_read(fds[1], &text, err) < 0 ||
	    confine(&limits, err) < 0)
		return -1;
	close(fds[1]);
	if (loop_open(&life.loop, err) < 0 ||
	    worker_open(&life.worker, life.loop, &ops, tools, fds[0], buf_view(&text), err) < 0)
		return -1;
	buf_done(&text);
	loop_run(life.loop);
	return 0;
}

_Noreturn static void be_worker(const struct worker_tools *tools, const int *fds, pid_t parent)
{
	struct err err;

	log_init("opener-worker", LOG_INFO);
	if (live(tools, fds, parent, &err) == 0)
		_exit(0);
	log_error("%s", err.msg);
	_exit(FAILED);
}

/* --- the nursery ---------------------------------------------------------------------------- */

/* -1: errno is why. */
static int raise_one(const struct worker_tools *tools, int sock, const int *fds)
{
	pid_t self = getpid(), pid = fork();

	if (pid < 0)
		return -1;
	if (pid == 0) {
		close(sock);
		be_worker(tools, fds, self);
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

static int open_tools(const struct nursery_terms *t, struct worker_tools *ret, struct err *err)
{
	const struct tls_trust trust = { .extra = t->extra_ca };

	if (tls_client_open(&trust, &ret->client, err) < 0)
		return -1;
	return tls_server_open(&ret->server, err);
}

static int serve(const struct nursery_terms *t, int sock, pid_t parent, struct err *err)
{
	const struct confine limits = { .user = t->user };
	const struct sigaction leave = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };
	struct worker_tools tools;

	if (open_tools(t, &tools, err) < 0 || confine(&limits, err) < 0 || hide(parent, err) < 0)
		return -1;
	if (sigaction(SIGCHLD, &leave, NULL) < 0) /* nobody waits for the dead */
		return err_set(err, ERR_INTERNAL, errno, "leave children alone");
	/* it is told when all is well: an order without descriptors would end it */
	if (fdmsg_send(sock, &(struct raised){ 0 }, sizeof(struct raised), NULL, 0, err) < 0)
		return -1;
	while (serve_one(&tools, sock))
		;
	return 0;
}

_Noreturn static void be_nursery(const struct nursery_terms *t, int sock, pid_t parent)
{
	struct err err;

	log_init("opener-nursery", LOG_INFO);
	if (serve(t, sock, parent, &err) == 0)
		_exit(0);
	log_error("%s", err.msg);
	_exit(FAILED);
}

/* --- for the opener ------------------------------------------------------------------------- */

static int hear(struct nursery *n, int *fds, size_t max, size_t *ret_n, struct err *err)
{
	struct pollfd ready = { .fd = n->sock, .events = POLLIN };
	struct raised answer;

	/* a loop that watches it has made it non-blocking */
	if (poll(&ready, 1, NURSERY_MS) != 1)
		return err_set(err, ERR_UNAVAILABLE, 0, "no answer from the nursery of workers");
	if (fdmsg_recv(n->sock, &answer, sizeof(answer), fds, max, ret_n, err) < 0)
		return err_wrap(err, "the nursery of workers");
	if (answer.code != ERR_NONE)
		return err_set(err, (enum err_code)answer.code, answer.sys, "fork a worker");
	return 0;
}

int nursery_start(struct nursery *n, const struct nursery_terms *t, struct err *err)
{
	pid_t self = getpid(), pid;
	int pair[2];
	size_t none = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, ERR_INTERNAL, errno, "the way to the nursery");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		be_nursery(t, pair[1], self);
	}
	close(pair[1]);
	n->sock = pair[0];
	if (pid < 0)
		return err_set(err, ERR_INTERNAL, errno, "fork the nursery");
	return hear(n, NULL, 0, &none, err);
}

int nursery_raise(struct nursery *n, int channel, int text, struct err *err)
{
	const struct order order = { .version = 1 };
	size_t n_fds = 0;
	int pidfd = -1;

	if (fdmsg_send(n->sock, &order, sizeof(order), (const int[]){ channel, text }, ORDER_FDS,
		       err) < 0)
		return err_wrap(err, "the nursery of workers");
	if (hear(n, &pidfd, 1, &n_fds, err) < 0) {
		if (err->code == ERR_UNAVAILABLE) /* a late answer must not be taken for the next */
			(void)shutdown(n->sock, SHUT_RDWR);
		return -1;
	}
	return n_fds == 1 ? pidfd : err_set(err, ERR_INTERNAL, 0, "a worker without a handle");
}

void nursery_end(struct nursery *n)
{
	if (n->sock >= 0)
		close(n->sock);
	n->sock = -1;
}
