/* agent_wake.c - probe, probe again if need be, tell, and see that it answers. */
#include "vm/agent_wake.h"

#include <assert.h>

#include "base/clock.h"

bool agent_clock_read(const struct agent_answer *a, struct agent_clock *ret)
{
	uint64_t half;
	int64_t offset;

	if (a->got_wall_ns < a->sent_wall_ns) /* the host's clock was set back meanwhile */
		return false;
	half = (a->got_wall_ns - a->sent_wall_ns) / 2;
	if (__builtin_sub_overflow((int64_t)(a->sent_wall_ns + half), a->monotonic_ns, &offset))
		return false;
	*ret = (struct agent_clock){ offset, half, 1 };
	return true;
}

void agent_wake_cancel(struct agent_wake *w)
{
	w->on_done = NULL;
	timer_stop(&w->refresh);
	agent_link_close(&w->link);
}

static void finish(struct agent_wake *w, const struct err *err)
{
	__auto_type on_done = w->on_done;

	agent_wake_cancel(w);
	on_done(w, err ? NULL : &w->clock, err);
}

static void on_health(struct agent_link *l, const struct agent_answer *a, const struct err *err)
{
	struct agent_wake *w = CONTAINER_OF(l, struct agent_wake, link);

	(void)a;
	if (!err)
		steps_add(w->steps, "health");
	finish(w, err);
}

static void on_identity(struct agent_link *l, const struct agent_answer *a, const struct err *err)
{
	struct agent_wake *w = CONTAINER_OF(l, struct agent_wake, link);
	struct err mine;

	(void)a;
	if (err) {
		finish(w, err);
		return;
	}
	steps_add(w->steps, "identity");
	if (!w->check_health)
		finish(w, NULL);
	else if (agent_link_ask(l, AGENT_HEALTH, AGENT_QUESTION_MS, on_health, &mine) < 0)
		finish(w, &mine);
}

static void hold(struct agent_wake *w)
{
	timer_start(&w->refresh, AGENT_CLOCK_FRESH_MS);
	if (w->was_held)
		return;
	w->was_held = true;
	w->on_held(w);
}

static void tell(struct agent_wake *w)
{
	struct err err;

	w->busy = false;
	if (steps_find(w->steps, "clock") == 0)
		steps_add(w->steps, "clock");
	if (w->clock.uncertainty_ns > AGENT_CLOCK_BAD_MS * NSEC_PER_MSEC) {
		err_set(&err, ERR_TIMEOUT, 0, "agent: no clock probe within %d ms",
			2 * AGENT_CLOCK_BAD_MS);
		finish(w, &err);
		return;
	}
	if (!w->identity) {
		hold(w);
		return;
	}
	if (agent_link_identity(&w->link, w->identity, w->clock.offset_ns, AGENT_QUESTION_MS,
				on_identity, &err) < 0)
		finish(w, &err);
}

static bool is_enough(const struct agent_wake *w)
{
	uint64_t unsure = w->clock.uncertainty_ns;

	if (unsure <= AGENT_CLOCK_GOOD_MS * NSEC_PER_MSEC)
		return true;
	if (w->clock.probes < AGENT_CLOCK_PROBES_MAX)
		return false;
	return unsure <= AGENT_CLOCK_FAIR_MS * NSEC_PER_MSEC ||
	       w->clock.probes >= AGENT_CLOCK_TRIES_MAX ||
	       clock_mono_ns() - w->probed_ns >= AGENT_CLOCK_TRIES_MS * NSEC_PER_MSEC;
}

static void on_clock(struct agent_link *l, const struct agent_answer *a, const struct err *err)
{
	struct agent_wake *w = CONTAINER_OF(l, struct agent_wake, link);
	unsigned int probes = w->clock.probes + 1;
	struct agent_clock found;
	struct err mine;

	if (err) {
		finish(w, err);
		return;
	}
	if (agent_clock_read(a, &found) && found.uncertainty_ns < w->clock.uncertainty_ns)
		w->clock = found;
	w->clock.probes = probes;
	if (is_enough(w))
		tell(w);
	else if (agent_link_ask(l, AGENT_CLOCK, AGENT_QUESTION_MS, on_clock, &mine) < 0)
		finish(w, &mine);
}

static void on_rehearsed(struct agent_link *l, const struct agent_answer *a, const struct err *err)
{
	struct agent_wake *w = CONTAINER_OF(l, struct agent_wake, link);

	(void)a;
	if (err) {
		finish(w, err);
		return;
	}
	steps_add(w->steps, "rehearsed");
	w->was_held = false; /* told once more */
	tell(w);
}

void agent_wake_rehearse(struct agent_wake *w, const struct agent_identity *id)
{
	struct err err;

	assert(w->on_done && !w->identity && !w->busy && id->stay_frozen);
	timer_stop(&w->refresh);
	w->busy = true;
	if (agent_link_identity(&w->link, id, w->clock.offset_ns, AGENT_QUESTION_MS, on_rehearsed,
				&err) < 0)
		finish(w, &err);
}

static void probe_again(struct timer *t)
{
	struct agent_wake *w = CONTAINER_OF(t, struct agent_wake, refresh);
	struct err err;

	w->clock = (struct agent_clock){ .uncertainty_ns = UINT64_MAX };
	w->probed_ns = clock_mono_ns();
	w->busy = true;
	if (agent_link_ask(&w->link, AGENT_CLOCK, AGENT_QUESTION_MS, on_clock, &err) < 0)
		finish(w, &err);
}

void agent_wake_hold(struct agent_wake *w, struct loop *l, agent_wake_held_fn *on_held)
{
	assert(!w->identity);
	w->on_held = on_held;
	timer_init(&w->refresh, l, probe_again);
}

void agent_wake_tell(struct agent_wake *w, const struct agent_identity *id)
{
	assert(w->on_done && !w->identity);
	w->identity = id;
	timer_stop(&w->refresh);
	if (!w->busy)
		tell(w);
}

int agent_wake_start(struct agent_wake *w, struct stream *s, const struct agent_wake_spec *spec,
		     agent_wake_done_fn *on_done, struct err *err)
{
	*w = (struct agent_wake){ .on_done = on_done,
				  .identity = spec->id,
				  .steps = spec->steps,
				  .clock = { .uncertainty_ns = UINT64_MAX },
				  .probed_ns = clock_mono_ns(),
				  .check_health = spec->check_health,
				  .busy = true };
	if (agent_link_open(&w->link, s, err) < 0)
		return -1;
	if (agent_link_ask(&w->link, AGENT_CLOCK, AGENT_QUESTION_MS, on_clock, err) < 0) {
		agent_link_close(&w->link);
		return -1;
	}
	return 0;
}
