/* lines.c - lines in, lines out. The output may wait, the input does not. */
#include "tests/driver/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/log.h"
#include "net/fd_stream.h"

static _Noreturn void give_up(const char *what, const struct err *err)
{
	log_error("%s: %s", what, err->msg);
	exit(1);
}

/* The last answer has left and nobody will ask again. */
static void maybe_stop(struct driver *d)
{
	if (d->input_ended && d->n_ops == 0 && d->unsent.len == 0)
		loop_stop(d->loop);
}

static void flush(struct driver *d)
{
	struct err err;

	while (d->unsent.len > 0) {
		struct bytes piece = buf_view(&d->unsent);

		if (!d->out) {
			ssize_t n = write(STDOUT_FILENO, piece.ptr, piece.len);

			if (n < 0)
				exit(1);
			piece.len = (size_t)n;
		} else {
			piece = bytes_head(piece, stream_room(d->out));
			if (piece.len == 0)
				return;
			if (stream_write(d->out, piece, &err) < 0)
				give_up("answer", &err);
		}
		buf_drop(&d->unsent, piece.len);
	}
}

void lines_say(struct driver *d, json_t *line)
{
	struct err err;

	if (json_encode(line, &d->unsent, &err) < 0 ||
	    buf_add(&d->unsent, BYTES_LIT("\n"), &err) < 0)
		give_up("answer", &err);
	json_decref(line);
	flush(d);
}

void lines_op_ended(struct driver *d)
{
	d->n_ops--;
	maybe_stop(d);
}

static void take_lines(struct driver *d)
{
	struct bytes rest = buf_view(&d->line), line;
	size_t before = rest.len;

	while (bytes_cut(&rest, '\n', &line))
		if (bytes_trim(line).len > 0)
			operations_run(d, line);
	buf_drop(&d->line, before - rest.len);
}

static void on_input(struct stream_user *u, struct bytes in)
{
	struct driver *d = CONTAINER_OF(u, struct driver, in_user);
	struct err err;

	if (buf_add(&d->line, in, &err) < 0)
		give_up("request", &err);
	take_lines(d);
}

static void on_input_end(struct stream_user *u)
{
	struct driver *d = CONTAINER_OF(u, struct driver, in_user);

	d->input_ended = true;
	stream_close(TAKE(d->in));
	maybe_stop(d);
}

static void on_output(struct stream_user *u, struct bytes in)
{
	(void)u, (void)in;
}

static void on_output_end(struct stream_user *u)
{
	(void)u;
}

static void on_drain(struct stream_user *u)
{
	struct driver *d = CONTAINER_OF(u, struct driver, out_user);

	flush(d);
	maybe_stop(d);
}

static void on_nothing(struct stream_user *u)
{
	(void)u;
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	(void)u;
	give_up("streams", err);
}

/* A file cannot be waited for, and need not be. */
static void read_file(struct driver *d)
{
	struct err err;
	uint8_t *room;
	ssize_t n;

	do {
		if (buf_reserve(&d->line, 4096, &room, &err) < 0)
			give_up("request", &err);
		n = read(STDIN_FILENO, room, 4096);
		if (n > 0)
			buf_claim(&d->line, (size_t)n);
		take_lines(d);
	} while (n > 0);
	d->input_ended = true;
}

static bool is_stream(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 &&
	       (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode)) &&
	       !(S_ISCHR(st.st_mode) && !isatty(fd));
}

int lines_open(struct driver *d, struct err *err)
{
	static const struct stream_user_ops in = { on_input, on_input_end, on_nothing, on_fail };
	static const struct stream_user_ops out = { on_output, on_output_end, on_drain, on_fail };

	d->line = BUF_MAX(DRIVER_LINE_MAX);
	d->unsent = BUF_MAX(DRIVER_OUT_MAX);
	d->in_user.ops = &in;
	d->out_user.ops = &out;
	if (is_stream(STDOUT_FILENO)) {
		if (fd_stream_open(d->loop, fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3),
				   FD_STREAM_WRITE_ONLY, &d->out, err) < 0)
			return -1;
		stream_set_user(d->out, &d->out_user);
	}
	if (!is_stream(STDIN_FILENO))
		return 0;
	if (fd_stream_open(d->loop, fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), FD_STREAM_READ_ONLY,
			   &d->in, err) < 0)
		return -1;
	stream_set_user(d->in, &d->in_user);
	return 0;
}

void lines_begin(struct driver *d)
{
	if (d->in)
		stream_read(d->in, true);
	else
		read_file(d);
	maybe_stop(d);
}

void lines_close(struct driver *d)
{
	if (d->in)
		stream_close(TAKE(d->in));
	if (d->out)
		stream_close(TAKE(d->out));
	buf_done(&d->line);
	buf_done(&d->unsent);
}
