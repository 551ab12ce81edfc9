/* watch.c - uv_poll, with the handle apart from its owner so that the owner may go at once. */
#include "net/watch.h"

#include <errno.h>

#include "net/loop_inside.h"

struct watch_handle {
	uv_poll_t poll;
	struct watch *owner; /* NULL: closed, waiting for libuv to let go */
	unsigned int events; /* what is watched now */
};

static void on_poll(uv_poll_t *poll, int status, int got)
{
	struct watch_handle *h = CONTAINER_OF(poll, struct watch_handle, poll);
	unsigned int events = 0;

	if (!h->owner)
		return;
	if (status < 0) { /* libuv has stopped watching */
		h->events = 0;
		h->owner->on_ready(h->owner, WATCH_ERROR);
		return;
	}
	if (got & UV_READABLE)
		events |= WATCH_READ;
	if (got & UV_WRITABLE)
		events |= WATCH_WRITE;
	if (got & UV_DISCONNECT)
		events |= WATCH_HUP;
	h->owner->on_ready(h->owner, events & h->events);
}

static void on_let_go(uv_handle_t *handle)
{
	free(CONTAINER_OF((uv_poll_t *)handle, struct watch_handle, poll));
}

int watch_open(struct watch *w, struct loop *l, int fd, unsigned int events,
	       watch_ready_fn *on_ready, struct err *err)
{
	AUTO(auto_free) struct watch_handle *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate watch");
	rc = uv_poll_init(&l->uv, &h->poll, fd);
	if (rc < 0)
		return err_set(err, ERR_INTERNAL, -rc, "watch descriptor %d", fd);
	h->owner = w;
	*w = (struct watch){ TAKE(h), on_ready };
	watch_set(w, events);
	return 0;
}

void watch_set(struct watch *w, unsigned int events)
{
	struct watch_handle *h = w->handle;
	int want = 0;

	if (!h || h->events == events)
		return;
	if (events & WATCH_READ)
		want |= UV_READABLE;
	if (events & WATCH_WRITE)
		want |= UV_WRITABLE;
	if (events & WATCH_HUP)
		want |= UV_DISCONNECT;
	h->events = events;
	/* no system call here that could fail: libuv tells the kernel at its next turn */
	(void)uv_poll_start(&h->poll, want, on_poll);
}

void watch_close(struct watch *w)
{
	struct watch_handle *h = w->handle;

	if (!h)
		return;
	w->handle = NULL;
	h->owner = NULL;
	uv_close((uv_handle_t *)&h->poll, on_let_go);
}
