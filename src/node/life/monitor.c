/* monitor.c - dial it, ask what it does, listen to why it stops. */
#include "node/life/monitor.h"

#include <assert.h>

#include "base/log.h"
#include "node/life/end.h"
#include "node/record/console.h"
#include "node/node.h"
#include "node/life/pause.h"

static int dial(struct sandbox *s, struct err *err);
static void dial_later(struct sandbox *s);

static void tell(struct sandbox *s, const struct err *err)
{
	monitor_up_fn *on_up = TAKE(s->monitor.on_up);

	if (on_up)
		on_up(s, err);
}

/* --- a full disk -------------------------------------------------------------------------- */

static void on_cont(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(c, struct sandbox, monitor.cont);

	(void)ret;
	if (err)
		log_warn("%s: go on: %s", s->info.id, err->msg);
}

static void on_room(struct timer *t)
{
	struct sandbox *s = CONTAINER_OF(t, struct sandbox, monitor.room);
	struct err err;

	if (!s->monitor.disk_full)
		return;
	/* one that is not running is restart_stalled.c's to let go on */
	if (s->state == SANDBOX_RUNNING && files_room(s->node->files, 0, &err) == 0 &&
	    !s->monitor.cont.link &&
	    machine_ask(&s->machine, &s->monitor.cont, "cont", NULL, on_cont, &err) < 0)
		log_warn("%s: go on: %s", s->info.id, err.msg);
	timer_start(&s->monitor.room, MONITOR_ROOM_MS);
}

static void is_full(struct sandbox *s)
{
	if (!s->monitor.disk_full) {
		log_error("%s stands still: the host's disk is full; it goes on when there is room",
			  s->info.id);
		events_add(&s->record.events, EVENT_ERROR, "disk_full",
			   "The host's disk is full: the sandbox stands still until there is room");
	}
	s->monitor.disk_full = true;
	s->info.flags |= NODE_STALLED;
	timer_stop(&s->monitor.room);
	timer_init(&s->monitor.room, s->node->loop, on_room);
	timer_start(&s->monitor.room, MONITOR_ROOM_MS);
}

static void goes_on(struct sandbox *s)
{
	if (s->monitor.disk_full)
		events_add(&s->record.events, EVENT_INFO, "goes_on", "Sandbox goes on");
	monitor_paused(s);
}

void monitor_paused(struct sandbox *s)
{
	s->monitor.disk_full = false;
	s->info.flags &= ~(uint32_t)NODE_STALLED;
	timer_stop(&s->monitor.room);
}

/* --- what it says unasked ----------------------------------------------------------------- */

static void panicked(struct sandbox *s)
{
	s->monitor.reason = NODE_GUEST_PANIC;
	if (s->state == SANDBOX_RUNNING)
		sandbox_end(s, s->monitor.reason, "its kernel panicked");
}

/* --- a guest that has ended --------------------------------------------------------------- */

static void end_now(struct sandbox *s, enum console_end why)
{
	static const struct {
		enum node_reason reason;
		const char *text;
	} ends[] = {
		[CONSOLE_NOTHING] = { NODE_GUEST_PANIC, "its kernel crashed" },
		[CONSOLE_RESTART] = { NODE_KILLED, "it shut itself down" },
		[CONSOLE_PANIC] = { NODE_GUEST_PANIC, "its kernel panicked" },
		[CONSOLE_NO_MEMORY] = { NODE_OOM_GUEST, "its kernel had no memory left" },
	};

	s->monitor.reason = ends[why].reason;
	if (s->state != SANDBOX_ENDING)
		sandbox_end(s, s->monitor.reason, ends[why].text);
}

static void on_console(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(c, struct sandbox, monitor.console);

	if (err)
		log_info("%s: its console: %s", s->info.id, err->msg);
	end_now(s, err ? CONSOLE_NOTHING : console_end_of(ret));
}

/* It stands still, and its console is still there. A panic and a reboot are both a reset: the
 * console tells them apart. */
static void shut_down(struct sandbox *s, struct bytes why)
{
	struct err err;

	if (s->state == SANDBOX_ENDING || s->monitor.console.link)
		return;
	if (bytes_eq(why, BYTES_LIT("guest-shutdown")))
		end_now(s, CONSOLE_RESTART);
	else if (machine_ask(&s->machine, &s->monitor.console, "ringbuf-read", console_arguments(),
			     on_console, &err) < 0)
		end_now(s, CONSOLE_NOTHING);
}

static void on_event(struct machine_user *u, const struct qmp_message *e)
{
	struct sandbox *s = CONTAINER_OF(u, struct sandbox, machine_user);
	struct bytes why;

	if (machine_no_space(e)) {
		is_full(s);
	} else if (bytes_eq(e->name, BYTES_LIT("RESUME"))) {
		goes_on(s);
	} else if (bytes_eq(e->name, BYTES_LIT("GUEST_PANICKED"))) {
		panicked(s);
	} else if (machine_shut_down(e, &why)) {
		shut_down(s, why);
	}
}

