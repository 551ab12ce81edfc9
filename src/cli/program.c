/* program.c - see program.h. */
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { NOT_STARTED_STATUS = 126, NOT_FOUND_STATUS = 127, BY_SIGNAL = 128, PIECE = 1024 };

struct how {
	bool apart;  /* in a network of its own */
	bool errors; /* what it says of them is kept, too */
};

static _Noreturn void become(const char *const *argv, const struct how *how, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char *const *words = (char *const *)(uintptr_t)argv;

	if (how->apart && unshare(CLONE_NEWNET) < 0) {
		(void)dprintf(out, "such a network cannot be made: %s", strerror(errno));
		_exit(NOT_STARTED_STATUS);
	}
	if (dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(how->errors ? out : null, STDERR_FILENO) < 0)
		_exit(NOT_STARTED_STATUS);
	if (strchr(argv[0], '/'))
		execv(argv[0], words); /* never by a shell, also of a file that is no program */
	else
		execvp(argv[0], words);
	_exit(NOT_FOUND_STATUS);
}

/* -1: it could not be started. Else *ret_fd is what it says. */
static pid_t begin(const char *const *argv, const struct how *how, int *ret_fd)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		become(argv, how, ends[1]);
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	*ret_fd = ends[0];
	return pid;
}

struct said {
	char *text;
	size_t len, size;
	bool whole; /* what does not fit is read and dropped; else that is the end */
};

/* Until it has closed its end, or said enough. False: the time is over. */
static bool read_said(int fd, uint64_t end, struct said *s)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	char piece[PIECE];
	uint64_t now;

	while ((now = clock_mono_ns()) < end) {
		size_t room = s->size - 1 - s->len;
		ssize_t n;

		if (room == 0 && !s->whole)
			return true;
		if (poll(&ready, 1, (int)((end - now) / NSEC_PER_MSEC) + 1) != 1)
			continue;
		n = read(fd, room ? s->text + s->len : piece,
			 room && room < sizeof(piece) ? room : sizeof(piece));
		if (n <= 0)
			return true;
		s->len += room ? (size_t)n : 0;
		s->text[s->len] = '\0';
	}
	return false;
}

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : BY_SIGNAL + WTERMSIG(status);
}

static int end_of(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status_of(status);
}

int program_run(const char *const *argv, uint64_t ms, struct program *ret, struct err *err)
{
	const struct how how = { .errors = true };
	struct said said = { ret->said, 0, sizeof(ret->said), true };
	bool in_time;
	pid_t pid;
	int fd;

	*ret = (struct program){ 0 };
	pid = begin(argv, &how, &fd);
	if (pid < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "run %s", argv[0]);
	in_time = read_said(fd, clock_mono_ns() + ms * NSEC_PER_MSEC, &said);
	close(fd);
	if (!in_time)
		kill(pid, SIGKILL);
	ret->status = end_of(pid);
	if (!in_time)
		return err_set(err, ERR_TIMEOUT, 0, "%s did not end in %u s", argv[0],
			       (unsigned int)(ms / 1000));
	if (ret->status == NOT_FOUND_STATUS)
		return err_set(err, ERR_NOT_FOUND, 0, "%s cannot be run: is it there?", argv[0]);
	return 0;
}

static bool output(const char *const *argv, const struct how *how, char *ret, size_t size)
{
	struct said said = { ret, 0, size, false };
	bool in_time = true;
	pid_t pid;
	int fd;

	pid = begin(argv, how, &fd);
	if (pid > 0) {
		in_time = read_said(fd, clock_mono_ns() + PROGRAM_S * NSEC_PER_SEC, &said);
		close(fd);
		kill(pid, SIGKILL); /* it said what we wanted, or never will */
		(void)end_of(pid);
	}
	if (said.len > 0)
		return true;
	if (in_time)
		snprintf(ret, size, "does not run");
	else
		snprintf(ret, size, "said nothing within %d seconds", PROGRAM_S);
	return false;
}

bool program_output(const char *const *argv, char *ret, size_t size)
{
	return output(argv, &(struct how){ 0 }, ret, size);
}

bool program_output_apart(const char *const *argv, char *ret, size_t size)
{
	return output(argv, &(struct how){ .apart = true, .errors = true }, ret, size);
}
