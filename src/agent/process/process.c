/* process.c - the life of one process; see process.h. */
#include "agent/process/process.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent/process/processes.h"
#include "base/list.h"
#include "base/log.h"

#define TO(s) (1u << (s))
static const struct {
	const char *name;
	unsigned int next;
} rules[] = {
	[PROCESS_STARTING] = { "starting", TO(PROCESS_RUNNING) | TO(PROCESS_FAILED) },
	[PROCESS_RUNNING] = { "running", TO(PROCESS_EXITED) },
	[PROCESS_FAILED] = { "failed", 0 },
	[PROCESS_EXITED] = { "exited", 0 },
};

static void enter(struct process *p, enum process_state next)
{
	assert(rules[p->state].next & TO(next));
	p->state = next;
}

/* --- who listens -------------------------------------------------------------------------- */

static bool anyone_full(const struct process *p)
{
	for (const struct process_listener *ln = p->listeners; ln; ln = ln->next)
		if (ln->full)
			return true;
	return false;
}

/* What it says stays with it for now. */
static bool is_held(const struct process *p)
{
	return anyone_full(p) || p->awaited.active || (p->table && p->table->still);
}

/* Reading is a function of the state and of those who listen. Not before exec is known to have
 * worked: nothing may overtake on_start. */
static void update_reading(struct process *p)
{
	stdio_read(&p->stdio, p->state != PROCESS_STARTING && !is_held(p));
}

void process_update(struct process *p)
{
	update_reading(p);
}

void process_await(struct process *p)
{
	p->parted |= p->listeners != NULL;
	if (p->parted)
		timer_start(&p->awaited, PROCESS_AWAIT_MS);
}

/* While it stood still nobody could come again: then the wait begins anew when it goes on. */
static void on_awaited(struct timer *t)
{
	struct process *p = CONTAINER_OF(t, struct process, awaited);

	p->parted = p->table && p->table->still;
	update_reading(p);
}

void process_listen(struct process *p, struct process_listener *ln,
		    const struct process_listener_ops *ops)
{
	*ln = (struct process_listener){ .ops = ops, .process = p };
	list_add(&p->listeners, ln);
	p->parted = false;
	if (p->awaited.active) {
		timer_stop(&p->awaited);
		update_reading(p);
	}
}

static struct process *unlink_listener(struct process_listener *ln)
{
	struct process *p = ln->process;

	if (!p)
		return NULL;
	list_remove(ln);
	ln->process = NULL;
	return p;
}

void process_leave(struct process_listener *ln)
{
	struct process *p = unlink_listener(ln);

	if (p)
		update_reading(p);
}

void process_hold(struct process_listener *ln, bool full)
{
	ln->full = full;
	if (ln->process)
		update_reading(ln->process);
}

void process_said(struct process *p, enum process_output from, struct bytes b)
{
	p->said = true;
	list_each(struct process_listener, ln, p->listeners)
		if (ln->ops->on_output)
			ln->ops->on_output(ln, from, b);
}

/* --- its end ------------------------------------------------------------------------------ */

static bool is_over(const struct process *p)
{
	return p->reaped && (p->over || p->state == PROCESS_FAILED || !stdio_talks(&p->stdio));
}

static void finish_if_over(struct process *p)
{
	if (!is_over(p))
		return;
	while (p->listeners) {
		struct process_listener *ln = p->listeners;

		(void)unlink_listener(ln);
		if (p->state == PROCESS_FAILED)
			ln->ops->on_fail(ln, &p->fault);
		else
			ln->ops->on_end(ln, &p->end);
	}
	stdio_refuse(&p->stdio);
	p->on_over(p);
}

void process_fell_silent(struct process *p)
{
	finish_if_over(p);
}

/* A pipe ends when the last one who holds it does, and that is waited for, unless we killed the
 * process. A terminal ends with the shell; but what was written before its end is still heard, at
 * the pace of the slowest. */
static void wait_for_last_words(struct process *p)
{
	if (!p->reaped || (!p->hurried && !p->stdio.has_pty))
		return;
	p->said = false;
	timer_start(&p->quiet, PROCESS_QUIET_MS);
}

static void on_quiet(struct timer *t)
{
	struct process *p = CONTAINER_OF(t, struct process, quiet);

	if (!p->hurried && (is_held(p) || (p->said && ++p->patience < PROCESS_LAST_WORDS))) {
		wait_for_last_words(p);
		return;
	}
	p->over = true;
	finish_if_over(p);
}

/* In a group of its own any exit counts: the kernel may have killed a child, and that made the
 * process exit. */
static bool ended_by_oom(const struct process *p)
{
	if (!p->place.group || !command_place_oom(&p->place))
		return false;
	return !p->place.group->shared || (p->end.signo == SIGKILL && !p->hurried);
}

