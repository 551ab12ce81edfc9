/* devtools_urls.h - the addresses of WebSockets in what Chromium's DevTools answers, on their way
 * to a client. Pure.
 *
 * DevTools tells clients where to connect by the Host it was given: "ws://HOST/devtools/..." and
 * "?ws=HOST/devtools/...". It was given a mark that nobody else knows; in its place comes the host
 * that the client used, and wss where that is spoken. Text passes piece by piece, in bounded
 * memory.
 */
#pragma once

#include "base/bytes.h"

enum {
	DEVTOOLS_MARK_MIN = 24, /* letters that are drawn */
	DEVTOOLS_MARK_MAX = 63,
	DEVTOOLS_HOST_MAX = 262, /* a name and a port */
	DEVTOOLS_HELD_MAX = 5 + DEVTOOLS_MARK_MAX,
	DEVTOOLS_TEXT_MAX = 4 << 20, /* a list of thousands of tabs; what follows passes unread */
};

struct devtools_urls {
	char mark[DEVTOOLS_MARK_MAX + 1]; /* the Host that DevTools was given */
	char host[DEVTOOLS_HOST_MAX + 1]; /* what comes in its place */
	bool secure;
	uint8_t held[DEVTOOLS_HELD_MAX]; /* perhaps the beginning of one */
	size_t n_held;
	size_t n_read;
};

/* Appends what can be passed on now. */
int devtools_urls_pass(struct devtools_urls *u, struct bytes piece, struct buf *out,
		       struct err *err) NODISCARD;
/* The text is over: what was held is not the beginning of one. */
int devtools_urls_end(struct devtools_urls *u, struct buf *out, struct err *err) NODISCARD;
