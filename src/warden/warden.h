/* warden.h - the state of the running warden, and how its parts find each other.
 *
 *	clients.c    accepts and answers         verbs.c  decides what a request means
 *	lifecycle.c  starts and stops one VM     tasks.c  jobs in flight
 *	main.c       sets it up and turns the loop
 *
 * One thread, one epoll. Nothing here waits: whatever may block is a job.
 */
#pragma once

#include "base/fdmsg.h"
#include "base/notify.h"
#include "warden/cell.h"
#include "jail/cgroup.h"
#include "warden/job.h"
#include "warden/settings.h"
#include "warden/slot.h"
#include "jail/view.h"
#include "warden/vmm.h"

enum { CLIENTS_MAX = 16, TASKS_MAX = 256, TASK_FDS_MAX = 2 + WARDEN_FDS_MAX, RETRY_MS = 200 };

#define NOBODY_WAITS ((struct waiting){ .client = CLIENTS_MAX })

/* What an epoll event is about: kind in the upper half, index in the lower. */
enum event_kind { EVENT_LISTEN, EVENT_CLIENT, EVENT_TASK, EVENT_CELL, EVENT_CHILD };

struct client {
	int sock; /* -1: free */
	uint32_t generation;
	bool greeted; /* its hello was answered */
};

enum slot_state { SLOT_FREE, SLOT_MAKING, SLOT_READY, SLOT_USED };

struct slot_place {
	enum slot_state state;
	struct slot slot;     /* SLOT_USED: the namespace is its cell's, which closes it */
	struct waiting maker; /* SLOT_READY: gone when this client is */
};

struct warden;
struct task;
typedef void task_done_fn(struct warden *w, struct task *t, const struct job_result *r);

struct task {
	task_done_fn *done; /* NULL: free */
	struct job job;
	struct waiting who;
	uint32_t slot;
	struct cell *cell;
	char template_id[WARDEN_ID_MAX + 1]; /* whose files it is busy with, or "" */
};

struct warden {
	struct config_value set[SETTINGS];
	struct view view;
	char view_at[VIEW_PATH_MAX * 2];
	struct vmm vmm;
	char vmm_version[128];
	struct cgroups cgroups;
	int vms, templates; /* folders */
	struct notify notify;
	uint64_t beat_ns; /* when its loop is to be told of next */
	int epoll, listener, child_signals;
	bool serving; /* false until what an earlier warden left is removed */
	struct cells cells;
	struct slot_place slots[CELLS_MAX];
	uint32_t next_slot, removals_due; /* cells whose removal could not be begun, or failed, */
	uint64_t retry_ns;                /* and when to try again */
	struct client clients[CLIENTS_MAX];
	struct task tasks[TASKS_MAX];
};

/* main.c: the loop. */
int warden_watch(struct warden *w, int fd, enum event_kind kind, uint32_t index,
		 struct err *err) NODISCARD;
void warden_unwatch(struct warden *w, int fd); /* before it is closed: a job may hold a copy */

/* One request, and where its answer goes. */
struct call {
	struct waiting who;
	struct warden_request rq;
	int fds[WARDEN_FDS_MAX]; /* closed when the call returns */
	size_t n_fds;
};
