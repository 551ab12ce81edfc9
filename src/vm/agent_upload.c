/* agent_upload.c - see agent_upload.h.
 *
 * #syscalls: socketpair pread64 sendto shutdown
 */
#include "vm/agent_upload.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "net/fd_stream.h"
#include "vm/work.h"
#include "wire/json.h"

enum { PIECE = 64 * 1024, TARGET_MAX = 1024 };

/* --- the thread --------------------------------------------------------------------------- */

struct reader {
	struct work work;
	struct agent_upload *upload; /* for the loop alone */
	int file, out;
	uint8_t piece[PIECE];
};

static int send_all(int out, struct bytes b, struct err *err)
{
	while (b.len > 0) {
		ssize_t n = send(out, b.ptr, b.len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, ERR_UNAVAILABLE, errno, "pass on a file");
		b = bytes_tail(b, (size_t)n);
	}
	return 0;
}

static int read_file(struct work *w, struct err *err)
{
	struct reader *r = CONTAINER_OF(w, struct reader, work);
	off_t at = 0;
	ssize_t n;

	while (!atomic_load(&w->stop) && (n = pread(r->file, r->piece, PIECE, at)) != 0) {
		if (n < 0)
			return err_set(err, ERR_INTERNAL, errno, "read a file");
		if (send_all(r->out, (struct bytes){ r->piece, (size_t)n }, err) < 0)
			return -1;
		at += n;
	}
	(void)shutdown(r->out, SHUT_WR);
	return 0;
}

static void reader_free(struct work *w)
{
	struct reader *r = CONTAINER_OF(w, struct reader, work);

	close(r->file);
	if (r->out >= 0)
		close(r->out);
	free(r);
}

/* --- its end ------------------------------------------------------------------------------ */

void agent_upload_cancel(struct agent_upload *u)
{
	u->on_done = NULL;
	if (u->in)
		stream_abort(TAKE(u->in)); /* a thread that waits to send wakes up */
	if (u->reader)
		work_cancel(TAKE(u->reader));
	if (u->client)
		http_client_close(TAKE(u->client));
	u->exchange = NULL;
	buf_done(&u->said);
}

static void finish(struct agent_upload *u, const struct err *why)
{
	__auto_type on_done = u->on_done;
	struct err err;

	if (why)
		err = *why;
	agent_upload_cancel(u);
	on_done(u, why ? &err : NULL);
}

static void on_read(struct work *w, const struct err *err)
{
	struct agent_upload *u = CONTAINER_OF(w, struct reader, work)->upload;

	u->reader = NULL;
	if (err && u->in && u->status == 0) /* else the guest has said more about it */
		finish(u, err);
}

/* --- from the socket to the guest --------------------------------------------------------- */

static void on_in_data(struct stream_user *user, struct bytes piece)
{
	struct agent_upload *u = CONTAINER_OF(user, struct agent_upload, in_user);
	struct err err;

	if (piece.len > u->left) {
		err_set(&err, ERR_INTERNAL, 0, "a file that grew while it was read");
		finish(u, &err);
		return;
	}
	u->left -= piece.len;
	if (http_ask_send(u->exchange, piece, &err) < 0) {
		finish(u, &err);
		return;
	}
	if (http_ask_queued(u->exchange) > STREAM_LOW_WATER)
		stream_read(u->in, false);
}

static void on_in_end(struct stream_user *user)
{
	struct agent_upload *u = CONTAINER_OF(user, struct agent_upload, in_user);
	struct err err;

	stream_close(TAKE(u->in));
	if (u->left == 0) {
		http_ask_finish(u->exchange);
		return;
	}
	err_set(&err, ERR_INTERNAL, 0, "a file that became shorter while it was read");
	finish(u, &err);
}

static void on_in_fail(struct stream_user *user, const struct err *err)
{
	finish(CONTAINER_OF(user, struct agent_upload, in_user), err);
}

/* --- the answer --------------------------------------------------------------------------- */

static struct agent_upload *of(struct http_reply *r)
{
	return CONTAINER_OF(r, struct agent_upload, reply);
}

static void on_head(struct http_reply *r, const struct http1_head *head)
{
	struct agent_upload *u = of(r);

	u->status = head->status;
	if (u->in && u->status >= 300) /* nobody wants the rest */
		stream_read(u->in, false);
}

static void on_body(struct http_reply *r, struct bytes piece)
{
	struct agent_upload *u = of(r);
	struct err err;

	(void)!buf_add(&u->said, bytes_head(piece, u->said.max - u->said.len), &err);
}

static void on_drain(struct http_reply *r)
{
	struct agent_upload *u = of(r);

	if (u->in && u->status < 300)
		stream_read(u->in, true);
}

