/* restart_stalled.c - the monitor, a socket into its network, the thaw; and all of it again. */
#include "node/life/restart_stalled.h"

#include "base/log.h"
#include "node/life/end.h"
#include "node/life/monitor.h"
#include "node/node.h"
#include "node/life/pause.h"
#include "node/life/resume.h"
#include "vm/thaw.h"

struct restart_stalled {
	struct sandbox *sandbox;
	struct thaw thaw;
	struct agent_identity identity;
	struct guest_sockets socket;
	struct timer again;
	unsigned int tries;
};

static void attempt(struct restart_stalled *r);

void restart_stalled_cancel(struct sandbox *s)
{
	struct restart_stalled *r = TAKE(s->restarting);

	if (!r)
		return;
	monitor_forget(s);
	thaw_cancel(&r->thaw);
	guest_sockets_cancel(&r->socket);
	timer_stop(&r->again);
	agent_identity_done(&r->identity);
	free(r);
}

static void on_again(struct timer *t)
{
	attempt(CONTAINER_OF(t, struct restart_stalled, again));
}

static void fail(struct restart_stalled *r, const struct err *why)
{
	struct sandbox *s = r->sandbox;

	log_warn("%s does not go on: %s", s->info.id, why->msg);
	if (s->monitor.disk_full) { /* not its fault: it goes on when there is room */
		timer_start(&r->again, MONITOR_ROOM_MS);
		return;
	}
	if (++r->tries < RESTART_TRIES_MAX) {
		timer_start(&r->again, RESTART_AGAIN_MS);
		return;
	}
	sandbox_end(s, s->monitor.reason ? s->monitor.reason : NODE_VMM_CRASH, "it stands still");
}

static void on_thawed(struct thaw *t, const struct err *err)
{
	struct restart_stalled *r = CONTAINER_OF(t, struct restart_stalled, thaw);
	struct sandbox *s = r->sandbox;

	if (err) {
		fail(r, err);
		return;
	}
	restart_stalled_cancel(s);
	log_info("%s goes on", s->info.id);
	if (s->state == SANDBOX_PAUSING)
		pause_undone(s);
	else
		resume_woken(s);
}

static void on_socket(struct guest_sockets *g, int *fds, const struct err *failed)
{
	struct restart_stalled *r = CONTAINER_OF(g, struct restart_stalled, socket);
	struct sandbox *s = r->sandbox;
	struct err err;

	if (failed) {
		fail(r, failed);
		return;
	}
	agent_identity_refresh(&r->identity);
	if (thaw_start(&r->thaw,
		       &(struct thaw_spec){ &s->machine, &s->node->agent, take_fd(&fds[0]),
					    &r->identity },
		       on_thawed, &err) < 0)
		fail(r, &err);
}

static void ask_socket(struct restart_stalled *r)
{
	struct sandbox *s = r->sandbox;

	guest_sockets_ask(&r->socket, &s->node->warden, s->info.id, 1, RESTART_SOCKET_MS,
			  on_socket);
}

static void on_monitor(struct sandbox *s, const struct err *err)
{
	if (err)
		fail(s->restarting, err);
	else
		ask_socket(s->restarting);
}

/* As long as its time lasts, as one that runs would. */
static void wait_for_room(struct restart_stalled *r)
{
	struct sandbox *s = r->sandbox;

	if (lease_left_ns(&s->lease, lease_clock()) == 0 && !(s->info.flags & NODE_AUTO_PAUSE))
		sandbox_end(s, NODE_DISK_FULL, "its time is over and the host's disk is full");
	else
		timer_start(&r->again, MONITOR_ROOM_MS);
}

static void attempt(struct restart_stalled *r)
{
	struct sandbox *s = r->sandbox;
	struct err err;
	int there;

	if (s->monitor.disk_full && files_room(s->node->files, 0, &err) < 0) {
		wait_for_room(r);
		return;
	}
	there = monitor_want(s, on_monitor, &err);
	if (there < 0)
		fail(r, &err);
	else if (there > 0)
		ask_socket(r);
}

void restart_stalled_begin(struct sandbox *s)
{
	struct restart_stalled *r = calloc(1, sizeof(*r));
	struct err err;

	if (!r) {
		sandbox_end(s, NODE_LOST, "no memory to let it go on");
		return;
	}
	if (resume_identity(s, true, &r->identity, &err) < 0) {
		free(r);
		sandbox_end(s, NODE_LOST, err.msg);
		return;
	}
	r->sandbox = s;
	s->restarting = r;
	timer_init(&r->again, s->node->loop, on_again);
	timer_start(&r->again, 0);
}
