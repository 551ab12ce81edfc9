/* monitor.h - QEMU's own word about a sandbox: a link that is kept, and what it says unasked. */
#pragma once

#include "node/protocol.h"
#include "vm/machine.h"

struct sandbox;

enum {
	MONITOR_ROOM_MS = 3 * 1000,   /* a full disk is looked at again so often */
	MONITOR_AGAIN_MS = 1000,      /* a link that ended is dialled after so long, then twice */
	MONITOR_AGAIN_MAX_MS = 60000, /* that, and so on up to this */
};

typedef void monitor_up_fn(struct sandbox *s, const struct err *err);

struct monitor { /* part of a sandbox, beside its machine */
	bool up;
	monitor_up_fn *on_up; /* who waits for it */
	struct qmp_call status, cont, console;
	enum node_reason reason; /* that QEMU gave before it ended */
	bool disk_full;          /* QEMU stopped it: the host's disk is full */
	struct timer room;       /* when to see whether there is some */
	struct timer again;      /* when to dial */
	uint32_t again_ms;       /* how long it waited the last time; 0: it was heard since */
};

/* 1: it is there. 0: on_up follows, once. -1: it cannot be had. One who waits at a time. */
int monitor_want(struct sandbox *s, monitor_up_fn *on_up, struct err *err) NODISCARD;
void monitor_keep(struct sandbox *s);   /* its machine has no user any more, and is ready */
void monitor_adopt(struct sandbox *s);  /* its VM is there: dial it, or dial it again */
void monitor_forget(struct sandbox *s); /* who waits is not told; the machine stays open */

void monitor_paused(struct sandbox *s); /* it waits for no room any more */

/* s->qmp_path */
int monitor_path(struct sandbox *s, struct err *err) NODISCARD;
