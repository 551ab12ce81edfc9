/* control.h - where gateways ask for signatures: a SOCK_SEQPACKET unix socket. */
#pragma once

#include <sys/types.h>

#include "signer/keyring.h"

struct control;

/* Listens at `path`, removing what was there. Only root and `gateway_uid` may ask. Before its loop
 * runs it is given the keys, which outlive it. */
int control_open(struct control **ret, struct loop *l, const char *path, uid_t gateway_uid,
		 struct err *err) NODISCARD;
void control_serve(struct control *c, struct keyring *k);
void control_close(struct control *c); /* NULL is fine */
