/* pools.h - VMs that wait for a create: a pool for each source of sandboxes that is used.
 *
 * `base` has as many as the operator says (`pool`). A snapshot that creates come for has as many as
 * its use asks for (pool_policy.h), at most `pool_each_max`, and none when it is not used any more.
 * Hidden snapshots, those of forks among them, have none.
 *
 * All pools are within one budget (`pool_memory_mib`). What a VM is counted with is what admission
 * counts, or what its control group takes, if that is more; one that is being removed still counts.
 * Of the budget base has its share, whatever the others want. Then each snapshot gets one VM, the
 * most used of late first, and then what else it wants in the same order: what was used least
 * shrinks first. One that has a VM loses it to who is used more than twice as much: of many that
 * are used in turn some find a VM, instead of each taking the next one's.
 *
 * VMs in a pool are nobody's, and give way: to a create or a resume that the host has no other
 * memory for, and to whoever wants the snapshot gone. Their guests run, and the processes of the
 * snapshot in them stay frozen until the claim.
 */
#pragma once

#include "node/life/pool_policy.h"
#include "node/life/sandbox.h"

enum {
	POOLS_MAX = 1024,      /* of snapshots; one more has none */
	POOLS_LOOK_MS = 1000,  /* how often use and memory are looked at */
	POOL_VM_MIB_MAX = 256, /* what one that waits takes at most; some 25 is usual */
	POOLS_TIDY_MS = 5000,  /* how often one that has nothing is */
	POOLS_TIDY_MAX = 8,    /* of those in one look: each looks at every sandbox */
	POOLS_TOLD = 32,       /* in one answer, the most used first */
	POOL_WARM_MIB = 256,   /* of a snapshot's memory that is read ahead */
	POOLS_COOL_MAX = 64,   /* snapshots that leave the page cache at one call */
};

struct create;
struct snapshot;

struct pool {
	struct snapshot *snapshot; /* which points back; NULL: base's */
	struct pool_use use;
	size_t wanted, allowed;              /* by its use; of these, within the budget */
	uint64_t rank;                       /* by its use, and by whether it has a VM */
	size_t refs;                         /* creates that may take of it; of these, */
	size_t waiting;                      /* those in the queue */
	size_t matched;                      /* creates.c: of these, for whom one is starting */
	size_t starting;                     /* begun, and not ready yet */
	struct sandbox *ready, **ready_last; /* those WAITING, the oldest first; so many: */
	size_t n_ready;
	uint64_t vm_mib;           /* what one of its VMs is counted with, the most so far */
	bool warmed;               /* its snapshot's memory was read ahead */
	uint64_t tidy_ms;          /* when to see next whether it can go */
	struct pool *next, **prev; /* of snapshots: the most used of late first */
};

struct pools {
	struct pool base;
	struct pool *all; /* of snapshots; so many: */
	size_t n;
	size_t n_ready;                 /* in all of them */
	uint64_t used_mib, leaving_mib; /* of what is pooled; of these, of what is being removed */
	struct timer look;
};

void pools_open(struct node *n);
void pools_close(struct node *n); /* before sandboxes and snapshots go */

/* Where a create of `p` may find a VM; NULL: nowhere, one is begun for it. `p` NULL: base. It is
 * borrowed; count it in `refs` while it is kept. */
struct pool *pools_of(struct node *n, struct snapshot *p);
void pools_used(struct node *n, struct pool *pool); /* a create for it was let in */

/* Of a sandbox that is nobody's: */
void pools_begun(struct sandbox *s, struct pool *pool);
void pools_ready(struct sandbox *s); /* it has come to WAITING */
void pools_leave(struct sandbox *s); /* it ends; fine when it is in none */
void pools_claim(struct sandbox *s); /* the same: it becomes somebody's */
void pools_freed(struct sandbox *s); /* it is gone, and what it took */
void pools_count(struct sandbox *s); /* at start: it was in the pool of its snapshot */

/* What each may have now, and who has more: those are ended. */
void pools_plan(struct node *n);
/* The pool that is to be given one more VM now. NULL: none lacks one, or nothing may be begun. */
struct pool *pools_lacking(struct node *n);
size_t pools_wanted(const struct node *n);            /* VMs, in all of them */
void pools_failed(struct node *n, struct pool *pool); /* a start for it did, and nobody waited */

/* Snapshots without a pool that no VM had for `pool_unused_s` leave the page cache, too: steps,
 * those of forks, and all when there are no pools. Some at each call. */
void pools_cool_unused(struct node *n);
void pools_note_cached(struct snapshot *p); /* a VM has it now */

/* What pools of snapshots could give back: guest memory, and memory of the host. */
struct pools_spare {
	uint64_t guest_mib, own_mib;
};
struct pools_spare pools_spare(const struct node *n);
bool pools_yield(struct node *n); /* end the one that is missed least; false: there is none */
void pools_drop(struct snapshot *p, const char *why); /* end all of its pool */
void pools_forget(struct snapshot *p);                /* it goes, and has no users */

uint64_t pool_guest_mib(const struct node *n, const struct pool *pool);
uint64_t pools_budget_mib(const struct node *n); /* UINT64_MAX: none */

/* Each gets `allowed` of what is `wanted`, in the order of the list: one, then the rest; as long
 * as there are `mib` and `vms`. Pure. */
void pools_share(struct pool *first, uint64_t mib, size_t vms);
