/* rouse.h - a sandbox that stands still, and should not, goes on: cont, its clock, the thaw. */
#pragma once

#include "node/life/sandbox.h"

enum {
	ROUSE_TRIES_MAX = 5,
	ROUSE_AGAIN_MS = 1000,
	ROUSE_SOCKET_MS = 60 * 1000, /* for warden */
};

/* PAUSING: then pause_undone(). WAKING: then resume_woken(). Neither: it has been ended. */
void rouse_begin(struct sandbox *s);
void rouse_cancel(struct sandbox *s); /* fine when none is under way */
