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
	NODE_VERSION = 1,
	NODE_ID_MAX = 63, /* of a sandbox, a team, a template, an alias, a token */
	NODE_TEXT_MAX = 48 * 1024,
	NODE_MESSAGE_MAX = 160 * 1024, /* a whole datagram */
	NODE_FDS_MAX = 4,
	NODE_TIMEOUT_MAX_S = 24 * 3600,
};

enum node_verb {
	NODE_CREATE,    /* team, template_id (or alias), timeout_s, flags, text -> sandbox */
	NODE_GET,       /* team, id -> sandbox, text */
	NODE_KILL,      /* team, id; answered when it is gone */
	NODE_TIMEOUT,   /* team, id, timeout_s from now; longer or shorter -> sandbox */
	NODE_CONNECT,   /* team, id, timeout_s from now; never shortens -> sandbox, text */
	NODE_LIST,      /* team, after_ns and id: what started later (order: started_ns, id) ->
			 * count entries, as struct node_entry below, as many as fit */
	NODE_SOCKETS,   /* id, count -> sandbox, that many unconnected TCP sockets in its network */
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
	NODE_SECURE = 1u << 0, /* the agent wants the access token */
	NODE_WRITE = 1u << 1,  /* NODE_SIGNED: to write a file, not to read it */
};

enum node_state { NODE_RUNNING, NODE_ENDING };

struct node_request {
	uint32_t version;
	uint32_t verb;
	uint64_t tag; /* not 0 */
	char team[NODE_ID_MAX + 1];
	char id[NODE_ID_MAX + 1];
	char template_id[NODE_ID_MAX + 1];
	uint64_t after_ns;
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
};

struct node_reply {
	uint64_t tag;
	uint32_t code; /* enum err_code, 0 is success */
	uint32_t event;
	char msg[256];
	struct node_sandbox sandbox;
	uint32_t count;    /* descriptors, or entries in what follows */
	uint32_t text_len; /* bytes after this struct */
};

/* NODE_LIST: what follows the reply is `count` of these, each followed by its own text. */
struct node_entry {
	struct node_sandbox sandbox;
	uint32_t text_len;
};
