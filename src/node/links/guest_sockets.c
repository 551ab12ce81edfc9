/* guest_sockets.c - one request, and a look at how many came. */
#include "node/links/guest_sockets.h"

static void on_answer(struct warden_ask *a, const struct warden_reply *reply, int *fds,
		      size_t n_fds, const struct err *failed)
{
	struct guest_sockets *g = CONTAINER_OF(a, struct guest_sockets, ask);
	struct err err;

	(void)reply;
	if (!failed && n_fds != a->request.count) {
		err_set(&err, ERR_INTERNAL, 0, "warden sent %zu sockets instead of %u", n_fds,
			a->request.count);
		failed = &err;
	}
	g->on_done(g, fds, failed);
}

void guest_sockets_ask(struct guest_sockets *g, struct warden_client *k, const char *id,
		       uint32_t count, uint64_t wait_ms,
		       void (*on_done)(struct guest_sockets *g, int *fds, const struct err *err))
{
	struct warden_request rq = { .verb = WARDEN_SOCKETS, .count = count };

	snprintf(rq.id, sizeof(rq.id), "%s", id);
	g->on_done = on_done;
	warden_again(k, &g->ask, &rq, wait_ms, on_answer);
}

void guest_sockets_cancel(struct guest_sockets *g)
{
	warden_ask_cancel(&g->ask);
}
