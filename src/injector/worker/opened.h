/* opened.h - one connection of a sandbox to a host with a rule: read, requests rewritten, sent on.
 *
 *	guest ── TLS, as that host ── HTTP/1.1, fields set ── TLS, its certificate checked ── server
 *
 * Or without TLS on both sides; then nothing secret is added. What cannot be done is told to the
 * guest in HTTP, as long as nothing of an answer has passed.
 */
#pragma once

#include "injector/worker/worker.h"

enum { OPENED_IDLE_MS = 3600 * 1000 };

/* Takes both descriptors: the guest's and the server's. When it is over, egress is told. */
void opened_start(struct worker *w, const struct injector_hand *hand, struct bytes first,
		  const int fds[static INJECTOR_HAND_FDS]);
void opened_cut(struct opened *o);
/* What it and those behind it have moved since egress was told. */
void opened_tell_all(struct opened *first);
