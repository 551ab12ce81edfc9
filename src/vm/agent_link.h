/* agent_link.h - what the host asks of the guest's agent, one question at a time.
 *
 * The guest is hostile: every answer is bounded in size and time, and is a claim, not a fact.
 */
#pragma once

#include "http/call.h"
#include "vm/agent_identity.h"

enum {
	AGENT_ANSWER_MAX = 4 * 1024, /* of the control routes, in bytes */
	AGENT_WHY_MAX = 120,         /* of its own words in an error of ours */
};

struct agent_answer {
	int64_t monotonic_ns, realtime_ns;  /* clock, identity: what the guest says */
	uint64_t sent_wall_ns, got_wall_ns; /* by the host's clock: the truth lies between */
};

struct agent_link;
typedef void agent_done_fn(struct agent_link *l, const struct agent_answer *ret,
			   const struct err *err);
struct agent_link { /* embedded by the owner; all zero: closed */
	struct http_client *client;
	struct http_call call;
	uint64_t sent_wall_ns;
	const char *asking; /* a literal, for errors */
	bool wants_clock;
	char control_token[AGENT_TOKEN_MAX + 1]; /* sent with every question when not empty */
	/* Once per question, from the loop. ERR_UNAVAILABLE and ERR_TIMEOUT: the link is of no
	 * more use. ERR_INTERNAL: the agent said no. */
	agent_done_fn *on_done;
};

/* Takes the stream in any case. */
int agent_link_open(struct agent_link *l, struct stream *s, struct err *err) NODISCARD;
/* From now on every question bears this token, which the guest knows its host by. */
void agent_link_prove(struct agent_link *l, const char *control_token);
void agent_link_close(struct agent_link *l); /* no callback follows; a second time does nothing */

enum agent_question {
	AGENT_HEALTH,
	AGENT_CLOCK,
	/* The user's processes alone: given up soon; or tried for seconds; or, what takes longer,
	 * with the guest's disk written back after it, for when its memory will not be there to do
	 * so later. */
	AGENT_FREEZE,
	AGENT_FREEZE_SURELY,
	AGENT_FREEZE_DISK,
};

/* Failure (-1) means that on_done will not come. */
int agent_link_ask(struct agent_link *l, enum agent_question what, uint64_t ms,
		   agent_done_fn *on_done, struct err *err) NODISCARD;

/* After success the link goes on with the identity's control token; one that says `resume` is
 * asked with it already. */
int agent_link_identity(struct agent_link *l, const struct agent_identity *id,
			int64_t clock_offset_ns, uint64_t ms, agent_done_fn *on_done,
			struct err *err) NODISCARD;

/* "agent: freeze: status 504: ..." from an answer that is not `want`. Always returns -1. */
int agent_refusal(const char *asking, const struct http_call_result *ret, struct err *err);
