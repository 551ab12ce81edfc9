/* save.h - from a running sandbox to its state on disk: all that changed, nothing else.
 *
 *	[reached -> frozen ->] stop -> stopped -> state -> copied -> durable
 *	first: beside the freeze, or before it when it must freeze
 *
 * These are also the names in the machine's table of times. While the guest runs the copier copies
 * what it has written so far ("first"), and while it stands still only what changed since. It
 * stands still from "stop", when QEMU is asked for it, until the owner lets it go on (thaw.h) or
 * ends it. A guest that does not answer the freeze in SAVE_FREEZE_MS is stopped all the same.
 *
 * QEMU writes the device state while the last pages are copied. That changes no memory: a migration
 * of QEMU's sends the memory first and that state last.
 */
#pragma once

#include "vm/agent_dial.h"
#include "vm/agent_link.h"
#include "vm/copier_link.h"
#include "vm/machine.h"

enum {
	SAVE_REACH_MS = 1000,      /* the agent; the guest still runs */
	SAVE_FREEZE_MS = 1000,     /* its answer, once it was asked, */
	SAVE_SURE_MS = 10 * 1000,  /* the same of both, when it must freeze: the agent tries 8 s */
	SAVE_FLUSH_MS = 60 * 1000, /* or when it must write back its disk first */
	SAVE_COPY_MS = 120 * 1000, /* each of the copier's answers: up to all of the memory */
};

struct save_result {
	struct copier_reply copied;
	bool frozen;         /* false: the guest did not answer, and was stopped as it was */
	uint64_t stopped_us; /* from asking QEMU to stop it until all was copied */
};

struct save_user;
struct save_user_ops {
	/* All is copied, not yet durable; the guest stands still. Call save_sync(), at once or when
	 * it goes on again. With disk_only there is nothing to copy: it has stopped. */
	void (*on_copied)(struct save_user *u, const struct save_result *r);
	/* The last call. Success: durable and compared. Failure: nothing of it is of use; the guest
	 * may be frozen or stopped: thaw.h, or its end. VM_GONE: QEMU can no longer be asked. */
	void (*on_done)(struct save_user *u, const struct save_result *r, const struct err *err);
};
struct save_user { /* embedded by the owner */
	const struct save_user_ops *ops;
};

struct save_spec { /* what it points to is borrowed until the save is over */
	struct save_user *user;
	struct addr agent;
	const char *control_token;
	const char *save_file; /* WARDEN_SAVE_FILE */
	uint32_t base_crc;     /* of the memory its own was mapped from; 0: not known */
	bool must_freeze;      /* for a copy: what runs on would not know who it is. Else failure */
	bool flush;            /* its disk is written back all the same: it may be booted alone */
	bool disk_only; /* freeze (which writes the guest's disk back) and stop: no copy. With
			 * must_freeze: a disk that was not written back is a failure */
};

struct save {                   /* embedded by the owner; all zero: nothing under way */
	struct save_user *user; /* NULL: nothing is */
	struct machine *machine;
	struct machine_user machine_user;
	struct machine_user *before; /* who the machine goes back to */
	struct save_spec spec;
	struct save_result result;
	uint64_t stop_ns;           /* when QEMU was asked to stop it */
	struct qmp_call stop, call; /* call: to save its state */
	struct agent_dial dial;
	struct agent_link link;
	int agent_socket; /* until it is used; -1: it was */
	struct copier_link copier;
	bool first, guest; /* over: the first pass, the freeze */
	bool copied;
	uint64_t pages_us; /* what the copier took for the second pass */
	struct err broken; /* why it fails, while QEMU is still to answer */
};

/* The machine must be running and outlive the save; it is the save's until on_done. Takes
 * `agent_socket` (unconnected, in the sandbox's network) in any case. Failure (-1): no callback
 * follows. Unless disk_only, save_copier() comes next. */
int save_start(struct save *s, struct machine *m, const struct save_spec *spec, int agent_socket,
	       struct err *err) NODISCARD;
/* Once, at once or later: a copier is at the other end of `control`, which is taken in any case.
 * May fail the save, and then calls on_done before it returns. */
void save_copier(struct save *s, int control);
/* After on_copied. May fail the save, or end it, and then calls on_done before it returns. */
void save_sync(struct save *s);
/* No callback; the guest stays as it is; fine when over. While QEMU is to answer a command the
 * machine is closed. */
void save_cancel(struct save *s);
