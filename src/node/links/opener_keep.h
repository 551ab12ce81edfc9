/* opener_keep.h - what the opener is asked: who has a worker for each sandbox with rules of
 * headers.
 */
#pragma once

#include "node/links/daemon_keep.h"
#include "opener/protocol.h"

enum { OPENER_FACTS_MAX = 64 * 1024 };

struct opener_keep {
	struct daemon_keep link;
	const struct opener_keep_ops *ops;
	struct daemon_call facts;
	char *seal_key; /* base64; NULL: not known yet */
};

struct opener_keep_ops {
	void (*on_up)(struct opener_keep *k);                  /* it has no worker yet */
	void (*on_gone)(struct opener_keep *k, uint32_t slot); /* the worker of that slot ended */
	/* A certificate, PEM, borrowed; whenever it is told. NULL: nobody wants to know */
	void (*on_authority)(struct opener_keep *k, struct bytes pem);
};

void opener_keep_open(struct opener_keep *k, struct loop *l, const char *path,
		      const struct opener_keep_ops *ops);
void opener_keep_close(struct opener_keep *k);

struct opener_sandbox {
	uint32_t slot;
	const char *id, *team;
};

/* `rules`, a descriptor, is taken in any case. c->came is the worker's end. */
int opener_start(struct opener_keep *k, struct daemon_call *c, const struct opener_sandbox *of,
		 int rules, void (*on_done)(struct daemon_call *c, const struct err *err),
		 struct err *err) NODISCARD;
void opener_stop(struct opener_keep *k, uint32_t slot); /* no answer is waited for */
