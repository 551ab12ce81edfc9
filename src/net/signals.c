/* signals.c - uv_signal, with the handle apart from its owner so that the owner may go at once. */
#include "net/signals.h"

#include <errno.h>
#include <signal.h>

#include "base/log.h"
#include "net/loop_inside.h"

struct signal_handle {
	uv_signal_t uv;
	struct signal_watch *owner; /* NULL: closed, waiting for libuv to let go */
};

static void on_uv_signal(uv_signal_t *uv, int signo)
{
	struct signal_handle *h = CONTAINER_OF(uv, struct signal_handle, uv);

	(void)signo;
	if (h->owner)
		h->owner->on_signal(h->owner);
}

static void on_let_go(uv_handle_t *handle)
{
	free(CONTAINER_OF((uv_signal_t *)handle, struct signal_handle, uv));
}

int signal_open(struct signal_watch *w, struct loop *l, int signo, signal_fn *on_signal,
		struct err *err)
{
	AUTO(auto_free) struct signal_handle *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate signal watch");
	rc = uv_signal_init(&l->uv, &h->uv);
	if (rc < 0)
		return err_set(err, ERR_INTERNAL, -rc, "watch signal %d", signo);
	rc = uv_signal_start(&h->uv, on_uv_signal, signo);
	if (rc < 0) {
		uv_close((uv_handle_t *)&TAKE(h)->uv, on_let_go);
		return err_set(err, ERR_INTERNAL, -rc, "watch signal %d", signo);
	}
	h->owner = w;
	*w = (struct signal_watch){ TAKE(h), on_signal };
	return 0;
}

void signal_close(struct signal_watch *w)
{
	struct signal_handle *h = w->handle;

	if (!h)
		return;
	w->handle = NULL;
	h->owner = NULL;
	uv_close((uv_handle_t *)&h->uv, on_let_go);
}

static void end(struct signal_end *e)
{
	log_info("ends");
	loop_stop(e->loop);
}

static void on_term(struct signal_watch *w)
{
	end(CONTAINER_OF(w, struct signal_end, term));
}

static void on_interrupt(struct signal_watch *w)
{
	end(CONTAINER_OF(w, struct signal_end, interrupt));
}

int signal_end_open(struct signal_end *e, struct loop *l, struct err *err)
{
	e->loop = l;
	if (signal_open(&e->term, l, SIGTERM, on_term, err) < 0)
		return -1;
	return signal_open(&e->interrupt, l, SIGINT, on_interrupt, err);
}

void signal_end_close(struct signal_end *e)
{
	signal_close(&e->term);
	signal_close(&e->interrupt);
}
