/* names.h - what a guest asks the resolver, and what it is told: the addresses of names it may
 * reach; nothing of any other kind; that any other name does not exist, or, where refusals are
 * shown as pages, the address at which they are.
 */
#pragma once

#include "egress/sandbox_egress.h"

struct sockaddr_in;

/* A datagram that arrived at the door `udp`, which is the caller's. */
void names_ask(struct sandbox_egress *o, int udp, struct bytes in, const struct sockaddr_in *who);
void names_cut(struct sandbox_egress *o); /* those who wait are told nothing */
