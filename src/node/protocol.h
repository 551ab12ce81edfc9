/* protocol.h - what a gateway may ask of node: messages over a SOCK_SEQPACKET unix socket.
 *
 * One request is one datagram: the fixed struct, then text_len bytes of JSON. It is answered by one
 * reply with the same tag, in any order, perhaps with descriptors. A reply with tag 0 is an event
 * that nobody asked for.
 *
 * This header is the only part of node/ that others may include.
 */
#pragma once

#include <stdint.h>

enum {
	NODE_VERSION = 2,
	NODE_ID_MAX = 63, /* of a sandbox, a team, a template, an alias, a token */
	NODE_TEXT_MAX = 48 * 1024,
	NODE_MESSAGE_MAX = 160 * 1024, /* a whole datagram */
	NODE_FDS_MAX = 4,
	NODE_TIMEOUT_MAX_S = 30 * 24 * 3600, /* of any setting timeout_max_s */
};

enum node_verb {
	NODE_CREATE,  /* team, template_id (or alias), timeout_s, flags, text -> sandbox */
	NODE_GET,     /* team, id -> sandbox, text; ended: ERR_NOT_FOUND, tombstone in reply */
	NODE_KILL,    /* team, id; answered when it is gone; a paused one, too */
	NODE_TIMEOUT, /* team, id, timeout_s from now; longer or shorter, capped -> sandbox */
	NODE_CONNECT, /* team, id, timeout_s from now, flags; never shortens; one that is paused is
		       * resumed (reply.resumed) -> sandbox, text */
	NODE_PAUSE,   /* team, id, flags; answered when it is durable -> sandbox. ERR_EXISTS: it
		       * is paused already */
	NODE_RESUME,  /* as NODE_CONNECT, but ERR_EXISTS when it runs already */
	NODE_ENDED,   /* team, after_ns and id -> count tombstones, as struct node_tombstone, those
		       * that ended later; "" as team: an operator's, of all */
	NODE_METRICS, /* team, id, after_ns, until_ns -> text: a JSON array of points */
	NODE_LOGS,    /* team, id, after_ns, until_ns, count, flags -> text: a JSON array */
	NODE_LIST,    /* team, after_ns and id: what started later (order: started_ns, id) ->
		       * count entries, as struct node_entry below, as many as fit */
	NODE_SOCKETS, /* id, count, flags -> sandbox, that many unconnected TCP sockets in its
		       * network. NODE_AUTO_RESUME: a request waits for them, so one that is paused
		       * and may be resumed by traffic is. NODE_TO_AGENT besides: of a secure
		       * one only when text is its access token, else ERR_DENIED. A paused one is
		       * not resumed without: ERR_NOT_FOUND */
	NODE_TEMPLATES, /* -> text: a JSON array of objects, see node/README.md */
	NODE_STATUS,    /* -> text: a JSON object: counts and limits of this host */
	NODE_SIGNED,    /* flags, text: the query of a signed URL (no JSON) -> the sandbox whose
			 * token signed it. When it ends is not looked at: the agent does */
	NODE_VERBS,
};

enum node_event {
	NODE_NO_EVENT,
	NODE_GONE, /* sandbox.id, sandbox.generation: its traffic ends now */
};

enum node_flags {
	NODE_SECURE = 1u << 0,      /* the agent wants the access token */
	NODE_WRITE = 1u << 1,       /* NODE_SIGNED: to write a file, not to read it */
	NODE_AUTO_PAUSE = 1u << 2,  /* paused, not killed, when its time is over */
	NODE_AUTO_RESUME = 1u << 3, /* traffic resumes it */
	NODE_NO_MEMORY = 1u << 4,   /* the disk alone: of a pause, of an auto-pause, of a resume */
	NODE_NEWEST = 1u << 5,      /* NODE_LOGS: the newest first */
	NODE_TO_AGENT = 1u << 6,    /* NODE_SOCKETS: for the agent's port; text: the token sent */
};

enum node_state { NODE_RUNNING, NODE_ENDING, NODE_PAUSED };

/* Why a sandbox is no more. The order is written to disk: only ever add at the end. */
enum node_reason {
	NODE_ALIVE,
	NODE_KILLED,
	NODE_LIFETIME,
	NODE_IDLE,
	NODE_OOM_GUEST,
	NODE_OOM_HOST,
	NODE_DISK_FULL,
	NODE_GUEST_PANIC,
	NODE_VMM_CRASH,
	NODE_LOST,
	NODE_EVICTED,
	NODE_REASONS,
};

/* Of all that run by one key_id, or wait to; 0: no limit. Beyond: ERR_EXHAUSTED. */
struct node_limits {
	uint32_t sandboxes, vcpus, memory_mib, disk_mib;
};

struct node_request {
	uint32_t version;
	uint32_t verb;
	uint64_t tag; /* not 0 */
	char team[NODE_ID_MAX + 1];
	char id[NODE_ID_MAX + 1];
	char template_id[NODE_ID_MAX + 1];
	char key_id[NODE_ID_MAX + 1]; /* whose limits count; may be empty */
	/* NODE_CREATE: the same again, of the same team, is the same sandbox while it lives, for a
	 * day. ERR_EXISTS: it was used for another request */
	char idempotency[NODE_ID_MAX + 1];
	struct node_limits limits; /* NODE_CREATE, NODE_CONNECT and NODE_RESUME: of key_id */
	uint64_t after_ns, until_ns;
	uint32_t timeout_s;
	uint32_t flags;
	uint32_t count;
	uint32_t text_len;
};

/* The text of a NODE_CREATE, kept as it is and returned by NODE_GET and NODE_LIST without envVars:
 *	{"metadata":{...}, "envVars":{...}, and whatever else the gateway wants to remember} */

struct node_sandbox {
	char id[NODE_ID_MAX + 1];
	char team[NODE_ID_MAX + 1];
	char template_id[NODE_ID_MAX + 1];
	char alias[NODE_ID_MAX + 1];        /* of the template; may be empty */
	char access_token[NODE_ID_MAX + 1]; /* of the agent; empty when not NODE_SECURE */
	uint64_t started_ns, end_ns;        /* since 1970 */
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
