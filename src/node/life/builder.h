/* builder.h - a sandbox of node's own, in which a template is built.
 *
 *	builder_begin() -> on_running -> builder_dial(), builder_take() ... -> builder_end()
 *	at any time -> on_ended
 *
 * It is a sandbox as any other of its team: VM, network, rules. But no client knows of it, no limit
 * of its team counts it, it has no deadline, and it does not outlive node: its row says "creating"
 * as long as it lives, and the next node ends it.
 */
#pragma once

#include "node/life/snapshot_take.h"
#include "vm/agent_dial.h"

enum { BUILDER_DIAL_MS = 10 * 1000 }; /* for warden and for its agent, each */

struct builder_spec { /* borrowed for the call */
	const char *team;
	const char *key_id;         /* whose turn it is among creates; NULL: the team's */
	struct snapshot *snapshot;  /* of any kind; NULL: none */
	const char *ground;         /* then: a published template by its id; NULL: `base` */
	bool boot;                  /* from the disk alone: the only way with a step */
	uint32_t vcpus, memory_mib; /* with boot; both 0: of what it is made of */
	struct bytes text;          /* as of NODE_CREATE: envVars, network; may be empty */
};

struct builder;
struct builder_ops {
	void (*on_running)(struct builder *b);
	/* The last: it could not be started, or ended without being asked to. Whoever waits for a
	 * copy of it was told before. */
	void (*on_ended)(struct builder *b, const struct err *why);
};
struct builder { /* embedded by its owner; all zero: nothing under way */
	const struct builder_ops *ops;
	struct node *node;       /* NULL: nothing is under way */
	struct create *create;   /* until it runs */
	struct sandbox *sandbox; /* from then on */
};

/* Failure (-1): no callback follows. */
int builder_begin(struct builder *b, struct node *n, const struct builder_spec *spec,
		  const struct builder_ops *ops, struct err *err) NODISCARD;
/* No callback of its own follows; fine when nothing is under way. A copy of it that is not whole
 * fails: its user is told before this returns. */
void builder_end(struct builder *b);
const char *builder_id(const struct builder *b); /* of its sandbox, for the log; "": it has none */

/* Of one that runs: its disk as a step, or all of it as the end of a build. It is frozen for that
 * and goes on; what is asked of its agent meanwhile waits or fails. ERR_UNAVAILABLE: it is being
 * copied already. */
int builder_take(struct builder *b, const struct taking_spec *spec, struct taking_user *u,
		 struct err *err) NODISCARD;

struct builder_dial;
typedef void builder_dial_done_fn(struct builder_dial *d, struct stream *s, const struct err *err);
struct builder_dial { /* embedded by its owner; all zero: nothing under way */
	/* Once, from the loop: a stream to its agent that is now the callee's, or NULL and why. */
	builder_dial_done_fn *on_done;
	struct node *node;
	struct guest_sockets sockets;
	struct agent_dial dial;
};
/* Of one that runs. */
void builder_dial(struct builder_dial *d, const struct builder *b, builder_dial_done_fn *on_done);
void builder_dial_cancel(struct builder_dial *d); /* fine when nothing is under way */

/* For creates.c and end.c. */
void builder_runs(struct builder *b, struct sandbox *s);
void builder_refused(struct builder *b, const struct node_reply *r);
void builder_lost(struct builder *b, const char *why);
