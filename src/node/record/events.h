/* events.h - what happened in a sandbox's life, for its owner: the answer to NODE_LOGS.
 *
 * A ring in node's memory: it survives a pause, not a restart of node, and ends with the sandbox.
 */
#pragma once

#include "base/bytes.h"
#include "node/door/gateway_door.h"

struct sandbox;

enum {
	EVENTS_MAX = 64,        /* of one sandbox; the oldest go */
	EVENT_MESSAGE_MAX = 96, /* longer is cut */
	EVENTS_TEXT_MAX = 32 * 1024,
};

enum event_level { EVENT_INFO, EVENT_WARN, EVENT_ERROR };

struct event {
	uint64_t ns;      /* since 1970; later than the one before */
	const char *name; /* a literal: "created", "paused", "resumed", "timeout", "ended" ... */
	enum event_level level;
	char message[EVENT_MESSAGE_MAX];
};

struct events {           /* all zero: none */
	struct event *at; /* owned; room for EVENTS_MAX */
	unsigned int first, n;
};

/* Without memory for it it is lost. */
void events_add(struct events *e, enum event_level level, const char *name, const char *fmt, ...)
	PRINTF(4, 5);
void events_done(struct events *e);

/* NODE_LOGS: those after after_ns and before until_ns (0: all), the newest first with NODE_NEWEST,
 * at most `count` (0: all), as [{"timestamp","level","message","fields":{"event"}}]. */
verb_fn events_ask;
int events_put(const struct events *e, const struct node_request *rq, struct buf *out,
	       struct err *err) NODISCARD;
