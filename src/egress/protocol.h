/* protocol.h - what node tells egress: fixed messages over a SOCK_SEQPACKET unix socket.
 *
 * This header is the only part of egress/ that others may include.
 */
#pragma once

#include <stdint.h>

enum {
	EGRESS_VERSION_MIN = 4, /* of this protocol, for the hello (base/link_hello.h) */
	EGRESS_VERSION_MAX = 4,
	EGRESS_ID_MAX = 63,
	EGRESS_DOORS = 2,
	EGRESS_SLOTS_MAX = 2048,
};

enum egress_verb {
	EGRESS_OPEN,  /* slot, two descriptors: its TCP listener and its UDP socket for names.
		       * Doors it already holds for that slot are closed first. */
	EGRESS_CLOSE, /* slot: let go of its doors; one it does not have is success */
	EGRESS_NAME,  /* slot, id: the sandbox that now uses it, for counting and the log */
	EGRESS_COUNT, /* slot -> counts since EGRESS_NAME */
	EGRESS_RULE,  /* slot, a descriptor: a file in memory with its rules, JSON (policy.h).
		       * They hold from the answer on, for connections that are open, too. A
		       * second descriptor, if any: the way to its injector (injector/protocol.h) */
	EGRESS_LOG,   /* slot -> a descriptor: its last decisions, a JSON array, the oldest first */
	EGRESS_KNOWN, /* slot -> a descriptor: which names it was given which addresses for, JSON:
		       * what "known" of other rules may be, so that it is the same after a pause */
	EGRESS_EXPLAIN, /* a descriptor: {"rules":{}, "question":"example.com:443" or absent} -> a
			 * descriptor: what is allowed, and why, JSON */
	EGRESS_RESET,   /* let go of everything: node has just started and sends all anew */
	EGRESS_TOTALS,  /* -> counts of all sandboxes since egress started */
	EGRESS_VERBS,
};

struct egress_request {
	uint64_t tag;
	uint32_t verb;
	uint32_t slot;
	char id[EGRESS_ID_MAX + 1];
};

struct egress_counts {
	uint64_t tcp_refused; /* connections the guest tried, and requests on allowed ones */
	uint64_t names_refused;
	uint64_t tcp_allowed, tcp_failed; /* failed: allowed, and nobody was there */
	uint64_t names_allowed;
	uint64_t bytes_out, bytes_in; /* of connections, open ones too */
};

struct egress_reply {
	uint64_t tag;
	uint32_t code; /* enum err_code */
	char msg[128];
	struct egress_counts counts;
};
