/* doors.h - the two sockets at which everything ends that one sandbox begins.
 *
 * Without rules nobody is let out: a connection is reset at once, a name does not exist. What one
 * sandbox sends is heard up to a limit, in turn with the others; the rest waits in its own sockets,
 * or is lost there.
 */
#pragma once

#include "egress/house.h"
#include "egress/protocol.h"

enum {
	DOORS_BATCH = 16,     /* connections, or questions, taken from one door per turn */
	DOORS_HEARD_MS = 200, /* how often those heard of one sandbox are counted anew */
};

struct doors;

/* Takes both descriptors, also on failure: a listening TCP socket and a UDP socket, non-blocking.
 */
int doors_open(struct doors **ret, const struct house *house, const int fds[static EGRESS_DOORS],
	       struct err *err) NODISCARD;

/* The sandbox that uses them from now on: counts begin at 0, without rules. */
void doors_name(struct doors *d, const char id[static EGRESS_ID_MAX + 1]);
/* Its rules; what they do not allow any more is cut. */
int doors_rule(struct doors *d, struct bytes text, struct err *err) NODISCARD;
/* The way to its injector, before its rules; -1: none. Takes fd, also on failure. */
int doors_injector(struct doors *d, int fd, struct err *err) NODISCARD;

struct egress_counts doors_counts(const struct doors *d);
/* JSON, appended: audit.h, known_names.h. */
int doors_log(const struct doors *d, struct buf *out, struct err *err) NODISCARD;
int doors_known(const struct doors *d, struct buf *out, struct err *err) NODISCARD;

void doors_close(struct doors *d); /* NULL is fine */
