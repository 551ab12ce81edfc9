/* write_queue.c - a list of buffers, sent many at a time. */
/* #syscalls: sendmsg writev sendfile */
#include "net/write_queue.h"

#include <assert.h>
#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "net/stream.h"

enum { IOV_AT_ONCE = 16 };

struct write_chunk {
	struct write_chunk *next;
	struct buf b;
	size_t off; /* sent already */
};

static void append(struct write_queue *q, struct write_chunk *c)
{
	if (q->last)
		q->last->next = c;
	else
		q->first = c;
	q->last = c;
	q->len += c->b.len - c->off;
}

static bool fits_behind_last(const struct write_queue *q, size_t n)
{
	return q->last && q->last->b.cap - q->last->b.len >= n;
}

int write_queue_add(struct write_queue *q, struct bytes b, struct err *err)
{
	struct write_chunk *c;

	if (fits_behind_last(q, b.len)) {
		q->len += b.len;
		return buf_add(&q->last->b, b, err);
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate write queue");
	c->b = BUF_MAX(STREAM_QUEUE_MAX);
	if (buf_add(&c->b, b, err) < 0) {
		free(c);
		return -1;
	}
	append(q, c);
	return 0;
}

int write_queue_take(struct write_queue *q, struct buf *b, size_t skip, struct err *err)
{
	struct write_chunk *c = calloc(1, sizeof(*c));

	assert(skip <= b->len);
	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate write queue");
	c->b = *b;
	c->off = skip;
	*b = (struct buf){ 0 };
	append(q, c);
	return 0;
}

static void drop_front(struct write_queue *q, size_t n)
{
	q->len -= n;
	while (q->first) {
		struct write_chunk *c = q->first;
		size_t left = c->b.len - c->off;

		if (n < left) {
			c->off += n;
			return;
		}
		n -= left;
		q->first = c->next;
		if (!q->first)
			q->last = NULL;
		buf_done(&c->b);
		free(c);
	}
}

static ssize_t put(int fd, bool is_socket, struct iovec *iov, size_t n)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t rc;

	do {
		rc = is_socket ? sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT)
			       : writev(fd, iov, (int)n);
	} while (rc < 0 && errno == EINTR);
	return rc;
}

ssize_t write_now(int fd, bool is_socket, struct bytes b)
{
	/* SAFETY: the kernel only reads from it; iovec has no const version */
	struct iovec iov = { (void *)(uintptr_t)b.ptr, b.len };

	return put(fd, is_socket, &iov, 1);
}

ssize_t write_file_now(int fd, int file, size_t max)
{
	ssize_t rc;

	do {
		rc = sendfile(fd, file, NULL, max);
	} while (rc < 0 && errno == EINTR);
	return rc;
}

ssize_t write_queue_flush(struct write_queue *q, int fd, bool is_socket)
{
	struct iovec iov[IOV_AT_ONCE];
	size_t n = 0;
	ssize_t sent;

	for (struct write_chunk *c = q->first; c && n < IOV_AT_ONCE; c = c->next)
		iov[n++] = (struct iovec){ c->b.ptr + c->off, c->b.len - c->off };
	sent = put(fd, is_socket, iov, n);
	if (sent > 0)
		drop_front(q, (size_t)sent);
	return sent;
}

void write_queue_done(struct write_queue *q)
{
	drop_front(q, q->len);
}
