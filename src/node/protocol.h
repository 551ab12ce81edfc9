/* protocol.h - what a gateway may ask of node: messages over a SOCK_SEQPACKET unix socket.
 *
 * One request is one datagram: the fixed struct, then text_len bytes of JSON; of NODE_BUILD_START
 * the JSON may be in a file in memory instead (base/memory_file.h). It is answered by one
 * reply with the same tag, in any order, perhaps with descriptors. A reply with tag 0 is an event
 * that nobody asked for.
 *
 * This header, and what it includes, is the only part of node/ that others may include.
 */
#pragma once

#include <stdint.h>

#include "node/verbs.h"

enum {
	NODE_VERSION_MIN = 7, /* of this protocol, for the hello (base/link_hello.h) */
	NODE_VERSION_MAX = 7,
	NODE_ID_MAX = 63,       /* of a sandbox, a team, a template, an alias, a token */
	NODE_TOKEN_LENGTH = 32, /* of a request: 165 bits */
	NODE_REQUEST_MAX = 23,  /* the name of a request in logs */
	NODE_TEXT_MAX = 48 * 1024,
	NODE_FILE_TEXT_MAX = 1024 * 1024 + 64 * 1024, /* in a file in memory */
	NODE_MESSAGE_MAX = 160 * 1024,                /* a whole datagram */
	NODE_FDS_MAX = 4,
	NODE_FORK_MAX = 100,
	NODE_TIMEOUT_MAX_S = 30 * 24 * 3600, /* of any setting timeout_max_s */
};

/* Of all that run by one key_id, or of one team, or wait to; 0: no limit. Beyond: ERR_EXHAUSTED. */
struct node_limits {
	uint32_t sandboxes, vcpus, memory_mib, disk_mib;
	uint32_t paused; /* of all that are paused, by the key they ran by */
};

struct node_request {
	uint64_t tag; /* not 0 */
	uint32_t verb;
	char team[NODE_ID_MAX + 1];
	char id[NODE_ID_MAX + 1];
	char template_id[NODE_ID_MAX + 1];
	char template_tag[NODE_ID_MAX + 1]; /* of the template; may be empty */
	char key_id[NODE_ID_MAX + 1];       /* whose limits count; may be empty */
	/* NODE_CREATE: the same again, of the same team, is the same sandbox while it lives, for a
	 * day. ERR_EXISTS: it was used for another request */
	char idempotency[NODE_ID_MAX + 1];
	/* NODE_CREATE, NODE_FORK, NODE_SNAPSHOT: made by the gateway for this one request. It is
	 * done once, however often it is sent. NODE_GIVE_UP: of which request */
	char token[NODE_ID_MAX + 1];
	char request[NODE_REQUEST_MAX + 1]; /* by which logs know the client's request; may be "" */
	/* Until when somebody waits for the answer, in CLOCK_BOOTTIME, which gateway and node
	 * share: what lies in a queue or is sent again has the same end. 0: nobody said */
	uint64_t deadline_ns;
	/* of key_id, and of the team: CREATE, FORK, CONNECT, RESUME, PAUSE */
	struct node_limits limits, team_limits;
	uint64_t after_ns, until_ns;
	uint32_t timeout_s;
	uint32_t flags;
	uint32_t count;
	uint32_t text_len;
};

/* The text of a NODE_CREATE, kept as it is and returned by NODE_GET and NODE_LIST without envVars:
 *	{"metadata":{...}, "envVars":{...}, and whatever else the gateway wants to remember}
 * Of these node itself reads
 *	"allowInternetAccess", "network"   the rules for egress
 *	"guardedPorts":"9222/devtools,6080" of its template, set by node: wire/guarded_ports.h
 *	"refusalPages":true                of its template, set by node: refusals are shown as pages
 *	"sizes":{"vcpus":2,"memoryMib":768} with NODE_BOOT: other than those of what it is made of
 *	"services":["db"]                  those of the operator's that its key may reach
 *	"sealed":{"name":"<base64>"}       the secrets that network.rules names, for the injector */

struct node_sandbox {
	char id[NODE_ID_MAX + 1];
	char team[NODE_ID_MAX + 1];
	char template_id[NODE_ID_MAX + 1];
	char alias[NODE_ID_MAX + 1];         /* of the template; may be empty */
	char access_token[NODE_ID_MAX + 1];  /* of the agent; empty when not NODE_SECURE */
	char traffic_token[NODE_ID_MAX + 1]; /* of NODE_PRIVATE, or with guardedPorts; or empty */
	uint64_t started_ns, end_ns;         /* since 1970 */
	uint32_t vcpus, memory_mib, disk_mib;
	uint32_t state;      /* enum node_state */
	uint32_t generation; /* sockets of another one reach nobody */
	uint32_t flags;
	uint32_t reason;   /* enum node_reason, of one that ended */
	uint64_t ended_ns; /* or paused, by its state */
};

struct node_reply {
	uint64_t tag;
	uint32_t code; /* enum err_code, 0 is success */
	uint32_t event;
	char msg[256];
	struct node_sandbox sandbox;
	uint32_t count;    /* descriptors, or entries in what follows */
	uint32_t resumed;  /* 1: it was paused, and runs again */
	uint32_t retry_s;  /* ERR_EXHAUSTED: worth another try after so long; 0: unknown */
	uint32_t text_len; /* bytes after this struct */
};

/* NODE_LIST: what follows the reply is `count` of these, each followed by its own text. */
struct node_entry {
	struct node_sandbox sandbox;
	uint32_t text_len;
};

/* NODE_ENDED: what follows the reply is `count` of these. */
struct node_tombstone {
	char id[NODE_ID_MAX + 1];
	char team[NODE_ID_MAX + 1];
	char template_id[NODE_ID_MAX + 1];
	uint64_t started_ns, ended_ns;
	uint32_t reason; /* enum node_reason */
};

/* NODE_FORK: what follows the reply is `count` of these, one for each copy. */
struct node_forked {
	uint32_t code; /* enum err_code, 0: it runs */
	char msg[256];
	struct node_sandbox sandbox;
};
