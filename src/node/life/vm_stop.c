/* vm_stop.c - warden is asked until it says that the VM is gone. */
#include "node/life/vm_stop.h"

#include "base/log.h"
#include "node/node.h"

static void ask(struct sandbox *s);

static void on_again(struct timer *t)
{
	ask(CONTAINER_OF(t, struct sandbox, timer));
}

static void on_answer(struct link_call *a, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct sandbox *s = CONTAINER_OF(a, struct sandbox, ask);

	if (err && err->code == ERR_DENIED) { /* another installation's: not ours to stop */
		log_warn("stop %s: %s; it is left alone", s->info.id, err->msg);
	} else if (err && err->code != ERR_NOT_FOUND) {
		if (err->code != ERR_EXISTS)
			log_error("stop %s: %s; it is tried again", s->info.id, err->msg);
		timer_init(&s->timer, s->node->loop, on_again);
		timer_start(&s->timer, VM_STOP_AGAIN_MS);
		return;
	}
	s->on_stopped(s);
}

static void ask(struct sandbox *s)
{
	struct warden_request rq = { .verb = WARDEN_STOP };

	memcpy(rq.id, s->info.id, sizeof(rq.id));
	warden_again(&s->node->warden, &s->ask, &rq, 0, on_answer);
}

/* Once, not with every attempt: warden may have removed the VM since, and its number be another's.
 */
void vm_leave_slot(struct sandbox *s)
{
	network_close_opened(s);
	if (s->started)
		slots_leave(&s->node->slots, s->slot);
	else if (s->slot != WARDEN_NO_SLOT)
		slots_drop(&s->node->slots, s->slot);
	s->slot = WARDEN_NO_SLOT;
}

void vm_stop(struct sandbox *s, sandbox_stopped_fn *on_stopped)
{
	s->on_stopped = on_stopped;
	if (s->started)
		ask(s);
	else
		on_stopped(s);
}
