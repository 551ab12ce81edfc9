/* process_stdio.c - see process_stdio.h. */
#include "agent/process/process_stdio.h"

#include <errno.h>
#include <fcntl.h>

#include "agent/process/process.h"
#include "base/list.h"
#include "base/log.h"
#include "net/fd_stream.h"

enum {
	INPUT_PIECE = 64 * 1024, /* handed to the pipe at once; most of what waits in memory */
	PIPE_ROOM = 256 * 1024,  /* of an output: fewer turns between who writes and us */
};

/* --- input -------------------------------------------------------------------------------- */

static void finish_writer(struct process_input *in, const struct err *err)
{
	list_remove(in);
	in->on_done(in, err);
}

void stdio_cancel(struct process_input *in)
{
	list_remove(in);
}

void stdio_refuse(struct process_stdio *s)
{
	struct err err;

	err_set(&err, ERR_INTERNAL, 0, "error writing to stdin: stdin not enabled or closed");
	while (s->writers)
		finish_writer(s->writers, &err);
}

static struct stream *input_of(const struct process_stdio *s)
{
	return s->has_pty ? s->out[PROCESS_PTY].stream : s->in;
}

/* Give the pipe as much as it wants. Above its low water mark it will ask for more. */
static int feed(struct stream *to, struct bytes *rest, struct err *err)
{
	while (rest->len > 0 && stream_queued(to) <= STREAM_LOW_WATER) {
		struct bytes piece = bytes_head(*rest, INPUT_PIECE);

		if (stream_write(to, piece, err) < 0) {
			err->code = ERR_INTERNAL; /* the process is at fault, not the sandbox */
			return err_wrap(err, "error writing to the process");
		}
		*rest = bytes_tail(*rest, piece.len);
	}
	return 0;
}

static void shut_if_due(struct process_stdio *s)
{
	if (s->in_shut && s->in && !s->writers)
		stream_shut(s->in);
}

static void feed_writers(struct process_stdio *s)
{
	struct err err;

	while (s->writers && input_of(s)) {
		struct process_input *in = s->writers;
		int rc = feed(input_of(s), &in->rest, &err);

		if (rc == 0 && in->rest.len > 0)
			return; /* its turn is not over */
		finish_writer(in, rc < 0 ? &err : NULL);
	}
	shut_if_due(s);
}

static void wait_in_line(struct process_stdio *s, struct process_input *in)
{
	struct process_input **last = &s->writers;

	while (*last)
		last = &(*last)->next;
	list_add(last, in);
}

static int check_input(const struct process_stdio *s, bool to_pty, struct err *err)
{
	if (to_pty && !s->has_pty)
		return err_set(err, ERR_INTERNAL, 0,
			       "error writing to tty: tty not assigned to process");
	if (!to_pty && (s->has_pty || !s->in || s->in_shut))
		return err_set(err, ERR_INTERNAL, 0,
			       "error writing to stdin: stdin not enabled or closed");
	if (!input_of(s))
		return err_set(err, ERR_INTERNAL, 0, "error writing to tty: it is closed");
	return 0;
}

int stdio_write(struct process_stdio *s, bool to_pty, struct process_input *in, struct bytes data,
		struct err *err)
{
	if (check_input(s, to_pty, err) < 0)
		return -1;
	*in = (struct process_input){ .on_done = in->on_done, .rest = data };
	if (!s->writers) {
		if (feed(input_of(s), &in->rest, err) < 0)
			return -1;
		if (in->rest.len == 0)
			return 1;
	}
	wait_in_line(s, in);
	return 0;
}

int stdio_shut(struct process_stdio *s, struct err *err)
{
	if (s->has_pty)
		return err_set(err, ERR_INTERNAL, 0,
			       "cannot close stdin of a process with a terminal");
	if (!s->in_shut) {
		s->in_shut = true;
		shut_if_due(s);
	}
	return 0;
}

int stdio_resize(struct process_stdio *s, const struct pty_size *size, struct err *err)
{
	if (!s->has_pty)
		return err_set(err, ERR_INTERNAL, 0,
			       "error resizing tty: tty not assigned to process");
	return pty_resize(s->tty, size, err);
}

/* --- output ------------------------------------------------------------------------------- */

void stdio_read(struct process_stdio *s, bool on)
{
	for (size_t i = 0; i < PROCESS_OUTPUTS; i++)
		if (s->out[i].stream)
			stream_read(s->out[i].stream, on);
}

bool stdio_talks(const struct process_stdio *s)
{
	for (size_t i = 0; i < PROCESS_OUTPUTS; i++)
		if (s->out[i].stream)
			return true;
	return false;
}

static void on_data(struct stream_user *u, struct bytes in)
{
	struct process_pipe *pp = CONTAINER_OF(u, struct process_pipe, user);

	process_said(pp->process, pp->which, in);
}

