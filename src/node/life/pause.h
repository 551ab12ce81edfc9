/* pause.h - a running sandbox becomes files, and its VM goes.
 *
 *	turn -> files -> copier -> socket -> save (vm/) -> synced -> renamed -> row: paused
 *	     -> answer -> VM removed
 *
 * Up to the row any failure ends in a sandbox that runs on.
 */
#pragma once

#include "node/journal/journal_snapshots.h"
#include "node/life/sandbox.h"

enum {
	PAUSE_LINK_MS = 10 * 1000,   /* for warden to be there */
	PAUSE_LOOK_MS = 100,         /* how often that is looked at */
	PAUSE_SOCKET_MS = 10 * 1000, /* for warden: the socket to freeze it */
	PAUSE_AGAIN_MS = 30 * 1000,  /* its time was over and it could not be paused: tried again */
};

/* A RUNNING one. `asked` NULL: its time is over. */
void pause_begin(struct sandbox *s, struct door_asked *asked, bool memory);
/* The same way to a copy of it; it goes on when that is there, or when it failed. */
struct taking;
int pause_for_copy(struct sandbox *s, struct taking *t, enum journal_kind kind,
		   struct err *err) NODISCARD;
/* Does it still wait for its turn? */
bool pause_waits(const struct sandbox *s);
void pause_cancel(struct sandbox *s); /* whoever asked is not answered; fine when none */
/* Who asked for a pause that is under way: to be answered by the caller. */
struct door_asked *pause_take_asked(struct sandbox *s);

/* A RUNNING one that an earlier node stopped and left so: it goes on. */
void pause_left_over(struct sandbox *s);
/* For restart_stalled.c: it goes on after a pause that failed. */
void pause_undone(struct sandbox *s);
