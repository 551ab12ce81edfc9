/* reach.c - a connection to a sandbox's agent: a socket from warden, then a dial. */
#include "tests/driver/driver.h"

static void on_dialled(struct agent_dial *d, struct stream *s, const struct err *err)
{
	struct reach *r = CONTAINER_OF(d, struct reach, dial);

	r->on_done(r, s, err);
}

static void on_socket(struct link_call *c, const struct link_reply *got)
{
	struct reach *r = CONTAINER_OF(c, struct reach, call);
	struct err err;

	if (got->err) {
		r->on_done(r, NULL, got->err);
		return;
	}
	if (got->n_fds != 1)
		err_set(&err, ERR_INTERNAL, 0, "warden sent %zu sockets", got->n_fds);
	else if (agent_dial_start(&r->dial,
				  &(struct agent_dial_spec){ r->d->loop, take_fd(&got->fds[0]),
							     &r->d->agent, AGENT_DIAL_UP_MS,
							     DRIVER_AGENT_MS },
				  on_dialled, &err) == 0)
		return;
	r->on_done(r, NULL, &err);
}

void reach_start(struct reach *r, struct driver *d, const char *sandbox,
		 void (*on_done)(struct reach *r, struct stream *s, const struct err *err))
{
	struct warden_request rq = { .verb = WARDEN_SOCKETS, .count = 1 };
	struct err err;

	*r = (struct reach){ .d = d, .on_done = on_done };
	snprintf(rq.id, sizeof(rq.id), "%s", sandbox);
	if (driver_ask(d, &r->call, &rq, NULL, 0, on_socket, &err) < 0)
		on_done(r, NULL, &err);
}
