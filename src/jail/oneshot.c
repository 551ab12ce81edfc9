/* oneshot.c - fork, give power away, exec, wait. */
#include "jail/oneshot.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "jail/credentials.h"

enum { NOBODY = 65534, READ_STEP = 4096 };

struct pipes {
	int in[2], out[2]; /* [0] is read, [1] is written */
};

static void pipes_close(struct pipes *p)
{
	for (size_t i = 0; i < 2; i++) {
		auto_close(&p->in[i]);
		auto_close(&p->out[i]);
		p->in[i] = p->out[i] = -1;
	}
}

static _Noreturn void oneshot_child(const struct oneshot *o, const struct pipes *p, pid_t parent)
{
	const struct credentials who = { NOBODY, NOBODY, o->capabilities };
	static char *const environment[] = { NULL };
	char *argv[ONESHOT_ARGS_MAX + 1] = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; o->argv[i] && i < ONESHOT_ARGS_MAX; i++)
		memcpy(&argv[i], &o->argv[i], sizeof(argv[i])); /* execve only reads it */
	if (dup2(p->in[0], 0) < 0 || dup2(p->out[1], 1) < 0 || credentials_become(&who, &err) < 0)
		_exit(126);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of ids would have cleared it */
	if (getppid() != parent)
		_exit(126);
	execve(argv[0], argv, environment);
	_exit(127);
}

static int read_all(int fd, struct buf *out, struct err *err)
{
	uint8_t scrap[READ_STEP], *room = scrap;
	ssize_t got;

	do {
		if (out && buf_reserve(out, READ_STEP, &room, err) < 0)
			return -1;
		got = read(fd, room, READ_STEP);
		if (got < 0)
			return err_set(err, ERR_INTERNAL, errno, "read its output");
		if (out)
			buf_claim(out, (size_t)got);
	} while (got > 0);
	return 0;
}

static int open_pipes(const struct oneshot *o, struct pipes *p, struct err *err)
{
	assert(o->input.len <= ONESHOT_INPUT_MAX); /* all of it fits a pipe: nothing blocks */
	if (pipe2(p->in, O_CLOEXEC) < 0 || pipe2(p->out, O_CLOEXEC) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make pipes");
	if (o->input.len && write(p->in[1], o->input.ptr, o->input.len) != (ssize_t)o->input.len)
		return err_set(err, ERR_INTERNAL, errno, "write its input");
	return 0;
}

static int wait_for(pid_t pid, struct err *err)
{
	int status;

	if (waitpid(pid, &status, 0) < 0)
		return err_set(err, ERR_INTERNAL, errno, "wait for it");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(err, ERR_INTERNAL, 0, "it ended with status 0x%x", (unsigned int)status);
}

int oneshot_run(const struct oneshot *o, struct err *err)
{
	AUTO(pipes_close) struct pipes p = { { -1, -1 }, { -1, -1 } };
	struct err late = { 0 };
	pid_t pid, parent = getpid();
	int failed;

	if (open_pipes(o, &p, err) < 0)
		return err_wrap(err, "run %s", o->argv[0]);
	pid = fork();
	if (pid == 0)
		oneshot_child(o, &p, parent);
	if (pid < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "fork %s", o->argv[0]);
	auto_close(&p.in[1]);
	auto_close(&p.out[1]);
	p.in[1] = p.out[1] = -1;
	failed = read_all(p.out[0], o->output, err);
	pipes_close(&p); /* one that still writes is told so, and ends */
	if (wait_for(pid, failed ? &late : err) < 0 || failed)
		return err_wrap(err, "run %s", o->argv[0]);
	return 0;
}
