/* fd_reader.c - messages with descriptors, as callbacks on the loop. */
#include <assert.h>

#include "net/fdpass.h"

/* One message per turn. A callback may close and free the reader: it comes last. */
static void on_ready(struct watch *w, unsigned int events)
{
	struct fd_reader *r = CONTAINER_OF(w, struct fd_reader, ready);
	uint8_t msg[FDPASS_BYTES_MAX];
	struct fd_pack fds;
	struct err err;

	(void)events;
	switch (fdpass_recv(r->sock, msg, r->size, r->max_fds, &fds, &err)) {
	case FDPASS_AGAIN:
		break;
	case FDPASS_OK:
		r->ops->on_message(r, (struct bytes){ msg, r->size }, &fds);
		fd_pack_done(&fds);
		break;
	case FDPASS_END:
		fd_reader_close(r);
		r->ops->on_end(r, NULL);
		break;
	case FDPASS_BAD:
		fd_reader_close(r);
		r->ops->on_end(r, &err);
		break;
	}
}

int fd_reader_open(struct fd_reader *r, struct loop *l, const struct fd_reader_ops *ops, int sock,
		   size_t size, size_t max_fds, struct err *err)
{
	assert(size > 0 && size <= FDPASS_BYTES_MAX && max_fds <= FDPASS_FDS_MAX);
	*r = (struct fd_reader){ .ops = ops, .sock = sock, .size = size, .max_fds = max_fds };
	return watch_open(&r->ready, l, sock, WATCH_READ, on_ready, err);
}

void fd_reader_close(struct fd_reader *r)
{
	watch_close(&r->ready);
}
