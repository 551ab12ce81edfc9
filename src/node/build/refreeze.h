/* refreeze.h - builds of templates that are booted and frozen again, because their memory is of
 * another QEMU, another processor or other arguments than this host has now, or of another kernel.
 *
 *	none -> due -> running -> none
 *	                  \-> resting -> due ... -> failed
 *
 * What a build left on its disk fits every host. Its memory does not: so the disk is booted, the
 * start command is run, the ready command passes, and the build has a new snapshot from then on.
 * No step of the build is run. The old snapshot goes with the last sandbox that was made of it.
 *
 * Who wants a sandbox meanwhile waits in the queue of creates, as those do who wait for the host's
 * own template. Booting a sandbox for each of them would be slower for all: a freeze is one boot
 * for as many as come, and what they get is what they always get, with the start command running.
 *
 * What has an old kernel can be loaded all the same: it serves until it is frozen again.
 *
 * Those that somebody waits for come first, then those that were used last. Nothing of it survives
 * node: the row of the build names the old snapshot until the new one is whole, and the next node
 * looks again at what fits. All of it is called on the loop.
 */
#pragma once

#include "base/err.h"
#include "net/timer.h"

enum {
	REFREEZE_TRIES_MAX = 4,       /* that failed in the guest; then it stays as it is */
	REFREEZE_AGAIN_MS = 5 * 1000, /* after the first; each time four times as long */
	REFREEZE_WAITS = 4,           /* for want of room: twice as long each time, so often */
	REFREEZE_LOOKS = 16,          /* builds that are compared with the host in one turn */
};

enum refreeze_state {
	REFREEZE_NONE,    /* it fits, or was not looked at */
	REFREEZE_DUE,     /* it waits for its turn */
	REFREEZE_RUNNING, /* a build_run has it, or its row is being written */
	REFREEZE_RESTING, /* it failed: `why`; due again at `rests_until_ms` */
	REFREEZE_FAILED,  /* too often; until the host is another one, or node is */
	REFREEZE_STATES,
};

struct build;
struct node;
struct snapshot;

struct refreeze { /* of each build, all zero at first */
	enum refreeze_state state;
	uint64_t looked;           /* refreezes.number of when it was compared with the host */
	bool serves;               /* its kernel alone is old: sandboxes are made of it meanwhile */
	bool wanted;               /* somebody waits for it */
	bool passing;              /* RESTING: for want of room, or of a daemon. It is no failure */
	unsigned int tries, waits; /* that failed; for want of room, in a row */
	uint64_t rests_until_ms;   /* by the loop's clock */
	struct err why;            /* why it is due, or why it failed */
	struct snapshot *next;     /* held: what it has, as soon as its row says so */
};

struct refreezes {
	uint64_t number; /* how often it was learned what this host has; 0: never */
	struct timer turn;
};

void refreezes_open(struct node *n);
void refreezes_close(struct node *n);
void refreezes_host_known(struct node *n); /* QEMU, processor: they may be others than before */
void refreezes_soon(struct node *n);       /* something changed: see whether anything can be done */

/* May sandboxes be made of the memory of `p` now? */
enum refreeze_answer {
	REFREEZE_GO,     /* of it, as far as is known here */
	REFREEZE_WAIT,   /* of what it is frozen to: that comes first from now on */
	REFREEZE_REFUSE, /* it failed: *err */
};
enum refreeze_answer refreeze_ask(struct snapshot *p, struct err *err);
/* What sandboxes are made of instead, since it was frozen again; NULL: `p` itself. */
struct snapshot *refreeze_instead(const struct snapshot *p);
/* It was refused by its files: it is compared again. False: nobody can freeze it again. */
bool refreeze_doubt(struct snapshot *p);
const char *refreeze_name(
	const struct build *b); /* of its state, for people; NULL: nothing to say */

/* For the catalog: the build lost its tags, or goes. Fine when nothing is under way. */
void refreeze_forget(struct build *b);

/* For builds.c and build_run.c. */
struct build *refreeze_next(const struct node *n,
			    bool wanted); /* the next that is due; NULL: none */
void refreeze_begun(struct build *b);
void refreeze_dropped(struct build *b);                  /* node stops: it is due as before */
void refreeze_done(struct build *b, struct snapshot *p); /* `p` is borrowed */
void refreeze_failed(struct build *b, const struct err *why);
