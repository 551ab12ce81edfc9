/* claim.c - a machine that waits becomes somebody's sandbox.
 *
 *	identity told -> row: running -> answer
 *
 * In this order: a row that says "running" is adopted by the next node, so it must be true.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/node.h"
#include "node/start.h"
#include "node/step.h"

int sandbox_note(struct sandbox *s, struct journal_write *w, enum journal_state state,
		 void (*on_done)(struct journal_write *w, const struct err *err), struct err *err)
{
	struct journal_row row = {
		.sandbox = s->info, .state = state, .slot = s->slot, .text = s->text
	};

	memcpy(row.control_token, s->control_token, sizeof(row.control_token));
	return journal_put(s->node->journal, w, &row, false, on_done, err);
}

static void on_settled(struct journal_write *w, const struct err *failed)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, write);
	struct node *n = s->node;
	struct err err;

	if (failed || table_own(&n->table, s, &err) < 0) {
		s->create->tries = CREATE_TRIES_MAX; /* its text is the sandbox's already */
		creates_failed(s, failed ? failed : &err);
		sandbox_end(s, NODE_LOST, "could not be noted");
		return;
	}
	sandbox_enter(&n->table, s, SANDBOX_RUNNING);
	s->seen = n->look.number;
	sandbox_set_deadline(s);
	step("create.running");
	steps_add(&s->machine.steps, "running");
	log_info("%s runs: named in %" PRIu64 " us, noted in %" PRIu64 " us", s->info.id,
		 (steps_find(&s->machine.steps, "named") -
		  steps_find(&s->machine.steps, "claimed")) /
			 1000,
		 (steps_find(&s->machine.steps, "running") -
		  steps_find(&s->machine.steps, "named")) /
			 1000);
	creates_done(s);
	step("create.answer");
}

void sandbox_named(struct sandbox *s)
{
	const struct create *c = s->create;
	struct err err;

	step("create.identity");
	steps_add(&s->machine.steps, "named");
	agent_identity_done(&s->identity);
	s->text = TAKE(s->create->text);
	s->info.started_ns = clock_wall_ns();
	s->info.end_ns = s->info.started_ns + c->timeout_s * NSEC_PER_SEC;
	s->info.state = NODE_RUNNING;
	sandbox_enter(&s->node->table, s, SANDBOX_SETTLING);
	if (sandbox_note(s, &s->write, JOURNAL_RUNNING, on_settled, &err) < 0)
		on_settled(&s->write, &err);
}

void sandbox_claim(struct sandbox *s, struct create *c)
{
	s->create = c;
	memcpy(s->info.team, c->team, sizeof(s->info.team));
	s->info.flags = c->flags;
	if (!(c->flags & NODE_SECURE))
		explicit_bzero(s->identity.access_token, sizeof(s->identity.access_token));
	snprintf(s->info.access_token, sizeof(s->info.access_token), "%.*s", NODE_ID_MAX,
		 s->identity.access_token);
	s->identity.env = json_incref(c->env);
	if (s->identity.stay_frozen)
		agent_identity_refresh(&s->identity);
	s->identity.stay_frozen = false;
	sandbox_enter(&s->node->table, s, SANDBOX_NAMING);
	steps_add(&s->machine.steps, "claimed");
	restore_identity(&s->restore, &s->identity);
}
