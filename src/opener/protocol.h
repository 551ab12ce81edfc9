/* protocol.h - what node asks of the opener, and what egress hands to an opened sandbox's worker.
 *
 * Both are fixed messages over SOCK_SEQPACKET unix sockets. This header is the only part of opener/
 * that others may include.
 */
#pragma once

#include <stdint.h>

enum {
	OPENER_VERSION = 2,
	OPENER_ID_MAX = 63,
	OPENER_NAME_MAX = 253,
	OPENER_FIRST_MAX = 96 * 1024, /* what the guest said before it was handed over */
	OPENER_HAND_FDS = 2,
	OPENER_SLOTS_MAX = 2048,
};

#define OPENER_RATE_MAX (1ull << 40) /* bytes in a second */

/* --- node to opener ----------------------------------------------------------------------- */

enum opener_verb {
	OPENER_START, /* slot, id, team, a descriptor: a file in memory, JSON: {"rules":{"host":
		       * [{"transform":{"headers":{}}}]}, "sealed":{"name":"<base64>"}} -> a
		       * descriptor: the worker's end, for EGRESS_RULE. A worker the slot had is
		       * ended, with all its connections */
	OPENER_STOP,  /* slot: one that has none is success */
	OPENER_RESET, /* every worker ends: node has just started */
	OPENER_FACTS, /* -> a descriptor: {"ca":"<PEM>", "sealKey":"<base64>"} */
	OPENER_VERBS,
};

struct opener_request {
	uint32_t version;
	uint32_t verb;
	uint64_t tag; /* not 0 */
	uint32_t slot;
	char id[OPENER_ID_MAX + 1];
	char team[OPENER_ID_MAX + 1];
};

struct opener_reply {
	uint64_t tag;  /* 0: unasked, the worker of `slot` ended by itself */
	uint32_t code; /* enum err_code */
	uint32_t slot;
	char msg[128];
};

/* --- egress to a worker ------------------------------------------------------------------- */

/* With two descriptors, the guest's connection and one to the server, and `first_len` bytes behind
 * it: what the guest has said already. */
struct opener_hand {
	uint32_t version;
	uint32_t tls; /* 0: plain HTTP */
	uint64_t tag;
	uint64_t bytes_per_s; /* of all connections of this worker together; 0: no limit */
	uint32_t port;
	uint32_t first_len;
	char name[OPENER_NAME_MAX + 1]; /* that was said and decided */
};

/* Back, when that connection is over, and before that now and then. */
struct opener_over {
	uint64_t tag;
	uint64_t bytes_out, bytes_in; /* since the last of these */
	uint32_t requests;
	uint32_t goes_on; /* not 0: it is not over yet, and this is all it says */
	char why[128];    /* empty: it ended as such things do */
};
