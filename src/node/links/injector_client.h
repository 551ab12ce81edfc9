/* injector_client.h - what the injector is asked: who has a worker for each sandbox with rules of
 * headers.
 */
#pragma once

#include "injector/protocol.h"
#include "net/link.h"

enum { INJECTOR_FACTS_MAX = 64 * 1024 };

struct injector_client {
	struct link link;
	const struct injector_client_ops *ops;
	struct link_call facts;
	char *seal_key; /* base64; NULL: not known yet */
};

struct injector_client_ops {
	void (*on_up)(struct injector_client *k); /* it has no worker yet */
	void (*on_gone)(struct injector_client *k,
			uint32_t slot); /* the worker of that slot ended */
	/* A certificate, PEM, borrowed; whenever it is told. NULL: nobody wants to know */
	void (*on_authority)(struct injector_client *k, struct bytes pem);
};

void injector_client_open(struct injector_client *k, struct loop *l, const char *path,
			  const struct injector_client_ops *ops);
void injector_client_close(struct injector_client *k);

struct injector_sandbox {
	uint32_t slot;
	const char *id, *team;
};

/* `rules`, a descriptor, is taken in any case. The reply's is the worker's end. */
int injector_start(struct injector_client *k, struct link_call *c,
		   const struct injector_sandbox *of, int rules, link_done_fn *on_done,
		   struct err *err) NODISCARD;
void injector_stop(struct injector_client *k, uint32_t slot); /* no answer is waited for */
