/* network_telling.h - rules on their way: to the injector, if they are of headers, then to egress.
 */
#pragma once

#include <stdbool.h>

#include "net/link.h"
#include "node/protocol.h"

struct sandbox;
struct node;

struct network_telling;
typedef void network_telling_done_fn(struct network_telling *t, const struct err *err);
struct network_telling { /* embedded by the caller; all zero: nothing under way */
	struct node *node;
	char id[NODE_ID_MAX +
		1]; /* it may end before the injector answers, and its slot be another's */
	uint32_t slot;
	uint64_t changes; /* of its network, when these were its rules */
	int rules;        /* for egress, while the injector is asked */
	struct link_call open, rule;
	/* Once, from the loop. ERR_INVALID: they make no sense to one of the two. */
	network_telling_done_fn *on_done;
};

/* Of the text of a create that it has, or would have then. Failure (-1): nothing follows. Without
 * the injector its hosts are closed, and that is no failure. Where its text is changed while the
 * injector is asked, it is begun again with what it is then: rules of before never follow on those
 * of now. */
int network_telling_begin(struct network_telling *t, struct sandbox *s, const char *text,
			  network_telling_done_fn *on_done, struct err *err) NODISCARD;
bool network_telling_busy(const struct network_telling *t);
void network_telling_cancel(struct network_telling *t);
