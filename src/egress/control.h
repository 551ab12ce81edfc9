/* control.h - where node hands over doors: a SOCK_SEQPACKET unix socket and the table of slots.
 *
 * Doors stay open when node goes: its sandboxes run on, and are let out as before. The next node
 * begins with EGRESS_RESET.
 */
#pragma once

#include <sys/types.h>

#include "egress/house.h"

struct control;

/* Listens at `path`, removing what was there. Only root and `node_uid` may ask. */
int control_open(struct control **ret, const struct house *house, const char *path, uid_t node_uid,
		 struct err *err) NODISCARD;

void control_close(struct control *c); /* with all doors */
