/* snapshot_take.h - a running sandbox is copied, and goes on.
 *
 *	as a pause up to: memory copied -> a copy of the disk begun -> it goes on
 *	meanwhile: disk copied -> one memory file -> manifest -> synced -> renamed -> row
 *	-> whoever asked is told
 *
 * Up to "it goes on" it is pause.c's; the rest is the taking's alone. A disk that would have more
 * than `layers_max` layers is written as one: nobody stops for that.
 *
 * Of a step of a build there is no memory: the guest has written its disk back, and stops only for
 * the copy of that to begin. The end of a build has its memory, and its disk is written back, too:
 * later builds may boot from it.
 */
#pragma once

#include "node/life/snapshots.h"

struct taking;
struct disk_copy;
struct taking_user {
	/* Once. `p` is the taker's to hold if it wants to keep it. */
	void (*on_taken)(struct taking_user *u, struct snapshot *p, const struct err *err);
};

struct taking_spec {                     /* borrowed for the call */
	enum journal_kind kind;          /* JOURNAL_STEP: its disk alone, written back */
	const struct node_request *name; /* JOURNAL_SNAPSHOT; NULL: for a fork, and hidden */
	const char *key;                 /* JOURNAL_STEP, at most NODE_ID_MAX */
	const char *context;             /* JSON, build/build_context.h; NULL: of what is below */
};
/* Of a RUNNING one, or of a PAUSED one with its memory, which stays so and is no step. Failure
 * (-1): nothing follows. */
int taking_begin(struct sandbox *s, const struct taking_spec *spec, struct taking_user *u,
		 struct err *err) NODISCARD;
void takings_close(struct node *n);                           /* at node's own end */
bool takings_need(const struct node *n, const char *base_id); /* is any made on this template? */

/* NODE_SNAPSHOT */
verb_fn snapshot_ask;

/* For pause.c. */
void taking_order(const struct taking *t, enum files_verb verb, struct files_order *ret);
/* Its memory is in files, and it goes on; it is needed until its disk is, too. Takes `d`. */
void taking_copied(struct taking *t, struct sandbox *s, struct disk_copy *d);
/* What its source knows of names; NULL: nothing. It may end its need of the source. */
void taking_known(struct taking *t, const char *known);
void taking_lost(struct sandbox *s); /* it ends: what copies its disk has failed. Fine when none */
void taking_failed(struct taking *t, const struct err *why); /* before that */
