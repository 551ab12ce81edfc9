/* control.h - where node asks for workers: a SOCK_SEQPACKET unix socket.
 *
 * Workers live on when node goes: its sandboxes run on. The next node begins with INJECTOR_RESET.
 */
#pragma once

#include <sys/types.h>

#include "injector/workers.h"

struct control;

/* Listens at `path`, removing what was there. Only root and `node_uid` may ask. */
int control_open(struct control **ret, struct loop *l, const struct keys *k, struct forkserver *n,
		 const char *path, uid_t node_uid, struct err *err) NODISCARD;
void control_close(struct control *c); /* with all workers */
