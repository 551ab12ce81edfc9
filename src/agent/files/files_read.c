/* files_read.c - GET /files: a file as it is, in pieces.
 *
 * Reading a regular file blocks the loop for as long as the disk takes. Pieces are small and few
 * per turn, and whoever reads from a disk that stalls stalls his own sandbox only; a pool of
 * threads is not worth its memory here.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "agent/files/content_disposition.h"
#include "agent/files/files_request.h"
#include "agent/files/range.h"
#include "agent/reply.h"
#include "agent/route.h"
#include "http/date.h"

enum {
	PIECE_MAX = 64 * 1024,
	TURN_MAX = 512 * 1024,    /* bytes read per turn of the loop */
	QUEUE_ENOUGH = 64 * 1024, /* to be sent: wait for the client */
	RANGE_TEXT_MAX = 80,
};

struct download {
	struct http_handler handler;
	struct http_request *rq;
	struct timer more;
	int fd;
	bool sized;    /* the length was promised */
	bool plain;    /* it goes without passing through here */
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

/* Straight from the file, as far as that goes. False: it has to be read. */
static bool send_plainly(struct download *d)
{
	enum stream_file rc;
	struct err err;
	size_t n;

	for (size_t sent = 0; sent < TURN_MAX; sent += n, d->left -= n) {
		if (d->left == 0) {
			finish(d, true);
			return true;
		}
		rc = http_send_file(d->rq, d->fd, TURN_MAX, &n, &err);
		if (rc == STREAM_FILE_UNFIT)
			return d->plain = false;
		if (rc == STREAM_FILE_WAIT)
			return true;
		if (rc == STREAM_FILE_FAILED || n == 0) { /* it got shorter meanwhile */
			finish(d, false);
			return true;
		}
	}
	timer_start(&d->more, 0);
	return true;
}

static void send_some(struct download *d)
{
	uint8_t piece[PIECE_MAX];
	struct err err;

	if (d->plain && send_plainly(d))
		return;
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

static const struct http_handler_ops handler_ops = { .on_drain = on_drain, .on_gone = on_gone };

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

struct words { /* the fields of an answer that have to be written first */
	struct buf disposition;
	char modified[HTTP_DATE_MAX], range[RANGE_TEXT_MAX];
};

static void words_done(struct words *w)
{
	buf_done(&w->disposition);
}

static int words_write(struct words *w, const char *path, const struct stat *st,
		       const struct range *r, struct err *err)
{
	http_date_put(st->st_mtim.tv_sec, w->modified);
	snprintf(w->range, sizeof(w->range), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, r->from,
		 r->from + r->length - 1, (uint64_t)st->st_size);
	return content_disposition_put(&w->disposition, bytes_str(path_name(path)), err);
}

static int respond(struct download *d, const char *path, const struct stat *st,
		   const struct range *range, struct err *err)
{
	AUTO(words_done) struct words w = { .disposition = BUF_MAX(4 * USER_PATH_MAX) };
	struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/octet-stream") },
		{ BYTES_LIT("vary"), BYTES_LIT("Accept-Encoding") },
		{ BYTES_LIT("content-disposition"), { 0 } },
		{ BYTES_LIT("last-modified"), { 0 } },
		{ BYTES_LIT("accept-ranges"), BYTES_LIT("bytes") },
		{ BYTES_LIT("content-range"), { 0 } },
	};
	bool part = range->kind == RANGE_PART;
	struct http_response r = { part ? 206 : 200, fields, COUNT(fields) - !part, HTTP_CHUNKED };

	if (words_write(&w, path, st, range, err) < 0)
		return -1;
	fields[2].value = buf_view(&w.disposition);
	fields[3].value = bytes_str(w.modified);
	fields[5].value = bytes_str(w.range);
	if (d->sized)
		r.length = (int64_t)d->left;
	return http_respond(d->rq, &r, err);
}

/* The answers that are no file. True: given. */
static bool answer_without(struct http_request *rq, const struct stat *st,
			   const struct range *range)
{
	char text[RANGE_TEXT_MAX];
	struct http1_field field = { BYTES_LIT("content-range"), { 0 } };

	switch (range->kind) {
	case RANGE_ALL:
	case RANGE_PART:
		return false;
	case RANGE_NOT_MODIFIED:
		http_answer(rq, &(struct http_response){ .status = 304 }, (struct bytes){ 0 });
		return true;
	case RANGE_FAILED:
		reply_fail(rq, 412, "the file was modified");
		return true;
	case RANGE_NOT_SATISFIABLE:
		snprintf(text, sizeof(text), "bytes */%" PRIu64, (uint64_t)st->st_size);
		field.value = bytes_str(text);
		http_answer(
			rq,
			&(struct http_response){ .status = 416, .fields = &field, .n_fields = 1 },
			(struct bytes){ 0 });
		return true;
	}
	abort();
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
	d->plain = d->sized;
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

/* The part that is wanted of a file whose size is known. */
static int seek_to(struct download *d, const struct range *range)
{
	d->left = range->length;
	return range->from > 0 && lseek(d->fd, (off_t)range->from, SEEK_SET) < 0 ? -1 : 0;
}

static void start(struct download *d, const char *path, const struct stat *st)
{
	struct http_request *rq = d->rq;
	struct range range = { RANGE_ALL, 0, (uint64_t)st->st_size };
	struct err err;

	if (d->sized)
		range = range_of(http_request_head(rq), (uint64_t)st->st_size, st->st_mtim.tv_sec);
	if (answer_without(rq, st, &range)) {
		download_free(d);
		return;
	}
	if (seek_to(d, &range) < 0 || respond(d, path, st, &range, &err) < 0) {
		reply_fail(rq, 500, "error reading file '%s'", path);
		download_free(d);
		return;
	}
	if (bytes_eq(http_request_head(rq)->method, BYTES_LIT("HEAD"))) {
		finish(d, true);
		return;
	}
	http_request_take(rq, &d->handler);
	send_some(d);
}

static void route_files_read(struct agent *a, struct http_request *rq)
{
	struct files_request want;
	struct download *d;
	struct stat st;
	int fd;

	if (!files_request_read(a, rq, "read", &want))
		return;
	if (!range_takes_identity(http_request_head(rq))) {
		reply_fail(rq, 406, "no acceptable encoding: only identity is served");
		return;
	}
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
	start(d, want.path, &st);
}

const struct route files_read_routes[] = {
	{ "/files", "GET", GUARD_FILES, route_files_read },
	{ "/files", "HEAD", GUARD_FILES, route_files_read },
	{ 0 },
};
