/* link_hello.h - what two daemons say to each other first: which versions of their protocol each
 * speaks, and which build it is.
 *
 * The first datagram of a connection is the client's hello, and the first answer is the server's.
 * Neither sends anything else before it has the other's. Without a version that both speak the
 * connection ends there.
 */
#pragma once

#include "base/bytes.h"

enum { LINK_BUILD_SIZE = 32 };

#define LINK_MAGIC "hotcell" /* with its NUL */

struct link_hello { /* never changes: it is what finds out about changes */
	char magic[sizeof(LINK_MAGIC)];
	uint32_t min, max; /* versions of the protocol; not 0 */
	char build[LINK_BUILD_SIZE];
};

extern const char link_build[]; /* of this program */

struct link_hello link_hello_make(uint32_t min, uint32_t max);
bool link_hello_ok(const struct link_hello *h); /* one that came from outside */

/* The highest version that both speak; 0: none. */
uint32_t link_hello_version(const struct link_hello *a, const struct link_hello *b);

/* The server's side: take the client's hello and answer it. -1: the connection is to be closed, but
 * for err->sys EAGAIN, when it has not come yet. */
int link_hello_answer(int sock, uint32_t min, uint32_t max, struct err *err) NODISCARD;
