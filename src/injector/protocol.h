/* protocol.h - what node asks of the injector, and what egress hands to an opened sandbox's worker.
 *
 * Both are fixed messages over SOCK_SEQPACKET unix sockets. This header is the only part of
 * injector/ that others may include.
 */
#pragma once

#include <stdint.h>

enum {
	INJECTOR_VERSION_MIN = 4, /* of node to injector, for the hello (base/link_hello.h) */
	INJECTOR_VERSION_MAX = 4,
	INJECTOR_HAND_VERSION = 2,    /* of egress to a worker, which say no hello */
	INJECTOR_REFUSED_VERSION = 3, /* the same of a connection that is only told why not */
	INJECTOR_ID_MAX = 63,
	INJECTOR_NAME_MAX = 253,
	INJECTOR_FIRST_MAX = 96 * 1024, /* what the guest said before it was handed over */
	INJECTOR_HAND_FDS = 2,
	INJECTOR_SLOTS_MAX = 2048,
	INJECTOR_WHY_MAX = 319,
	INJECTOR_FIX_MAX = 255,
};

#define INJECTOR_RATE_MAX (1ull << 40) /* bytes in a second */

/* --- node to injector ----------------------------------------------------------------------- */

enum injector_verb {
	INJECTOR_START, /* slot, id, team, a descriptor: a file in memory, JSON: {"rules":{"host":
			 * [{"transform":{"headers":{}}}]}, "sealed":{"name":"<base64>"},
			 * "refusalPages":true}, the last if it is to show refusals as pages, too ->
			 * a descriptor: the worker's end, for EGRESS_RULE. A worker the slot had is
			 * ended, with all its connections */
	INJECTOR_STOP,  /* slot: one that has none is success */
	INJECTOR_RESET, /* every worker ends: node has just started */
	INJECTOR_FACTS, /* -> a descriptor: {"ca":"<PEM>", "sealKey":"<base64>"} */
	INJECTOR_VERBS,
};

struct injector_request {
	uint64_t tag; /* not 0 */
	uint32_t verb;
	uint32_t slot;
	char id[INJECTOR_ID_MAX + 1];
	char team[INJECTOR_ID_MAX + 1];
};

struct injector_reply {
	uint64_t tag;  /* 0: unasked, the worker of `slot` ended by itself */
	uint32_t code; /* enum err_code */
	uint32_t slot;
	char msg[128];
};

/* --- egress to a worker ------------------------------------------------------------------- */

/* With two descriptors, the guest's connection and one to the server, and `first_len` bytes behind
 * it: what the guest has said already. */
struct injector_hand {
	uint32_t version;
	uint32_t tls; /* 0: plain HTTP */
	uint64_t tag;
	uint64_t bytes_per_s; /* of all connections of this worker together; 0: no limit */
	uint32_t port;
	uint32_t first_len;
	char name[INJECTOR_NAME_MAX + 1]; /* that was said and decided */
};

/* Of one that is refused, with the guest's descriptor alone: between the two. */
struct injector_refusal {
	char why[INJECTOR_WHY_MAX + 1]; /* both end with a NUL */
	char fix[INJECTOR_FIX_MAX + 1]; /* empty: nobody can change it */
};

/* Back, when that connection is over, and before that now and then. */
struct injector_over {
	uint64_t tag;
	uint64_t bytes_out, bytes_in; /* since the last of these */
	uint32_t requests;
	uint32_t goes_on; /* not 0: it is not over yet, and this is all it says */
	char why[128];    /* empty: it ended as such things do */
};
