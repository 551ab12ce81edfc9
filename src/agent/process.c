/* process.c - the life of one process; see process.h. */
#include "agent/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/log.h"
#include "net/fd_stream.h"

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

/* Reading is a function of the state and of those who listen. Not before exec is known to have
 * worked: nothing may overtake on_start. */
static void update_reading(struct process *p)
{
	bool on = p->state != PROCESS_STARTING && !anyone_full(p);

	for (size_t i = 0; i < PROCESS_OUTPUTS; i++)
		if (p->out[i].stream)
			stream_read(p->out[i].stream, on);
}

void process_listen(struct process *p, struct process_listener *ln,
		    const struct process_listener_ops *ops)
{
	*ln = (struct process_listener){ ops, p, p->listeners, &p->listeners, false };
	if (ln->next)
		ln->next->prev = &ln->next;
	p->listeners = ln;
}

static struct process *unlink_listener(struct process_listener *ln)
{
	struct process *p = ln->process;

	if (!p)
		return NULL;
	*ln->prev = ln->next;
	if (ln->next)
		ln->next->prev = ln->prev;
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

static void tell_output(struct process *p, enum process_output from, struct bytes b)
{
	struct process_listener *next;

	for (struct process_listener *ln = p->listeners; ln; ln = next) {
		next = ln->next;
		ln->ops->on_output(ln, from, b);
	}
}

/* --- its end ------------------------------------------------------------------------------ */

static bool pipes_open(const struct process *p)
{
	return p->out[PROCESS_STDOUT].stream || p->out[PROCESS_STDERR].stream;
}

static void finish_if_over(struct process *p)
{
	if (!p->reaped || (pipes_open(p) && !p->hurried && p->state != PROCESS_FAILED))
		return;
	while (p->listeners) {
		struct process_listener *ln = p->listeners;

		(void)unlink_listener(ln);
		if (p->state == PROCESS_FAILED)
			ln->ops->on_fail(ln, &p->fault);
		else
			ln->ops->on_end(ln, &p->end);
	}
	p->on_over(p);
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
}

static void tell_started(struct process *p)
{
	struct process_listener *next;

	for (struct process_listener *ln = p->listeners; ln; ln = next) {
		next = ln->next;
		ln->ops->on_start(ln);
	}
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
	finish_if_over(p);
}

static void on_over_soon(struct timer *t)
{
	finish_if_over(CONTAINER_OF(t, struct process, over_soon));
}

int process_signal(struct process *p, int signo, struct err *err)
{
	if (!p->reaped && syscall(SYS_pidfd_send_signal, p->pidfd, signo, NULL, 0) < 0)
		return err_set(err, ERR_INTERNAL, errno, "signal process %d", p->pid);
	if (signo == SIGKILL || signo == SIGTERM) {
		p->hurried = true;
		if (p->reaped)
			timer_start(&p->over_soon, 0);
	}
	return 0;
}

/* The time may be up for a process that has ended, too: its children hold the pipes. */
static void on_deadline(struct timer *t)
{
	struct process *p = CONTAINER_OF(t, struct process, deadline);
	struct process_listener *next;
	struct err err;

	if (process_signal(p, SIGKILL, &err) < 0)
		log_warn("%s", err.msg);
	for (struct process_listener *ln = p->listeners; ln; ln = next) {
		next = ln->next;
		ln->ops->on_overdue(ln);
	}
}

/* --- its pipes ---------------------------------------------------------------------------- */

static void on_data(struct stream_user *u, struct bytes in)
{
	struct process_pipe *pp = CONTAINER_OF(u, struct process_pipe, user);

	tell_output(pp->process, pp->which, in);
}

static void end_pipe(struct stream_user *u)
{
	struct process_pipe *pp = CONTAINER_OF(u, struct process_pipe, user);

	stream_close(pp->stream);
	pp->stream = NULL;
	finish_if_over(pp->process);
}

static void on_pipe_fail(struct stream_user *u, const struct err *err)
{
	log_debug("output of a process: %s", err->msg);
	end_pipe(u);
}

static void on_nothing(struct stream_user *u)
{
	(void)u;
}

static const struct stream_user_ops out_ops = { on_data, end_pipe, on_nothing, on_pipe_fail };

static void on_in_data(struct stream_user *u, struct bytes in)
{
	(void)u;
	(void)in;
}

/* The process closed its stdin, or ended. */
static void on_in_fail(struct stream_user *u, const struct err *err)
{
	struct process *p = CONTAINER_OF(u, struct process, in_user);

	(void)err;
	stream_close(p->in);
	p->in = NULL;
}

static const struct stream_user_ops in_ops = { on_in_data, on_nothing, on_nothing, on_in_fail };

/* --- its birth ---------------------------------------------------------------------------- */

/* A pipe with our end as a stream. *ret_theirs is owned by the caller. */
static int open_pipe(struct loop *l, bool to_process, struct stream **ret, int *ret_theirs,
		     struct err *err)
{
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a pipe");
	rc = fd_stream_open(l, fds[to_process],
			    to_process ? FD_STREAM_WRITE_ONLY : FD_STREAM_READ_ONLY, ret, err);
	if (rc < 0) {
		close(fds[!to_process]);
		return -1;
	}
	*ret_theirs = fds[!to_process];
	return 0;
}

static int open_outputs(struct process *p, struct loop *l, int theirs[3], struct err *err)
{
	for (size_t i = 0; i < PROCESS_OUTPUTS; i++) {
		struct process_pipe *pp = &p->out[i];

		*pp = (struct process_pipe){ { &out_ops }, NULL, p, (enum process_output)i };
		if (open_pipe(l, false, &pp->stream, &theirs[i + 1], err) < 0)
			return -1;
		stream_set_user(pp->stream, &pp->user);
	}
	return 0;
}

static int open_input(struct process *p, struct loop *l, bool pipe, int theirs[3], struct err *err)
{
	if (!pipe) {
		theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return theirs[0] < 0 ? err_set(err, ERR_INTERNAL, errno, "open /dev/null") : 0;
	}
	if (open_pipe(l, true, &p->in, &theirs[0], err) < 0)
		return -1;
	p->in_user.ops = &in_ops;
	stream_set_user(p->in, &p->in_user);
	return 0;
}

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

