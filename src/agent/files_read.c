/* files_read.c - GET /files: a file as it is, in pieces.
 *
 * Reading a regular file blocks the loop for as long as the disk takes. Pieces are small and few
 * per turn, and whoever reads from a disk that stalls stalls his own sandbox only; a pool of
 * threads is not worth its memory here.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/content_disposition.h"
#include "agent/files_request.h"
#include "agent/reply.h"

enum {
	PIECE_MAX = 32 * 1024,
	TURN_MAX = 256 * 1024,    /* bytes read per turn of the loop */
	QUEUE_ENOUGH = 64 * 1024, /* to be sent: wait for the client */
};

struct download {
	struct http_handler handler;
	struct http_request *rq;
	struct timer more;
	int fd;
	bool sized;    /* the length was promised */
	uint64_t left; /* of it */
};

static void download_free(struct download *d)
{
	timer_stop(&d->more);
	auto_close(&d->fd);
	free(d);
}

static void finish(struct download *d, bool whole)
{
	if (whole)
		http_finish(d->rq);
	else
		http_abort(d->rq); /* cut short: never to be taken for the whole */
	download_free(d);
}

/* The next piece: its length, 0 at the end, -1 when the file cannot be read on. */
static ssize_t read_piece(struct download *d, uint8_t *into)
{
	size_t want = PIECE_MAX;
	ssize_t n;

	if (d->sized && d->left < want)
		want = (size_t)d->left;
	if (want == 0)
		return 0;
	n = read(d->fd, into, want);
	if (n == 0 && d->sized) /* it got shorter meanwhile */
		return -1;
	return n;
}

static void send_some(struct download *d)
{
	uint8_t piece[PIECE_MAX];
	struct err err;

	for (size_t sent = 0; sent < TURN_MAX && http_queued(d->rq) <= QUEUE_ENOUGH;) {
		ssize_t n = read_piece(d, piece);

		if (n <= 0) {
			finish(d, n == 0);
			return;
		}
		if (http_send(d->rq, (struct bytes){ piece, (size_t)n }, &err) < 0) {
			finish(d, false);
			return;
		}
		d->left -= d->sized ? (size_t)n : 0;
		sent += (size_t)n;
	}
	if (http_queued(d->rq) <= QUEUE_ENOUGH)
		timer_start(&d->more, 0);
}

static void on_more(struct timer *t)
{
	send_some(CONTAINER_OF(t, struct download, more));
}

static void on_drain(struct http_handler *h)
{
	send_some(CONTAINER_OF(h, struct download, handler));
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	(void)err;
	download_free(CONTAINER_OF(h, struct download, handler));
}

static void on_body(struct http_handler *h, struct bytes piece)
{
	(void)h;
	(void)piece;
}

static void on_body_end(struct http_handler *h)
{
	(void)h;
}

static const struct http_handler_ops handler_ops = { on_body, on_body_end, on_drain, on_gone };

/* Never waits: a FIFO or a terminal in the place of a file is opened, seen and refused. */
static int open_file(struct http_request *rq, const char *path, struct stat *ret)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		reply_fail(rq, 404, "path '%s' does not exist", path);
		return -1;
	}
	if (fd < 0 || fstat(fd, ret) < 0) {
		reply_fail(rq, 500, "error opening file '%s': %s", path, strerror(errno));
		return -1;
	}
	if (S_ISDIR(ret->st_mode)) {
		reply_fail(rq, 400, "path '%s' is a directory", path);
		return -1;
	}
	if (!S_ISREG(ret->st_mode)) {
		reply_fail(rq, 400, "path '%s' is not a regular file", path);
		return -1;
	}
	return take_fd(&fd);
}

static int respond(struct download *d, const char *path, struct err *err)
{
	AUTO(buf_done) struct buf disposition = BUF_MAX(4 * USER_PATH_MAX);
	struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/octet-stream") },
		{ BYTES_LIT("vary"), BYTES_LIT("Accept-Encoding") },
		{ BYTES_LIT("content-disposition"), { 0 } },
	};
	struct http_response r = { 200, fields, COUNT(fields), HTTP_CHUNKED };

	if (content_disposition_put(&disposition, bytes_str(path_name(path)), err) < 0)
		return -1;
	fields[2].value = buf_view(&disposition);
	if (d->sized)
		r.length = (int64_t)d->left;
	return http_respond(d->rq, &r, err);
}

/* Files of /proc say that they are empty, and are not: only reading tells. */
static int decide_length(struct download *d, const struct stat *st)
{
	uint8_t one;
	ssize_t n = 0;

	if (st->st_size == 0)
		n = pread(d->fd, &one, sizeof(one), 0);
	if (n < 0)
		return -1;
	d->sized = n == 0;
	d->left = (uint64_t)st->st_size;
	return 0;
}

static struct download *download_new(struct agent *a, struct http_request *rq, int fd)
{
	struct download *d = calloc(1, sizeof(*d));

	if (!d) {
		reply_fail(rq, 500, "out of memory");
		close(fd);
		return NULL;
	}
	d->handler.ops = &handler_ops;
	d->rq = rq;
	d->fd = fd;
	timer_init(&d->more, a->loop, on_more);
	return d;
}

void route_files_read(struct agent *a, struct http_request *rq)
{
	struct files_request want;
	struct download *d;
	struct stat st;
	struct err err;
	int fd;

	if (!files_request_read(a, rq, &want))
		return;
	fd = open_file(rq, want.path, &st);
	if (fd < 0)
		return;
	d = download_new(a, rq, fd);
	if (!d)
		return;
	if (decide_length(d, &st) < 0) {
		reply_fail(rq, 500, "error reading file '%s': %s", want.path, strerror(errno));
		download_free(d);
		return;
	}
	if (respond(d, want.path, &err) < 0) {
		reply_fail(rq, 500, "%s", err.msg);
		download_free(d);
		return;
	}
	http_request_take(rq, &d->handler);
	send_some(d);
}
