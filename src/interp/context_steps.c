/* context_steps.c - see context.h for the steps. */
#include "interp/context_steps.h"

#include "base/list.h"
#include "base/log.h"
#include "interp/answer.h"
#include "interp/events.h"

static void forget_step(struct context *c)
{
	timer_stop(&c->grace);
	timer_stop(&c->nudge);
	json_decref(TAKE(c->reply));
	c->idle = false;
	c->asked[0] = '\0';
	c->interrupts = 0;
	kernel_pause(&c->kernel, false);
}

static void over(struct context *c)
{
	forget_step(c);
	json_decref(TAKE(c->env));
	c->step = STEP_NONE;
	context_advance(c);
}

static void end_with_error(struct context *c, const char *name, const char *value, const char *why)
{
	struct execution *x = TAKE(c->current);
	struct err err;

	if (!x)
		return;
	execution_begin(x);
	if (event_error(name, value, why, &x->out, &err) < 0)
		log_warn("%s", err.msg);
	execution_end(x);
}

static bool ask(struct context *c, struct bytes code, bool silent, enum context_step step)
{
	struct err err;

	forget_step(c);
	c->step = step;
	if (step != STEP_MAIN) /* what it calls may have been replaced by the user's code */
		timer_start(&c->nudge, CONTEXT_OURS_MS);
	if (kernel_execute(&c->kernel, code, silent, c->asked, &err) == 0)
		return true;
	log_warn("context %s: %s", c->id, err.msg);
	end_with_error(c, "ExecutionAborted", err.msg, "");
	return false;
}

bool context_step_warm(struct context *c)
{
	if (ask(c, bytes_str(language_warm(c->language)), true, STEP_WARM))
		return true;
	c->step = STEP_NONE;
	return false;
}

static void step_after(struct context *c)
{
	AUTO(buf_done) struct buf code = BUF_MAX(CONTEXT_CODE_MAX);
	struct err err;

	if (json_object_size(c->env) > 0 &&
	    language_reset_env(c->language, c->env, c->envs, &code, &err) == 0 && code.len > 0 &&
	    ask(c, buf_view(&code), true, STEP_AFTER))
		return;
	over(c);
}

static void step_main(struct context *c)
{
	if (!c->current)
		step_after(c);
	else if (!ask(c, json_bytes(c->current->code), false, STEP_MAIN))
		over(c);
}

static void step_before(struct context *c)
{
	AUTO(buf_done) struct buf code = BUF_MAX(CONTEXT_CODE_MAX);
	struct err err;
	int rc = 0;

	if (!c->own)
		rc = buf_add(&code, bytes_str(language_own(c->language)), &err) < 0
			     ? -1
			     : language_set_env(c->language, c->envs, &code, &err);
	if (rc == 0 && c->env)
		rc = language_set_env(c->language, c->env, &code, &err);
	if (rc < 0) {
		end_with_error(c, "ExecutionAborted", err.msg, "");
		over(c);
		return;
	}
	c->own = true;
	if (code.len == 0)
		step_main(c);
	else if (!ask(c, buf_view(&code), true, STEP_BEFORE))
		over(c);
}

static void on_envs(struct envs_ask *a, json_t *envs)
{
	struct context *c = CONTAINER_OF(a, struct context, ask);

	c->envs = envs;
	step_before(c);
}

/* What a client asked for that was left behind meanwhile is not begun: it was told of a failure,
 * and in each copy of this machine it would be done once more. */
static struct execution *next_waiting(struct context *c)
{
	struct execution *x;

	while ((x = queue_take(&c->waiting))) {
		c->n_waiting--;
		if (!execution_left_behind(x))
			break;
		execution_free(x);
	}
	return x;
}

void context_advance(struct context *c)
{
	struct execution *x;
	struct err err;

	if (!c->ready || c->step != STEP_NONE)
		return;
	x = next_waiting(c);
	if (!x)
		return;
	c->current = x;
	c->env = json_incref(x->env);
	execution_begin(x);
	c->step = STEP_ENVS;
	if (c->own || c->envs || !c->all->agent)
		step_before(c);
	else if (envs_ask_start(&c->ask, c->all->place.loop, c->all->agent, x->token, on_envs,
				&err) < 0)
		on_envs(&c->ask, NULL);
}

/* --- what the kernel says ------------------------------------------------------------------- */

static bool failed(const struct context *c)
{
	const json_t *status = json_object_get(c->reply, "status");

	return json_is_string(status) && strcmp(json_string_value(status), "ok") != 0;
}

static void main_over(struct context *c)
{
	struct execution *x = TAKE(c->current);
	struct err err;

	if (x && failed(c) && !x->errored && event_of_reply(c->reply, &x->out, &err) < 0)
		log_warn("%s", err.msg);
	if (x)
		execution_end(x);
	step_after(c);
}

