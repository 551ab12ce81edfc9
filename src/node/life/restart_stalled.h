/* restart_stalled.h - let a guest run on that a failed pause, or a resume that did not
 * end well, left stopped: cont, clock, thaw. */
#pragma once

#include "node/life/sandbox.h"

enum {
	RESTART_TRIES_MAX = 5,
	RESTART_AGAIN_MS = 1000,
	RESTART_SOCKET_MS = 60 * 1000, /* for warden */
};

/* PAUSING: then pause_undone(). WAKING: then resume_woken(). Neither: it has been ended. */
void restart_stalled_begin(struct sandbox *s);
void restart_stalled_cancel(struct sandbox *s); /* fine when none is under way */