/* {"code","message"} in the guest's words, or what there is. */
static void say_refusal(const struct agent_upload *u, struct err *ret)
{
	AUTO(json_decrefp) json_t *v = NULL;
	struct bytes why = buf_view(&u->said);
	struct err err;

	if (json_decode(why, AGENT_UPLOAD_SAID_MAX, 4, &v, &err) == 0)
		(void)!json_may_string(v, "message", &why, &err);
	err_set(ret, u->status == 507 ? ERR_EXHAUSTED : ERR_INVALID, 0,
		"the guest refused a file: status %u: %.*s", u->status,
		(int)bytes_head(why, 120).len, (const char *)why.ptr);
}

static void on_end(struct http_reply *r)
{
	struct agent_upload *u = of(r);
	struct err err;

	/* the guest has all that was promised, also when the end of the file is not read yet */
	if (u->status >= 200 && u->status < 300 && u->left == 0) {
		finish(u, NULL);
		return;
	}
	say_refusal(u, &err);
	finish(u, &err);
}

static void on_fail(struct http_reply *r, const struct err *why)
{
	struct err err = *why;

	err_wrap(&err, "agent: upload");
	finish(of(r), &err);
}

/* --- the beginning ------------------------------------------------------------------------ */

static bool is_plain(struct bytes text)
{
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = byte_lower(text.ptr[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '.' &&
		    c != '_' && c != '/')
			return false;
	}
	return text.len > 0;
}

static int ask(struct agent_upload *u, const struct agent_upload_spec *spec, struct err *err)
{
	const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/octet-stream") },
		{ BYTES_LIT("x-access-token"), spec->access_token },
	};
	AUTO(buf_done) struct buf target = BUF_MAX(TARGET_MAX);

	if (spec->bytes == 0)
		return err_set(err, ERR_INVALID, 0, "agent: upload: an empty file");
	if (!is_plain(spec->path) || !is_plain(spec->user))
		return err_set(err, ERR_INVALID, 0, "agent: upload: a path that is not plain");
	if (buf_printf(&target, err, "/files?path=%.*s&username=%.*s", (int)spec->path.len,
		       (const char *)spec->path.ptr, (int)spec->user.len,
		       (const char *)spec->user.ptr) < 0)
		return -1;
	return http_ask(u->client,
			&(struct http_ask){ .method = BYTES_LIT("POST"),
					    .target = buf_view(&target),
					    .host = BYTES_LIT("agent"),
					    .fields = fields,
					    .n_fields = spec->access_token.len > 0 ? 2 : 1,
					    .length = (int64_t)spec->bytes,
					    .deadline_ms = spec->deadline_ms },
			&u->reply, &u->exchange, err);
}

/* Takes file. */
static int begin_reading(struct agent_upload *u, struct loop *l, int file, struct err *err)
{
	static const struct stream_user_ops ops = { on_in_data, on_in_end, NULL, on_in_fail };
	struct reader *r = calloc(1, sizeof(*r));
	int ends[2];

	if (!r || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		free(r);
		close(file);
		return err_set(err, ERR_EXHAUSTED, errno, "agent: upload: a socket");
	}
	*r = (struct reader){ .work = { .run = read_file, .on_done = on_read, .free = reader_free },
			      .upload = u,
			      .file = file,
			      .out = ends[1] };
	if (fd_stream_open(l, ends[0], FD_STREAM_BOTH, &u->in, err) < 0) {
		reader_free(&r->work);
		return -1;
	}
	u->in_user.ops = &ops;
	stream_set_user(u->in, &u->in_user);
	u->reader = &r->work;
	if (work_start(&r->work, l, err) < 0) {
		u->reader = NULL;
		return -1;
	}
	stream_read(u->in, true);
	return 0;
}

int agent_upload_start(struct agent_upload *u, struct stream *s,
		       const struct agent_upload_spec *spec, agent_upload_done_fn *on_done,
		       struct err *err)
{
	static const struct http_reply_ops ops = { on_head, on_body, on_end, on_drain, on_fail };
	struct http_limits limits = HTTP_LIMITS;
	struct loop *l = stream_loop(s);
	AUTO(auto_close) int file = spec->file;

	*u = (struct agent_upload){ .on_done = on_done, .reply = { &ops }, .left = spec->bytes };
	u->said = BUF_MAX(AGENT_UPLOAD_SAID_MAX);
	if (http_client_open(s, &limits, &u->client, err) < 0)
		return err_wrap(err, "agent: upload");
	if (ask(u, spec, err) < 0 || begin_reading(u, l, take_fd(&file), err) < 0) {
		agent_upload_cancel(u);
		return -1;
	}
	return 0;
}
