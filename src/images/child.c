/* child.c - see child.h. */
#include "images/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/log.h"
#include "jail/confine_files.h"
#include "images/program_filter.h"
#include "jail/resources.h"
#include "jail/sanitized.h"

enum { HIGH_FD = 512, DESCRIPTORS = 1024, PIECE = 16 * 1024, FAILED = 127, SIGNALLED = 128 };

static_assert((int)HIGH_FD > (int)CHILD_FDS_MAX + 16, "copies are out of the way");

struct pipes {
	int out[2], errors[2];
};

static void pipes_close(struct pipes *p)
{
	for (size_t i = 0; i < 2; i++) {
		auto_close(&p->out[i]);
		auto_close(&p->errors[i]);
		p->out[i] = p->errors[i] = -1;
	}
}

/* --- in the child ----------------------------------------------------------------------------- */

static int put(int from, int to, struct err *err)
{
	if (dup2(from, to) < 0)
		return err_set(err, ERR_INTERNAL, errno, "arrange descriptor %d", to);
	return 0;
}

/* All of them out of the way, then each to its number. */
static int arrange(const struct child *c, const struct pipes *p, struct err *err)
{
	int high[CHILD_FDS_MAX], null = fcntl(c->null, F_DUPFD_CLOEXEC, HIGH_FD);
	int out = fcntl(p->out[1], F_DUPFD_CLOEXEC, HIGH_FD);
	int errors = fcntl(c->errors ? p->errors[1] : 2, F_DUPFD_CLOEXEC, HIGH_FD);
	bool whole = null >= 0 && out >= 0 && errors >= 0;

	assert(c->n_fds <= CHILD_FDS_MAX);
	for (size_t i = 0; i < c->n_fds; i++) {
		high[i] = fcntl(c->fds[i].from, F_DUPFD_CLOEXEC, HIGH_FD);
		whole &= high[i] >= 0;
	}
	if (!whole || close_range(0, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return err_set(err, ERR_INTERNAL, errno, "arrange descriptors");
	if (put(null, 0, err) < 0 || put(null, 1, err) < 0 || put(errors, 2, err) < 0 ||
	    put(out, c->reader_fd, err) < 0)
		return -1;
	for (size_t i = 0; i < c->n_fds; i++)
		if (put(high[i], c->fds[i].to, err) < 0)
			return -1;
	return 0;
}

static int bound(const struct child *c, struct err *err)
{
	const struct resources limits = { DESCRIPTORS, c->file_bytes };
	const struct rlimit memory = { c->memory_bytes, c->memory_bytes };

	if (resources_limit(&limits, err) < 0)
		return -1;
	if (!SANITIZED && c->memory_bytes > 0 && setrlimit(RLIMIT_DATA, &memory) < 0)
		return err_set(err, ERR_INTERNAL, errno, "bound its memory");
	return 0;
}

static int give_up(const struct child *c, pid_t parent, struct err *err)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return err_set(err, ERR_INTERNAL, errno, "end with its parent");
	if (sigaction(SIGPIPE, &usual, NULL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "signals as usual");
	if (bound(c, err) < 0 || confine_files(c->paths, c->n_paths, err) < 0)
		return -1;
	return program_filter_load(c->denied, err);
}

/* execve takes what it does not change as if it did. */
static void run(const struct child *c)
{
	char *const *argv, *const *environment;

	memcpy(&argv, &c->argv, sizeof(argv));
	memcpy(&environment, &c->environment, sizeof(environment));
	execve(c->argv[0], argv, environment);
}

static _Noreturn void be(const struct child *c, const struct pipes *p, pid_t parent)
{
	struct err err = { 0 };

	if (arrange(c, p, &err) == 0 && give_up(c, parent, &err) == 0) {
		run(c);
		err_set(&err, ERR_INTERNAL, errno, "run %s", c->argv[0]);
	}
	log_error("%s", err.msg);
	_exit(FAILED);
}

/* --- beside it -------------------------------------------------------------------------------- */

static int take_lines(struct child_reader *r, struct err *err)
{
	struct bytes rest = buf_view(&r->part), line;

	while (bytes_cut(&rest, '\n', &line))
		if (r->on_line(r, line, err) < 0)
			return -1;
	if (rest.len >= CHILD_LINE_MAX) {
		if (r->on_line(r, rest, err) < 0)
			return -1;
		rest.len = 0;
	}
	buf_drop(&r->part, r->part.len - rest.len);
	return 0;
}

static int take_output(struct child_reader *r, struct bytes piece, struct err *err)
{
	r->total += piece.len;
	if (r->total > CHILD_OUTPUT_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "it says too much");
	if (!r->on_line)
		return buf_add(r->all, piece, err);
	if (buf_add(&r->part, piece, err) < 0)
		return -1;
	return take_lines(r, err);
}

static int take_errors(struct buf *errors, struct bytes piece, struct err *err)
{
	if (errors->len + piece.len > CHILD_ERROR_MAX)
		buf_drop(errors, errors->len < piece.len ? errors->len : piece.len);
	return buf_add(errors, piece, err);
}

/* Returns 1, or 0 at the end. */
static int take(const struct child *c, int fd, bool is_output, struct err *err)
{
	uint8_t piece[PIECE];
	ssize_t n = read(fd, piece, is_output ? sizeof(piece) : CHILD_ERROR_MAX / 2);
	struct bytes got = { piece, n > 0 ? (size_t)n : 0 };

	if (n < 0 && errno != EINTR)
		return err_set(err, ERR_INTERNAL, errno, "read what it says");
	if (n == 0)
		return 0;
	if (is_output ? take_output(c->reader, got, err) < 0 : take_errors(c->errors, got, err) < 0)
		return -1;
	return 1;
}

static int follow(const struct child *c, struct pipes *p, struct err *err)
{
	struct pollfd ready[2] = { { .fd = p->out[0], .events = POLLIN },
				   { .fd = p->errors[0], .events = POLLIN } };

	while (ready[0].fd >= 0 || ready[1].fd >= 0) {
		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			return err_set(err, ERR_INTERNAL, errno, "wait for what it says");
		for (size_t i = 0; i < 2; i++) {
			int more = ready[i].fd >= 0 && ready[i].revents
					   ? take(c, ready[i].fd, i == 0, err)
					   : 1;

			if (more < 0)
				return -1;
			if (more == 0)
				ready[i].fd = -1;
		}
	}
	if (c->reader->part.len > 0)
		return c->reader->on_line(c->reader, buf_view(&c->reader->part), err);
	return 0;
}

static int ended(pid_t pid, struct err *err)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(err, ERR_INTERNAL, errno, "wait for a program");
	return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
}

int child_run(const struct child *c, struct err *err)
{
	AUTO(pipes_close) struct pipes p = { { -1, -1 }, { -1, -1 } };
	struct err late;
	pid_t pid, parent = getpid();
	int rc;

	c->reader->part = BUF_MAX(CHILD_LINE_MAX + PIECE);
	if (pipe2(p.out, O_CLOEXEC) < 0 || (c->errors && pipe2(p.errors, O_CLOEXEC) < 0))
		return err_set(err, ERR_EXHAUSTED, errno, "make pipes");
	pid = fork();
	if (pid == 0)
		be(c, &p, parent);
	if (pid < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "fork for %s", c->argv[0]);
	auto_close(&p.out[1]);
	auto_close(&p.errors[1]);
	p.out[1] = p.errors[1] = -1;
	rc = follow(c, &p, err);
	buf_done(&c->reader->part);
	if (rc < 0) {
		(void)kill(pid, SIGKILL);
		(void)ended(pid, &late);
		return -1;
	}
	return ended(pid, err);
}