	if (open_input(p, l, spec->has_stdin, theirs, err) < 0 ||
	    open_outputs(p, l, theirs, err) < 0)
		return -1;
	memcpy(order.fd, theirs, sizeof(order.fd));
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
	timer_init(&p->over_soon, l, on_over_soon);
	if (spec->deadline_ms > 0)
		timer_start(&p->deadline, spec->deadline_ms);
	return 0;
}

static void process_freep(struct process **p)
{
	process_free(*p);
}

int process_start(struct loop *l, const struct process_spec *spec,
		  void (*on_over)(struct process *p), struct process **ret, struct err *err)
{
	AUTO(process_freep) struct process *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate process");
	p->pidfd = p->news = -1;
	p->on_over = on_over;
	p->config = json_incref(spec->config);
	if (spec->has_tag) {
		p->tag = strndup((const char *)spec->tag.ptr, spec->tag.len);
		if (!p->tag)
			return err_set(err, ERR_EXHAUSTED, ENOMEM, "copy the tag");
	}
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
	timer_stop(&p->over_soon);
	watch_close(&p->ended);
	watch_close(&p->settled);
	for (size_t i = 0; i < PROCESS_OUTPUTS; i++)
		if (p->out[i].stream)
			stream_close(p->out[i].stream);
	if (p->in)
		stream_close(p->in);
	auto_close(&p->pidfd);
	auto_close(&p->news);
	json_decref(p->config);
	free(p->tag);
	free(p);
}
