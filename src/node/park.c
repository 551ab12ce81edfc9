/* park.c - a sandbox that is paused in its row has no VM for long. */
#include "base/log.h"
#include "node/monitor.h"
#include "node/node.h"
#include "node/pause.h"
#include "node/step.h"
#include "node/waits.h"

static void stop_vm(struct sandbox *s);

static void parked(struct sandbox *s)
{
	struct node *n = s->node;

	s->started = false;
	s->slot = WARDEN_NO_SLOT;
	s->machine = (struct machine){ 0 };
	sandbox_enter(&n->table, s, SANDBOX_PAUSED);
	step("pause.stop");
	creates_soon(n); /* there is room for another */
	waits_serve(s);
}

static void on_again(struct timer *t)
{
	stop_vm(CONTAINER_OF(t, struct sandbox, timer));
}

static void on_stopped(struct warden_ask *a, const struct warden_reply *reply, int *fds,
		       size_t n_fds, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(a, struct sandbox, ask);

	(void)reply, (void)fds, (void)n_fds;
	if (err && err->code != ERR_NOT_FOUND) {
		if (err->code != ERR_EXISTS)
			log_error("stop %s: %s; it is tried again", s->info.id, err->msg);
		timer_init(&s->timer, s->node->loop, on_again);
		timer_start(&s->timer, PARK_AGAIN_MS);
		return;
	}
	parked(s);
}

static void stop_vm(struct sandbox *s)
{
	struct warden_request rq = { .verb = WARDEN_STOP };

	slots_leave(&s->node->slots, s->slot);
	memcpy(rq.id, s->info.id, sizeof(rq.id));
	warden_again(&s->node->warden, &s->ask, &rq, 0, on_stopped);
}

void park(struct sandbox *s)
{
	timer_stop(&s->timer);
	monitor_forget(s);
	machine_close(&s->machine);
	s->monitor.up = false;
	s->monitor.disk_full = false;
	s->monitor.reason = NODE_ALIVE;
	sandbox_enter(&s->node->table, s, SANDBOX_PARKING);
	if (s->started) {
		stop_vm(s);
		return;
	}
	if (s->slot != WARDEN_NO_SLOT)
		slots_drop(&s->node->slots, s->slot);
	parked(s);
}
