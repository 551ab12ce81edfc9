/* egress_client.h - what egress is asked: who holds the doors of the sandboxes' networks. */
#pragma once

#include "egress/protocol.h"
#include "net/link.h"

extern const struct link_words egress_words;
void egress_on_hello(struct link *l); /* for struct link_ops: it is to forget all */

struct egress_asked { /* with the descriptors of that verb, which are taken in any case */
	enum egress_verb verb;
	uint32_t slot;
	int fds[EGRESS_DOORS];
	size_t n_fds;
	uint64_t deadline_ms; /* 0: none */
};

/* Fails when egress is not up. */
int egress_ask(struct link *l, struct link_call *c, const struct egress_asked *what,
	       link_done_fn *on_done, struct err *err) NODISCARD;

/* No answer is waited for; nothing happens when it is not up. */
void egress_close_doors(struct link *l, uint32_t slot);
void egress_name(struct link *l, uint32_t slot, const char *id);
