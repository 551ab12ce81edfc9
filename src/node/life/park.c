/* park.c - a sandbox that is paused in its row has no VM for long. */
#include "node/life/park.h"

#include "node/life/monitor.h"
#include "node/node.h"
#include "node/life/step.h"
#include "node/life/vm_stop.h"
#include "node/life/deferred.h"

static void parked(struct sandbox *s)
{
	struct node *n = s->node;

	s->started = false;
	s->machine = (struct machine){ 0 };
	sandbox_enter(&n->table, s, SANDBOX_PAUSED);
	step("pause.stop");
	creates_soon(n); /* there is room for another */
	deferred_serve(s);
}

void park_loaded(struct sandbox *s)
{
	s->awaits_look = true;
	sandbox_enter(&s->node->table, s, SANDBOX_PARKING);
}

void park_looked(struct sandbox *s, bool has_vm)
{
	if (!s->awaits_look || s->state != SANDBOX_PARKING)
		return;
	s->awaits_look = false;
	s->started = has_vm;
	vm_stop(s, parked);
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
	vm_leave_slot(s);
	vm_stop(s, parked);
}