static void on_end(struct stream_user *u)
{
	struct process_pipe *pp = CONTAINER_OF(u, struct process_pipe, user);

	stream_close(pp->stream);
	pp->stream = NULL;
	if (pp->which == PROCESS_PTY)
		stdio_refuse(&pp->process->stdio);
	process_fell_silent(pp->process);
}

static void on_drain(struct stream_user *u)
{
	feed_writers(&CONTAINER_OF(u, struct process_pipe, user)->process->stdio);
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	log_debug("output of a process: %s", err->msg);
	on_end(u);
}

static void on_in_data(struct stream_user *u, struct bytes in)
{
	(void)u;
	(void)in;
}

static void on_in_end(struct stream_user *u)
{
	(void)u;
}

static void on_in_drain(struct stream_user *u)
{
	feed_writers(CONTAINER_OF(u, struct process_stdio, in_user));
}

/* The process closed its stdin, or ended. */
static void on_in_fail(struct stream_user *u, const struct err *err)
{
	struct process_stdio *s = CONTAINER_OF(u, struct process_stdio, in_user);

	(void)err;
	stream_close(s->in);
	s->in = NULL;
	stdio_refuse(s);
}

/* --- opening and closing ------------------------------------------------------------------ */

static void attach(struct process *p, enum process_output which, struct stream *stream)
{
	static const struct stream_user_ops ops = { on_data, on_end, on_drain, on_fail };
	struct process_pipe *pp = &p->stdio.out[which];

	*pp = (struct process_pipe){ { &ops }, stream, p, which };
	stream_set_user(stream, &pp->user);
}

/* A pipe with our end as a stream. *ret_theirs is owned by the caller. */
static int open_pipe(struct loop *l, bool to_process, struct stream **ret, int *ret_theirs,
		     struct err *err)
{
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a pipe");
	if (!to_process)
		(void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_ROOM); /* what is usual does, too */
	rc = fd_stream_open(l, fds[to_process],
			    to_process ? FD_STREAM_WRITE_ONLY : FD_STREAM_READ_ONLY, ret, err);
	if (rc < 0) {
		close(fds[!to_process]);
		return -1;
	}
	*ret_theirs = fds[!to_process];
	return 0;
}

static int open_input(struct process_stdio *s, struct loop *l, bool pipe, int *ret_theirs,
		      struct err *err)
{
	static const struct stream_user_ops ops = { on_in_data, on_in_end, on_in_drain,
						    on_in_fail };

	if (!pipe) {
		*ret_theirs = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return *ret_theirs < 0 ? err_set(err, ERR_INTERNAL, errno, "open /dev/null") : 0;
	}
	if (open_pipe(l, true, &s->in, ret_theirs, err) < 0)
		return -1;
	s->in_user.ops = &ops;
	stream_set_user(s->in, &s->in_user);
	return 0;
}

static int open_pipes(struct process *p, struct loop *l, bool has_stdin, int ret_theirs[3],
		      struct err *err)
{
	if (open_input(&p->stdio, l, has_stdin, &ret_theirs[0], err) < 0)
		return -1;
	for (int i = PROCESS_STDOUT; i <= PROCESS_STDERR; i++) {
		struct stream *s;

		if (open_pipe(l, false, &s, &ret_theirs[1 + i], err) < 0)
			return -1;
		attach(p, (enum process_output)i, s);
	}
	return 0;
}

static int open_terminal(struct process *p, struct loop *l, const struct stdio_wish *w,
			 int *ret_theirs, struct err *err)
{
	AUTO(auto_close) int master = -1;
	struct stream *s;

	if (pty_open(&w->size, w->owner, &master, ret_theirs, err) < 0)
		return -1;
	p->stdio.has_pty = true;
	p->stdio.tty = fcntl(master, F_DUPFD_CLOEXEC, 0);
	if (p->stdio.tty < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "open a terminal");
	if (fd_stream_open(l, take_fd(&master), FD_STREAM_BOTH, &s, err) < 0)
		return -1;
	attach(p, PROCESS_PTY, s);
	return 0;
}

int stdio_open(struct process *p, struct loop *l, const struct stdio_wish *w, int ret_theirs[3],
	       struct err *err)
{
	if (w->has_pty)
		return open_terminal(p, l, w, &ret_theirs[0], err);
	return open_pipes(p, l, w->has_stdin, ret_theirs, err);
}

void stdio_close(struct process_stdio *s)
{
	assert(!s->writers);
	for (size_t i = 0; i < PROCESS_OUTPUTS; i++)
		if (s->out[i].stream)
			stream_abort(s->out[i].stream);
	if (s->in)
		stream_abort(s->in);
	if (s->has_pty)
		auto_close(&s->tty);
	*s = (struct process_stdio){ 0 };
}