static void step_over(struct context *c)
{
	enum context_step was = c->step;

	if (was != STEP_MAIN && failed(c))
		log_warn("context %s: code of ours failed", c->id);
	switch (was) {
	case STEP_WARM:
		forget_step(c);
		c->step = STEP_NONE;
		context_ready(c);
		return;
	case STEP_BEFORE:
		step_main(c);
		return;
	case STEP_MAIN:
		main_over(c);
		return;
	case STEP_AFTER:
		over(c);
		return;
	case STEP_NONE:
	case STEP_ENVS:
		return;
	}
}

static void publish(struct context *c, const struct kernel_message *m)
{
	struct execution *x = c->current;
	struct err err;
	bool error;

	if (!x || c->step != STEP_MAIN ||
	    (x->errored && (m->unreadable || strcmp(m->type, "error") == 0)))
		return;
	if (event_of_message(m, language_newline_apart(c->language), &x->out, &error, &err) < 0)
		log_warn("context %s: %s", c->id, err.msg);
	x->errored = x->errored || error;
	if (x->out.len > 0 && !execution_flush(x))
		kernel_pause(&c->kernel, true);
}

static bool is_idle(const struct kernel_message *m)
{
	const json_t *state = json_object_get(m->content, "execution_state");

	return strcmp(m->type, "status") == 0 && json_is_string(state) &&
	       strcmp(json_string_value(state), "idle") == 0;
}

static void wait_for_other(struct context *c)
{
	timer_start(&c->grace, c->idle ? CONTEXT_GRACE_MS : CONTEXT_IDLE_GRACE_MS);
}

/* An execution is over when its reply and its "idle" are here: they come by two ways. */
void context_hear(struct context *c, enum kernel_channel from, const struct kernel_message *m)
{
	if (!c->asked[0] || strcmp(m->parent, c->asked) != 0)
		return;
	if (from == KERNEL_SHELL) {
		if (strcmp(m->type, "execute_reply") != 0 || c->reply)
			return;
		c->reply = json_incref(m->content);
	} else if (c->idle) {
		return; /* it said that there is no more */
	} else if (is_idle(m)) {
		c->idle = true;
	} else {
		publish(c, m);
	}
	if (c->idle && c->reply)
		step_over(c);
	else if (c->idle || c->reply)
		wait_for_other(c);
}

static void on_grace(struct timer *t)
{
	struct context *c = CONTAINER_OF(t, struct context, grace);

	if (c->current && c->current->out.len > 0)
		wait_for_other(c); /* its client is slow, not the kernel */
	else
		step_over(c);
}

/* --- clients that go, kernels that go -------------------------------------------------------- */

static void on_nudge(struct timer *t)
{
	struct context *c = CONTAINER_OF(t, struct context, nudge);

	if (++c->interrupts <= CONTEXT_INTERRUPTS_MAX) {
		kernel_interrupt(&c->kernel);
		timer_start(&c->nudge, CONTEXT_INTERRUPT_MS);
		return;
	}
	log_warn("context %s does not let itself be interrupted: it gets a new kernel", c->id);
	context_stop(c, "ContextRestarting", CONTEXT_RESTARTED, "");
	context_start(c);
}

static void on_gone(struct execution *x)
{
	struct context *c = x->owner;

	if (c->current != x) {
		queue_remove(&c->waiting, x);
		c->n_waiting--;
	} else {
		c->current = NULL;
		kernel_pause(&c->kernel, false);
		if (c->step == STEP_MAIN && !execution_left_behind(x))
			timer_start(&c->nudge, CONTEXT_FIRST_MS);
	}
	execution_free(x);
}

static void on_flushed(struct execution *x)
{
	struct context *c = x->owner;

	kernel_pause(&c->kernel, false);
}

void context_steps_init(struct context *c)
{
	timer_init(&c->grace, c->all->place.loop, on_grace);
	timer_init(&c->nudge, c->all->place.loop, on_nudge);
}

void context_stop(struct context *c, const char *name, const char *value, const char *why)
{
	envs_ask_cancel(&c->ask);
	forget_step(c);
	c->ready = c->own = false;
	json_decref(TAKE(c->env));
	json_decref(TAKE(c->envs));
	c->step = STEP_NONE;
	end_with_error(c, name, value, why);
	kernel_close(&c->kernel);
}

void context_execute(struct context *c, struct http_request *rq, json_t *code, json_t *env)
{
	static const struct execution_ops ops = { on_flushed, on_gone };
	const struct execution_place p = { c->all->place.loop, &ops, c, c->all->partings,
					   &c->all->held };
	struct execution *x = execution_new(&p, rq, code, env);

	if (!x) {
		answer_text(rq, 500, "out of memory");
	} else if (c->n_waiting >= CONTEXT_WAITING_MAX || c->all->held > CONTEXTS_HELD_MAX) {
		execution_refuse(x, 429, "Too many executions wait");
	} else {
		queue_add(&c->waiting, x);
		c->n_waiting++;
		context_advance(c);
	}
}