/* --- a link that ended -------------------------------------------------------------------- */

static void on_again(struct timer *t)
{
	struct sandbox *s = CONTAINER_OF(t, struct sandbox, monitor.again);
	struct err err;

	if (s->state != SANDBOX_RUNNING || s->machine.life.state != VM_GONE)
		return; /* somebody else dials, or it is to be gone */
	if (dial(s, &err) < 0) {
		log_warn("%s: %s", s->info.id, err.msg);
		dial_later(s);
	}
}

/* Who was silent once, on a host that crawled, is asked again: else nobody would hear of its end.
 */
static void dial_later(struct sandbox *s)
{
	struct monitor *m = &s->monitor;

	if (m->again.active)
		return;
	m->again_ms = m->again_ms ? 2 * m->again_ms : MONITOR_AGAIN_MS;
	if (m->again_ms > MONITOR_AGAIN_MAX_MS)
		m->again_ms = MONITOR_AGAIN_MAX_MS;
	timer_init(&m->again, s->node->loop, on_again);
	timer_start(&m->again, m->again_ms);
}

/* QEMU may have ended, or only talked too much: warden knows. */
static void on_gone(struct machine_user *u, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(u, struct sandbox, machine_user);

	log_info("%s: %s", s->info.id, err->msg);
	s->monitor.up = false;
	reconcile_soon(s->node);
	tell(s, err);
	if (s->state == SANDBOX_RUNNING)
		dial_later(s);
}

/* --- its first words ---------------------------------------------------------------------- */

/* What it does now is the truth, whatever an earlier node was about to do. */
static void learn(struct sandbox *s, const char *status)
{
	bool runs = strcmp(status, "running") == 0;

	if (s->machine.life.state == VM_STARTING)
		vm_life_enter(&s->machine.life, VM_PAUSED);
	if (runs && s->machine.life.state == VM_PAUSED)
		vm_life_enter(&s->machine.life, VM_RUNNING);
	if (strcmp(status, "io-error") == 0)
		is_full(s);
	else if (strcmp(status, "guest-panicked") == 0)
		panicked(s);
	else if (strcmp(status, "shutdown") == 0)
		shut_down(s, (struct bytes){ 0 });
	else if ((!runs || s->marked) && s->state == SANDBOX_RUNNING)
		pause_left_over(s);
}

static void on_status(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(c, struct sandbox, monitor.status);
	char status[32] = "?";

	if (err) {
		tell(s, err);
		return;
	}
	(void)machine_status(ret, status, sizeof(status));
	s->monitor.up = true;
	s->monitor.again_ms = 0;
	learn(s, status);
	if (s->state != SANDBOX_ENDING)
		tell(s, NULL);
}

static void on_ready(struct machine_user *u)
{
	struct sandbox *s = CONTAINER_OF(u, struct sandbox, machine_user);
	struct err err;

	if (machine_ask(&s->machine, &s->monitor.status, "query-status", NULL, on_status, &err) < 0)
		tell(s, &err);
}

static const struct machine_user_ops ops = { NULL, on_ready, on_event, on_gone };

/* --- for others --------------------------------------------------------------------------- */

int monitor_path(struct sandbox *s, struct err *err)
{
	int n = snprintf(s->qmp_path, sizeof(s->qmp_path), "%s/" WARDEN_QMP_PATH,
			 s->node->set[SET_STATE_DIR].text, s->info.id);

	if (n < 0 || (size_t)n >= sizeof(s->qmp_path))
		return err_set(err, ERR_INVALID, 0, "path too long");
	return 0;
}

void monitor_keep(struct sandbox *s)
{
	s->machine_user.ops = &ops;
	machine_set_user(&s->machine, &s->machine_user);
	s->monitor.up = s->machine.qmp;
}

static int dial(struct sandbox *s, struct err *err)
{
	s->machine_user.ops = &ops;
	s->monitor.up = false;
	if (s->machine.life.state == VM_GONE)
		s->machine = (struct machine){ .steps = s->machine.steps };
	if (s->machine.life.state != VM_NEW)
		return 0; /* it is being dialled */
	if (monitor_path(s, err) < 0)
		return -1;
	return machine_connect(&s->machine, s->node->loop, s->qmp_path, &s->machine_user, err);
}

int monitor_want(struct sandbox *s, monitor_up_fn *on_up, struct err *err)
{
	if (s->monitor.up && s->machine.qmp)
		return 1;
	assert(!s->monitor.on_up);
	if (dial(s, err) < 0)
		return -1;
	s->monitor.on_up = on_up;
	return 0;
}

void monitor_adopt(struct sandbox *s)
{
	struct err err;

	if (s->machine.life.state == VM_GONE)
		dial_later(s);
	else if (s->machine.life.state == VM_NEW && dial(s, &err) < 0)
		log_warn("%s: %s", s->info.id, err.msg);
}

void monitor_forget(struct sandbox *s)
{
	s->monitor.on_up = NULL;
	timer_stop(&s->monitor.room);
	timer_stop(&s->monitor.again);
}
