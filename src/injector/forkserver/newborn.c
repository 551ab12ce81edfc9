/* newborn.c - see newborn.h. */
/* What it does before it has its own filter. */
/* #syscalls: prctl getppid fstat newfstatat pread64 seccomp close */
#include "injector/forkserver/newborn.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "jail/confine_calls.h"
#include "injector/forkserver/order.h"
#include "injector/worker/syscalls.h"

enum { FAILED = 1 };

struct life {
	struct loop *loop;
	struct worker worker;
};

static void on_end(struct worker *w)
{
	loop_stop(CONTAINER_OF(w, struct life, worker)->loop);
}

int newborn_end_with(pid_t parent, struct err *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "end with its parent");
	return getppid() == parent ? 0 : err_set(err, ERR_UNAVAILABLE, 0, "its parent is gone");
}

static int live(const struct worker_tools *tools, const int fds[static ORDER_FDS], pid_t parent,
		struct err *err)
{
	static const struct worker_ops ops = { on_end };
	AUTO(buf_done) struct buf text = BUF_SECRET(WORKER_TEXT_MAX);
	struct life life = { 0 };

	if (newborn_end_with(parent, err) < 0 || loop_open(&life.loop, err) < 0 ||
	    memory_file_read(fds[1], &text, err) < 0 || confine_calls(syscalls, err) < 0)
		return -1;
	close(fds[1]);
	if (worker_open(&life.worker, life.loop, &ops, tools, fds[0], buf_view(&text), err) < 0)
		return -1;
	buf_done(&text);
	loop_run(life.loop);
	return 0;
}

_Noreturn void newborn_live(const struct worker_tools *tools, const int *fds, pid_t parent)
{
	struct err err;

	log_init("injector-worker", LOG_INFO);
	if (live(tools, fds, parent, &err) == 0)
		_exit(0);
	log_error("%s", err.msg);
	_exit(FAILED);
}