static void reap(struct process *p)
{
	siginfo_t si = { 0 };

	if (waitid(P_PIDFD, (id_t)p->pidfd, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0) {
		log_error("process %d ended and cannot be waited for", p->pid);
		si = (siginfo_t){ .si_code = CLD_KILLED };
		si.si_status = SIGKILL;
	}
	p->reaped = true;
	p->end.exited = si.si_code == CLD_EXITED;
	p->end.code = p->end.exited ? si.si_status : -1;
	p->end.signo = p->end.exited ? 0 : si.si_status;
	p->end.core = si.si_code == CLD_DUMPED;
	p->end.oom = ended_by_oom(p);
	command_place_leave(&p->place);
}

static void tell_started(struct process *p)
{
	list_each(struct process_listener, ln, p->listeners)
		if (ln->ops->on_start)
			ln->ops->on_start(ln);
}

/* Has exec worked? Known for sure once the process has ended. */
static void settle(struct process *p)
{
	enum spawn_news news = spawn_read_news(p->news, &p->fault);

	if (news == SPAWN_PENDING)
		return;
	watch_close(&p->settled);
	enter(p, news == SPAWN_RUNS ? PROCESS_RUNNING : PROCESS_FAILED);
	if (news == SPAWN_RUNS)
		tell_started(p);
	update_reading(p);
}

static void on_settled(struct watch *w, unsigned int events)
{
	(void)events;
	settle(CONTAINER_OF(w, struct process, settled));
}

static void on_ended(struct watch *w, unsigned int events)
{
	struct process *p = CONTAINER_OF(w, struct process, ended);

	(void)events;
	if (p->state == PROCESS_STARTING)
		settle(p);
	watch_close(&p->ended);
	reap(p);
	if (p->state == PROCESS_RUNNING)
		enter(p, PROCESS_EXITED);
	wait_for_last_words(p);
	finish_if_over(p);
}

int process_signal(struct process *p, int signo, struct err *err)
{
	if (!p->reaped && syscall(SYS_pidfd_send_signal, p->pidfd, signo, NULL, 0) < 0)
		return err_set(err, ERR_INTERNAL, errno, "signal process %d", p->pid);
	if (signo == SIGKILL || signo == SIGTERM) {
		p->hurried = true;
		wait_for_last_words(p);
	}
	return 0;
}

/* The time may be up for a process that has ended, too: its children hold the pipes. */
static void on_deadline(struct timer *t)
{
	struct process *p = CONTAINER_OF(t, struct process, deadline);
	struct err err;

	if (process_signal(p, SIGKILL, &err) < 0)
		log_warn("%s", err.msg);
	list_each(struct process_listener, ln, p->listeners)
		if (ln->ops->on_overdue)
			ln->ops->on_overdue(ln);
}

/* --- its birth ---------------------------------------------------------------------------- */

static void close_theirs(int (*theirs)[3])
{
	for (size_t i = 0; i < 3; i++)
		auto_close(&(*theirs)[i]);
}

static int start(struct process *p, struct loop *l, const struct process_spec *spec,
		 struct err *err)
{
	AUTO(close_theirs) int theirs[3] = { -1, -1, -1 };
	struct spawn_order order = spec->order;
	struct spawned child;

	if (stdio_open(p, l, &spec->stdio, theirs, err) < 0)
		return -1;
	order.has_terminal = spec->stdio.has_pty;
	for (size_t i = 0; i < 3; i++)
		order.fd[i] = theirs[order.has_terminal ? 0 : i];
	if (spec->groups)
		command_groups_take(spec->groups, &p->place, &order.cgroup);
	if (spawn(&order, &child, err) < 0)
		return -1;
	p->pid = child.pid;
	p->pidfd = child.pidfd;
	p->news = child.news;
	return 0;
}

/* From here on there is a child: what fails now must not leave it behind. */
static int watch_child(struct process *p, struct loop *l, const struct process_spec *spec,
		       struct err *err)
{
	if (watch_open(&p->ended, l, p->pidfd, WATCH_READ, on_ended, err) < 0 ||
	    watch_open(&p->settled, l, p->news, WATCH_READ, on_settled, err) < 0) {
		(void)kill(p->pid, SIGKILL);
		(void)waitpid(p->pid, NULL, 0);
		return -1;
	}
	timer_init(&p->deadline, l, on_deadline);
	timer_init(&p->quiet, l, on_quiet);
	timer_init(&p->awaited, l, on_awaited);
	if (spec->deadline_ms > 0)
		timer_start(&p->deadline, spec->deadline_ms);
	return 0;
}

static char *copy_text(struct bytes b)
{
	return b.len > 0 ? strndup((const char *)b.ptr, b.len) : strdup("");
}

static void process_freep(struct process **p)
{
	process_free(*p);
}

int process_start(struct loop *l, const struct process_spec *spec, process_over_fn *on_over,
		  struct process **ret, struct err *err)
{
	AUTO(process_freep) struct process *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate process");
	p->pidfd = p->news = -1;
	p->on_over = on_over;
	p->config = copy_text(spec->config);
	p->tag = spec->has_tag ? copy_text(spec->tag) : NULL;
	if (!p->config || (spec->has_tag && !p->tag))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "copy the configuration");
	if (start(p, l, spec, err) < 0 || watch_child(p, l, spec, err) < 0)
		return -1;
	*ret = TAKE(p);
	return 0;
}

void process_free(struct process *p)
{
	if (!p)
		return;
	assert(!p->listeners);
	timer_stop(&p->deadline);
	timer_stop(&p->quiet);
	timer_stop(&p->awaited);
	watch_close(&p->ended);
	watch_close(&p->settled);
	stdio_close(&p->stdio);
	command_place_leave(&p->place);
	auto_close(&p->pidfd);
	auto_close(&p->news);
	free(p->config);
	free(p->tag);
	free(p);
}
