/* program.c - see program.h. */
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "base/clock.h"

enum { NOT_FOUND_STATUS = 127, BY_SIGNAL = 128, PIECE = 1024 };

static _Noreturn void become(const char *const *argv, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(out, STDERR_FILENO) < 0)
		_exit(NOT_FOUND_STATUS);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(NOT_FOUND_STATUS);
}

/* Until it has closed its end; what does not fit is read and dropped. False: the time is over. */
static bool read_said(int fd, uint64_t ms, struct program *p)
{
	uint64_t end = clock_mono_ns() + ms * NSEC_PER_MSEC, now;
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	char piece[PIECE];
	size_t len = 0;

	while ((now = clock_mono_ns()) < end) {
		ssize_t n;

		if (poll(&ready, 1, (int)((end - now) / NSEC_PER_MSEC) + 1) != 1)
			continue;
		n = read(fd, piece, sizeof(piece));
		if (n <= 0)
			return true;
		for (ssize_t i = 0; i < n && len + 1 < sizeof(p->said); i++)
			p->said[len++] = piece[i];
		p->said[len] = '\0';
	}
	return false;
}

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : BY_SIGNAL + WTERMSIG(status);
}

int program_run(const char *const *argv, uint64_t ms, struct program *ret, struct err *err)
{
	int ends[2], status = 0;
	bool in_time;
	pid_t pid;

	*ret = (struct program){ 0 };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "run %s", argv[0]);
	pid = fork();
	if (pid == 0)
		become(argv, ends[1]);
	close(ends[1]);
	in_time = pid > 0 && read_said(ends[0], ms, ret);
	close(ends[0]);
	if (pid < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "run %s", argv[0]);
	if (!in_time)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ret->status = status_of(status);
	if (!in_time)
		return err_set(err, ERR_TIMEOUT, 0, "%s did not end in %u s", argv[0],
			       (unsigned int)(ms / 1000));
	if (ret->status == NOT_FOUND_STATUS)
		return err_set(err, ERR_NOT_FOUND, 0, "%s cannot be run: is it there?", argv[0]);
	return 0;
}
