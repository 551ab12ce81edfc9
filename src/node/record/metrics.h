/* metrics.h - samples of all running sandboxes, taken on the host: no guest is woken for it.
 *
 * Processor and memory are those of the VM's control group, QEMU's own part included; memory is
 * what the VM does not share with its template. The disk is what its overlay takes on the host's.
 * A sandbox's history is in node's memory: it survives a pause, not a restart of node.
 */
#pragma once

#include "base/bytes.h"
#include "net/timer.h"
#include "node/door/gateway_door.h"
#include "node/record/history.h"
#include "node/record/vm_group.h"

struct sandbox;

enum {
	METRICS_TURN_MS = 200,
	METRICS_TURN_MAX = 64,   /* samples in one turn of the loop: about 5 ms */
	METRICS_FIRST_MS = 1000, /* the first point comes early */
	METRICS_POINTS_MAX = 500,
	METRICS_LATEST_S = 60,    /* what is older says nothing of now */
	METRICS_POINT_TEXT = 300, /* bytes of one as JSON, at most */
};

struct metrics { /* of one sandbox; all zero: nothing yet */
	struct history history;
	struct vm_usage last; /* at last_ns, of CLOCK_MONOTONIC; 0: none */
	uint64_t last_ns;
	uint64_t due_ms;
};

void metrics_open(struct node *n);
void metrics_close(struct node *n);
void metrics_done(struct metrics *m);

/* NODE_METRICS */
verb_fn metrics_ask;

/* From two samples, `ns` apart. False: they are of two VMs. */
bool metrics_point(const struct vm_usage *before, const struct vm_usage *now, uint64_t ns,
		   const struct node_sandbox *info, struct history_point *ret);
/* The newest of a sandbox, as JSON, appended; nothing when it has none, or runs and has had none
 * for a minute. One that does not run uses its disk alone. */
int metrics_put_latest(const struct sandbox *s, struct buf *out, struct err *err) NODISCARD;
/* {"timestamp":..., ...}, appended. */
int metrics_put(const struct history_point *p, const struct node_sandbox *info, struct buf *out,
		struct err *err) NODISCARD;
