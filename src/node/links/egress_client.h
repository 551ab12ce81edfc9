/* egress_client.h - what egress is asked: who holds the doors of the sandboxes' networks. */
#pragma once

#include "egress/protocol.h"
#include "node/links/daemon_client.h"

void egress_client_open(struct daemon_client *k, struct loop *l, const char *path,
			const struct daemon_client_ops *ops);

struct egress_asked { /* with the descriptors of that verb, which are taken in any case */
	enum egress_verb verb;
	uint32_t slot;
	int fds[DAEMON_FDS_MAX];
	size_t n_fds;
};

/* Fails when egress is not up. */
int egress_ask(struct daemon_client *k, struct daemon_call *c, const struct egress_asked *what,
	       void (*on_done)(struct daemon_call *c, const struct err *err),
	       struct err *err) NODISCARD;

/* No answer is waited for; nothing happens when it is not up. */
void egress_close_doors(struct daemon_client *k, uint32_t slot);
void egress_name(struct daemon_client *k, uint32_t slot, const char *id);
