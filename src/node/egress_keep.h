/* egress_keep.h - egress, as long as it takes: who holds the doors of the sandboxes' networks.
 *
 * Each connection begins with EGRESS_RESET; when that is answered on_up is told, and every door is
 * brought anew by the owner. Messages arrive in the order they were sent.
 */
#pragma once

#include "egress/protocol.h"
#include "net/timer.h"
#include "net/watch.h"

enum {
	EGRESS_RETRY_MS = 100,
	EGRESS_CALL_MS = 10 * 1000, /* no answer for so long: the connection is given up */
	EGRESS_QUEUE_MAX = 8192,    /* messages it has not taken or not answered yet */
};

struct egress_keep;
struct egress_keep_ops {
	void (*on_up)(struct egress_keep *k);
	void (*on_down)(struct egress_keep *k);
};

struct egress_message;
struct egress_call { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop. ERR_UNAVAILABLE: egress is gone, and with it every door. */
	void (*on_done)(struct egress_call *c, const struct err *err);
	struct egress_message *message; /* NULL: not under way */
	int *came; /* during on_done: the descriptor that came along, to be taken; or -1 */
};

struct egress_keep {
	const struct egress_keep_ops *ops;
	struct loop *loop;
	const char *path; /* "": there is none, and it counts as up */
	int sock;         /* -1: not connected */
	struct watch ready;
	struct timer retry, late;
	struct egress_call hello;
	bool up, told;
	uint64_t down_since_ms, next_tag;
	struct egress_message *first, **last, *unsent; /* `unsent`: the first that is not sent */
	size_t n_messages;
};

void egress_keep_open(struct egress_keep *k, struct loop *l, const char *path,
		      const struct egress_keep_ops *ops);
void egress_keep_close(struct egress_keep *k);
bool egress_exists(const struct egress_keep *k); /* false: none was configured */

struct egress_asked { /* with the descriptors of that verb, which are taken in any case */
	enum egress_verb verb;
	uint32_t slot;
	int fds[EGRESS_DOORS];
	size_t n_fds;
};

/* Fails when egress is not up. */
int egress_ask(struct egress_keep *k, struct egress_call *c, const struct egress_asked *what,
	       void (*on_done)(struct egress_call *c, const struct err *err),
	       struct err *err) NODISCARD;
void egress_call_cancel(struct egress_call *c);

/* No answer is waited for; nothing happens when it is not up. */
void egress_close_doors(struct egress_keep *k, uint32_t slot);
void egress_name(struct egress_keep *k, uint32_t slot, const char *id);
