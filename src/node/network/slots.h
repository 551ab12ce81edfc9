/* slots.h - the networks of sandboxes: made ahead of need, with their doors in egress's hands.
 *
 *	SLOT_MAKE -> DOORS -> EGRESS_OPEN -> ready -> used by one sandbox -> gone with its VM
 *
 * A slot is never given out before egress holds its doors, and never a second time.
 */
#pragma once

#include "node/links/egress_client.h"
#include "node/links/warden_client.h"

enum {
	SLOTS_NUMBERS_MAX = 4096,    /* warden's numbers are below this */
	SLOTS_AT_ONCE_MAX = 8,       /* being made, and as many being opened again */
	SLOTS_AGAIN_MS = 1000,       /* after one could not be made */
	SLOTS_READY_LIMIT = 256 + 8, /* NODE_SLOTS_MAX, and some */
};

struct slots;
struct slot_wait;
typedef void slot_fn(struct slot_wait *w, uint32_t slot);
struct slot_wait { /* embedded by the one who waits; all zero: does not wait */
	/* Once, from the loop, or at once from slots_take(). */
	slot_fn *on_slot;
	struct slots *slots;
	struct slot_wait *next, **prev;
};

enum slot_work_kind { SLOT_MAKING, SLOT_OPENING, SLOT_DROPPING, SLOT_WORK_KINDS };
enum slot_use { SLOT_NOT_OURS, SLOT_IN_USE, SLOT_LOST_DOORS };

struct slots {
	struct warden_client *warden;
	struct link *egress;
	/* The doors of a slot in use are open anew: egress knows nothing of who uses it. Set by the
	 * owner after slots_open(); may be NULL */
	void (*on_reopened)(struct slots *s, uint32_t slot);
	size_t wanted;
	uint32_t ready[SLOTS_READY_LIMIT];
	size_t n_ready, n_works[SLOT_WORK_KINDS];
	uint8_t use[SLOTS_NUMBERS_MAX];  /* enum slot_use */
	uint32_t next_lost;              /* where to look for lost doors */
	struct slot_wait *first, **last; /* who waits */
	size_t n_waiting;
	struct timer again;
	struct slot_work *works; /* all that is under way */
	bool closed;
};

void slots_open(struct slots *s, struct loop *l, struct warden_client *w, struct link *e,
		size_t wanted);
void slots_close(struct slots *s);

/* Both links are told of: what they lost is made anew. */
void slots_links_changed(struct slots *s);
void slots_warden_down(struct slots *s);
void slots_egress_down(struct slots *s);

void slots_take(struct slots *s, struct slot_wait *w, slot_fn *on_slot);
void slots_cancel(struct slot_wait *w);

void slots_adopt(struct slots *s, uint32_t slot); /* in use since before this node was started */
/* Its VM is about to be ended, and the slot with it: the doors go first. */
void slots_leave(struct slots *s, uint32_t slot);
void slots_drop(struct slots *s, uint32_t slot); /* taken, and no VM ever had it */
