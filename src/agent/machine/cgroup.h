/* cgroup.h - the cgroup (version 2) of the user's processes: join it, freeze it, thaw it. */
#pragma once

#include "net/timer.h"
#include "net/watch.h"

enum {
	CGROUP_FREEZE_MS = 200,    /* how long a freeze may take */
	CGROUP_SURE_MS = 8 * 1000, /* when what does not freeze cannot be saved */
};

struct cgroup {
	int dir; /* -1: there is none, and processes stay where the agent is */
};

int cgroup_open(struct cgroup *c, const char *path, struct err *err) NODISCARD;
void cgroup_close(struct cgroup *c);

int cgroup_thaw(const struct cgroup *c, struct err *err) NODISCARD;

struct freeze;
typedef void freeze_done_fn(struct freeze *f, const struct err *err);
struct freeze { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop: frozen (NULL), ERR_TIMEOUT, or why not. Then it is over. After a
	 * timeout the kernel goes on trying: the machine is about to be stopped in any case. */
	freeze_done_fn *on_done;
	const struct cgroup *cgroup;
	struct watch changed;
	struct timer deadline, soon;
	uint64_t ms;
	int inotify;
};

/* Failure (-1) means that on_done will not come. */
int freeze_start(struct freeze *f, struct loop *l, const struct cgroup *c, uint64_t ms,
		 freeze_done_fn *on_done, struct err *err) NODISCARD;
void freeze_cancel(struct freeze *f); /* on_done will not come; the cgroup freezes all the same */
