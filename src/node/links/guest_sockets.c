/* guest_sockets.c - one request, and a look at how many came. */
#include "node/links/guest_sockets.h"

static void on_answer(struct link_call *a, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct guest_sockets *g = CONTAINER_OF(a, struct guest_sockets, ask);
	uint32_t asked = warden_request_of(r)->count;
	struct err err;

	if (!failed && r->n_fds != asked) {
		err_set(&err, ERR_INTERNAL, 0, "warden sent %zu sockets instead of %u", r->n_fds,
			asked);
		failed = &err;
	}
	g->on_done(g, r->fds, failed);
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
	link_cancel(&g->ask);
}
