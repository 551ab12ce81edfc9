/* agent_wake.h - give a machine that just began to run its time and its identity.
 *
 * The clock: ask for the guest's monotonic time m and note the host's real time before (t1) and
 * after (t2). The offset (t1 + t2) / 2 - m is wrong by (t2 - t1) / 2 at most, however long the
 * message that carries it takes. A slow answer is asked again; the best of the probes counts. On a
 * host that crawls there are more of them: what is promised is a clock that is right to 100 ms.
 */
#pragma once

#include "net/timer.h"
#include "vm/agent_link.h"
#include "vm/steps.h"

enum {
	AGENT_CLOCK_PROBES_MAX = 4,       /* as long as the best is no worse than FAIR */
	AGENT_CLOCK_TRIES_MAX = 24,       /* else so many, */
	AGENT_CLOCK_TRIES_MS = 5 * 1000,  /* for so long */
	AGENT_CLOCK_GOOD_MS = 40,         /* of uncertainty: enough, no further probe */
	AGENT_CLOCK_FAIR_MS = 90,         /* of uncertainty: within the promise */
	AGENT_CLOCK_BAD_MS = 2 * 1000,    /* of the best: the guest is not given such a time */
	AGENT_QUESTION_MS = 20 * 1000,    /* one question, on a machine that crawls */
	AGENT_CLOCK_FRESH_MS = 20 * 1000, /* held: probed again so often, for clocks drift */
};

struct agent_clock {
	int64_t offset_ns;       /* host's real time minus guest's monotonic time */
	uint64_t uncertainty_ns; /* of it, either way */
	unsigned int probes;
};

struct agent_wake;
typedef void agent_wake_held_fn(struct agent_wake *w);
typedef void agent_wake_done_fn(struct agent_wake *w, const struct agent_clock *ret,
				const struct err *err);
struct agent_wake { /* embedded by the caller; all zero: nothing under way */
	/* Once: the clock that was set, or NULL and why. The link is closed. */
	agent_wake_done_fn *on_done;
	agent_wake_held_fn *on_held; /* NULL: the identity was there from the start */
	struct agent_link link;
	const struct agent_identity *identity;
	struct steps *steps;
	struct agent_clock clock; /* the best so far, of those since: */
	uint64_t probed_ns;
	struct timer refresh;
	bool check_health, busy, was_held;
};

/* Takes the stream in any case. `id` and `steps` are borrowed until it is over. Steps: clock,
 * identity, and health when it is asked for after the identity was confirmed. */
struct agent_wake_spec {
	const struct agent_identity *id;
	bool check_health;
	struct steps *steps;
};
int agent_wake_start(struct agent_wake *w, struct stream *s, const struct agent_wake_spec *spec,
		     agent_wake_done_fn *on_done, struct err *err) NODISCARD;
void agent_wake_cancel(struct agent_wake *w); /* fine when nothing is under way */

/* Right after a start without an identity (NULL): the clock is probed, and probed again, until
 * agent_wake_tell() brings one. on_held comes when that would cost a single round trip;
 * agent_wake_tell() is allowed before it, too. */
void agent_wake_hold(struct agent_wake *w, struct loop *l, agent_wake_held_fn *on_held);
/* While held: tell one that says stay_frozen. The guest goes through all of it once, so that the
 * next time finds code and files warm. on_held comes again. `id` is borrowed until then.
 * Both may fail the wake, and then call on_done before they return. */
void agent_wake_rehearse(struct agent_wake *w, const struct agent_identity *id);
void agent_wake_tell(struct agent_wake *w, const struct agent_identity *id);

/* What one answer says about the clock. False when the answer makes no sense. */
bool agent_clock_read(const struct agent_answer *a, struct agent_clock *ret);
