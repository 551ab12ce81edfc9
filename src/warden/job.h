/* job.h - work that may block, done by a one-shot child so that warden itself never waits.
 *
 * The child runs one function, sends one result (with descriptors) and exits; it dies with warden.
 * Warden learns of the result from a socket in its epoll set, and ends a child that passes its
 * deadline. Everything the child owns besides the result is gone with it.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum { JOB_FDS_MAX = 4, JOB_DEADLINE_MS = 20000 };

struct job_result {
	struct err err; /* code ERR_NONE: success */
	int32_t pid;    /* of what the job started, 0 if nothing */
	uint32_t n_fds;
	int fds[JOB_FDS_MAX]; /* copies of them become warden's */
};

/* Runs in the child. What it opens and does not put into ret->fds is gone with it. */
typedef int job_fn(const void *args, struct job_result *ret, struct err *err);

struct job {
	int pidfd;
	int result; /* the end warden reads */
	uint64_t deadline_ns;
};

/* Start `fn` in a child with its own copy of args. Of all descriptors it keeps `keep` alone: one
 * that hangs must not hold what belongs to others. keep has room for one more, and is sorted. */
int job_start(struct job *job, job_fn *fn, const void *args, int *keep, size_t n_keep,
	      struct err *err) NODISCARD;

/* The result socket is readable: take what the child sent, or the reason why it sent nothing. The
 * child is ended; the job is empty afterwards. */
void job_finish(struct job *job, struct job_result *ret);
void job_result_close(const struct job_result *r); /* the descriptors nobody wanted */

/* Too late: end the child. Its closed socket then brings job_finish about. */
void job_expire(struct job *job);
