/* verbs.h - the words of protocol.h: what may be asked, with which flags, and why one ended. */
#pragma once

enum node_verb {
#define VERB(verb, needs, serve) verb,
#include "node/verbs.def"
	NODE_VERBS,
};

/* What a request of a verb must have, and what node promises of it. */
enum node_needs {
	NODE_NEEDS_TEAM = 1 << 0,
	NODE_NEEDS_ID = 1 << 1,
	NODE_NEEDS_TEMPLATE = 1 << 2,
	NODE_NEEDS_COUNT = 1 << 3, /* not 0; of descriptors, or of copies */
	NODE_NEEDS_TOKEN = 1 << 4,
	NODE_DONE_ONCE = 1 << 5, /* it makes something: request.token */
};

static inline unsigned int node_verb_needs(unsigned int verb)
{
	static const unsigned int all[] = {
#define VERB(verb, needs, serve) needs,
#include "node/verbs.def"
	};

	return verb < NODE_VERBS ? all[verb] : 0;
}

static inline const char *node_verb_name(unsigned int verb)
{
	static const char *const all[] = {
#define VERB(verb, needs, serve) #verb,
#include "node/verbs.def"
	};

	return verb < NODE_VERBS ? all[verb] : "?";
}

enum node_event {
	NODE_GONE = 1, /* sandbox.id, sandbox.generation: its traffic ends now */
};

enum node_flags {
	NODE_SECURE = 1u << 0,      /* the agent wants the access token */
	NODE_WRITE = 1u << 1,       /* NODE_SIGNED: to write a file, not to read it */
	NODE_AUTO_PAUSE = 1u << 2,  /* paused, not killed, when its time is over */
	NODE_AUTO_RESUME = 1u << 3, /* traffic resumes it */
	NODE_NO_MEMORY = 1u << 4,   /* the disk alone: of a pause, of an auto-pause, of a resume */
	NODE_NEWEST = 1u << 5,      /* NODE_LOGS: the newest first */
	NODE_TO_AGENT = 1u << 6,    /* NODE_SOCKETS: for the agent's port; text: the token sent */
	NODE_ALSO_PAUSED =
		1u << 7,         /* NODE_SNAPSHOT, NODE_FORK: what it was paused with, as it is */
	NODE_BOOT = 1u << 8,     /* NODE_CREATE: of a snapshot the disk alone */
	NODE_PRIVATE = 1u << 10, /* its ports, the agent's excepted, want its traffic_token.
				     NODE_SOCKETS: for such a port; text: the token sent */
	NODE_INGRESS = 1u << 11, /* its text says how its ports are spoken to */
	NODE_AGAIN = 1u << 13,   /* it was sent before, and the connection ended */
	NODE_BUILDER = 1u << 14, /* of a sandbox: node's own, for a build; no client knows of it */
	NODE_FOR_IMAGES = 1u << 15, /* NODE_SEAL_KEY: for what only the images daemon may read */
	NODE_USAGE = 1u << 16, /* NODE_LIST: the text of each is its newest metric, if it has one */
	NODE_STALLED = 1u << 9, /* of a sandbox: it wrote, the host's disk is full, and it stands
				    still until there is room */
	NODE_ABSENT = 1u << 12, /* of a sandbox: warden's list does not show its VM; it waits until
				    this is certain (absence.h) */
};

enum node_state { NODE_RUNNING, NODE_ENDING, NODE_PAUSED };

/* Why a sandbox is no more. */
enum node_reason {
#define REASON(reason, name) reason,
#include "node/reasons.def"
	NODE_REASONS,
};

/* NULL: it is alive, or this is no reason that is known here. */
static inline const char *node_reason_name(unsigned int reason)
{
	static const char *const all[] = {
#define REASON(reason, name) name,
#include "node/reasons.def"
	};

	return reason < NODE_REASONS ? all[reason] : NULL;
}
