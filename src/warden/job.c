/* job.c - forking, and carrying one result back. */
/* #parses: one result of a fixed size; from a job, a child that warden forked */
#include "warden/job.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fdmsg.h"

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* All but the standard ones and `keep`. */
static void close_others(int *keep, size_t n)
{
	unsigned int from = STDERR_FILENO + 1;

	qsort(keep, n, sizeof(keep[0]), by_number);
	for (size_t i = 0; i < n; i++) {
		if (keep[i] > (int)from)
			close_range(from, (unsigned int)keep[i] - 1, 0);
		if (keep[i] >= (int)from)
			from = (unsigned int)keep[i] + 1;
	}
	close_range(from, ~0u, 0);
}

static _Noreturn void job_child(job_fn *fn, const void *args, int result, pid_t parent)
{
	struct job_result r = { 0 };
	struct err err = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* warden died before the line above */
		_exit(1);
	if (fn(args, &r, &err) < 0) {
		r.err = err;
		r.n_fds = 0;
	}
	/* Nobody to tell when this fails: warden sees the socket close and says so. */
	if (fdmsg_send(result, &r, sizeof(r), r.fds, r.n_fds, &err) < 0)
		_exit(1);
	_exit(0);
}

int job_start(struct job *job, job_fn *fn, const void *args, int *keep, size_t n_keep,
	      struct err *err)
{
	AUTO(auto_close) int ours = -1;
	AUTO(auto_close) int theirs = -1;
	pid_t parent = getpid();
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a job's socket");
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "fork a job");
	if (pid == 0) {
		keep[n_keep++] = theirs;
		close_others(keep, n_keep);
		job_child(fn, args, theirs, parent);
	}
	job->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	job->result = take_fd(&ours);
	job->deadline_ns = clock_mono_ns() + JOB_DEADLINE_MS * NSEC_PER_MSEC;
	return 0;
}

static void job_kill(const struct job *job)
{
	if (job->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, job->pidfd, SIGKILL, NULL, 0);
}

void job_expire(struct job *job)
{
	job_kill(job);
	job->deadline_ns = UINT64_MAX;
}

void job_finish(struct job *job, struct job_result *ret)
{
	int fds[JOB_FDS_MAX];
	struct err err = { 0 };
	size_t n = 0;

	*ret = (struct job_result){ 0 };
	if (fdmsg_recv(job->result, ret, sizeof(*ret), fds, JOB_FDS_MAX, &n, &err) < 0)
		err_set(&ret->err, ERR_TIMEOUT, 0, "the job ended without a result");
	ret->n_fds = (uint32_t)n;
	memcpy(ret->fds, fds, n * sizeof(fds[0]));
	job_kill(job); /* it has nothing left to do; the main loop reaps it */
	close(job->result);
	auto_close(&job->pidfd);
	*job = (struct job){ .pidfd = -1, .result = -1 };
}

void job_result_close(const struct job_result *r)
{
	for (uint32_t i = 0; i < r->n_fds; i++)
		close(r->fds[i]);
}
