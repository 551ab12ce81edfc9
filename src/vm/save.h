/* save.h - from a running sandbox to its state on disk: all that changed, nothing else.
 *
 *	frozen -> stopped -> (device state | pages) -> copied -> durable
 *
 * These are also the names in the machine's table of times. The guest stands still from "stopped"
 * until the owner lets it go on (thaw.h) or ends it. A guest that does not answer the freeze
 * in SAVE_FREEZE_MS is stopped all the same.
 */
#pragma once

#include "copier/protocol.h"
#include "net/watch.h"
#include "vm/agent_dial.h"
#include "vm/agent_link.h"
#include "vm/machine.h"

enum {
	SAVE_FREEZE_MS = 200,
	SAVE_COPY_MS = 120 * 1000, /* the copier's answer: it reads up to all of the memory */
	SAVE_MS = 5 * 60 * 1000,   /* all of it */
};

struct save_result {
	struct copier_reply copied;
	bool frozen;         /* false: the guest did not answer, and was stopped as it was */
	uint64_t stopped_us; /* how long it stood still until all was copied */
};

struct save_user;
struct save_user_ops {
	/* All is copied, not yet durable; the guest stands still. Call save_sync(), at once or when
	 * it goes on again. */
	void (*on_copied)(struct save_user *u, const struct save_result *r);
	/* The last call. Success: durable and compared. Failure: nothing of it is of use. When the
	 * guest was stopped it still is: thaw.h, or its end. */
	void (*on_done)(struct save_user *u, const struct save_result *r, const struct err *err);
};
struct save_user { /* embedded by the owner */
	const struct save_user_ops *ops;
};

struct save_spec { /* what it points to is borrowed until the save is over */
	struct addr agent;
	const char *control_token;
	const char *save_file; /* WARDEN_SAVE_FILE */
	bool disk_only;        /* freeze (which writes the guest's disk back) and stop: no copy */
};

struct save { /* embedded by the owner; all zero: nothing under way */
	struct save_user *user;
	struct machine *machine;
	struct machine_user machine_user;
	struct save_spec spec;
	struct save_result result;
	struct timer deadline;
	struct qmp_call stop, state;
	struct agent_dial dial;
	struct agent_link link;
	struct watch control_ready;
	int control; /* node's end of the copier's socket; -1: none */
	bool stopped, state_saved, copying, copied;
};

/* The machine must be running and outlive the save. Takes `agent_socket` (unconnected, in the
 * sandbox's network) and `control` (the copier is at its other end; -1 when disk_only) in any
 * case. Failure (-1): no callback follows. */
int save_start(struct save *s, struct machine *m, const struct save_spec *spec, int agent_socket,
	       int control, struct save_user *u, struct err *err) NODISCARD;
void save_sync(struct save *s);   /* after on_copied */
void save_cancel(struct save *s); /* no callback; the guest stays as it is; fine when over */
bool save_running(const struct save *s);
