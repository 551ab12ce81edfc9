/* control.h - where node asks for images: a SOCK_SEQPACKET unix socket. */
#pragma once

#include <sys/types.h>

#include "images/jobs.h"
#include "tls/seal.h"

struct control;

struct control_terms {
	const struct config_value *set; /* outlives it, as do the others */
	struct forkserver *forkserver;
	const struct seal_key *key;
	const char *agent; /* digest of the one that disks get */
};

/* Listens, removing what was there. Only root and node_uid may ask. */
int control_open(struct control **ret, struct loop *l, const struct control_terms *t,
		 struct err *err) NODISCARD;
void control_close(struct control *c); /* NULL is fine */
