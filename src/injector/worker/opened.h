/* opened.h - one connection of a sandbox to a host with a rule: read, requests rewritten, sent on.
 *
 *	guest ── TLS, as that host ── HTTP/1.1, fields set ── TLS, its certificate checked ── server
 *
 * Or without TLS on both sides; then nothing secret is added. What cannot be done is told to the
 * guest in HTTP, as long as nothing of an answer has passed.
 *
 * Or to one that egress refuses: there is no server, and the guest's request is answered with why.
 */
#pragma once

#include "injector/worker/hand.h"
#include "injector/worker/worker.h"

enum {
	OPENED_IDLE_MS = 3600 * 1000,
	OPENED_PAGE_MS =
		30 * 1000, /* for one that is refused to greet and ask; a guest may be slow */
};

/* Takes both descriptors: the guest's and the server's, which is -1 of one that is refused. When it
 * is over, egress is told. */
void opened_start(struct worker *w, const struct injector_hand *hand, const struct hand_rest *rest,
		  const int fds[static INJECTOR_HAND_FDS]);
void opened_cut(struct opened *o);
/* What it and those behind it have moved since egress was told. */
void opened_tell_all(struct opened *first);
