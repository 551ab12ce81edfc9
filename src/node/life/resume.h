/* resume.h - a paused sandbox runs again, as if nothing had been, or boots from its disk.
 *
 *	turn -> files -> slot -> RESTORE -> pages applied, disk read -> state loaded
 *	     -> row: waking -> cont
 *	     -> identity -> row: running -> answer
 *
 * Up to the row "waking" any failure ends in a sandbox that is paused as before.
 */
#pragma once

#include "node/life/sandbox.h"

enum {
	RESUME_TRAFFIC_S = 5 * 60,  /* how long it runs when traffic resumed it */
	RESUME_MS = 150 * 1000,     /* until QEMU has its state: queue, slot, pages */
	RESUME_LINK_MS = 10 * 1000, /* while warden or egress is gone */
	RESUME_LOOK_MS = 100,       /* how often the links are looked at meanwhile */
};

/* A PAUSED one. Failure (-1): it still is. Who waits for it is in s->deferred. */
int resume_begin(struct sandbox *s, uint32_t timeout_s, bool memory, struct err *err) NODISCARD;
void resume_join(struct sandbox *s, uint32_t timeout_s); /* one more wants it, for so long */
void resume_cancel(struct sandbox *s);                   /* fine when none is under way */

/* For start.c, of one with s->resuming. */
size_t resume_fds(struct sandbox *s, int *fds, uint32_t *ret_flags); /* for RESTORE; how many */
void resume_spec(const struct sandbox *s, struct restore_spec *spec);
void resume_apply(struct sandbox *s); /* QEMU has mapped its memory */
void resume_held(struct sandbox *s);  /* it is loaded, and does not run */
void resume_failed(struct sandbox *s, const struct err *why);
/* Also for restart_stalled.c: it runs and knows the time. */
void resume_woken(struct sandbox *s);

/* Who it was. `resume`: it knows, and is told the time only. */
int resume_identity(const struct sandbox *s, bool resume, struct agent_identity *ret,
		    struct err *err) NODISCARD;
