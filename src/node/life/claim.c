/* claim.c - a machine that waits becomes somebody's sandbox.
 *
 *	identity told, rules told -> row: running -> answer
 *
 * In this order: a row that says "running" is adopted by the next node, so it must be true.
 */
#include "node/life/claim.h"

#include <inttypes.h>

#include "base/log.h"
#include "base/random.h"
#include "node/life/built_in.h"
#include "node/life/create_text.h"
#include "node/life/end.h"
#include "node/life/sandbox_row.h"
#include "node/network/network_secrets.h"
#include "node/node.h"
#include "node/life/step.h"

static bool is_builder(const struct sandbox *s)
{
	return s->info.flags & NODE_BUILDER;
}

static void not_settled(struct sandbox *s, const struct err *why, const char *said)
{
	s->create->tries = CREATE_TRIES_MAX; /* its text is the sandbox's already */
	creates_failed(s, why);
	sandbox_end(s, NODE_LOST, said);
}

static void on_settled(struct journal_write *w, const struct err *failed)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, write);
	struct node *n = s->node;
	char times[STEPS_TEXT_SIZE];
	struct err err;

	if (failed || (!is_builder(s) && table_own(&n->table, s, &err) < 0)) {
		not_settled(s, failed ? failed : &err, "could not be noted");
		return;
	}
	sandbox_enter(&n->table, s, SANDBOX_RUNNING);
	s->seen = n->reconcile.number;
	sandbox_set_deadline(s);
	events_add(&s->record.events, EVENT_INFO, "created", "Sandbox created");
	secrets_note_missing(s);
	step("create.running");
	steps_add(&s->machine.steps, "running");
	steps_text(&s->machine.steps, times);
	log_info("%s runs; in ms:%s; request=%s", s->info.id, times,
		 s->request[0] ? s->request : "-");
	s->request[0] = '\0'; /* what becomes of it later is of other requests */
	creates_done(s);
	step("create.answer");
}

/* NULL: no environment, or no memory to keep it; a later boot from the disk then lacks it. */
static char *env_text(const json_t *env)
{
	struct buf out = BUF_MAX(NODE_TEXT_MAX);
	struct err err;

	if (json_object_size(env) == 0)
		return NULL;
	if (json_encode(env, &out, &err) < 0 ||
	    buf_add(&out, (struct bytes){ (const uint8_t *)"", 1 }, &err) < 0) {
		log_error("keep an environment: %s", err.msg);
		buf_done(&out);
		return NULL;
	}
	return (char *)out.ptr;
}

/* Nobody is told of it before its network is as was asked for. */
static void on_ruled(struct sandbox *s, const struct err *refused)
{
	struct err err;

	if (refused) {
		not_settled(s, refused, "its network was refused");
		return;
	}
	sandbox_enter(&s->node->table, s, SANDBOX_SETTLING);
	if (is_builder(s)) /* its row stays as it is: the next node ends it */
		on_settled(&s->write, NULL);
	else if (sandbox_note(s, &s->write, JOURNAL_RUNNING, on_settled, &err) < 0)
		on_settled(&s->write, &err);
}

void sandbox_named(struct sandbox *s)
{
	const struct create *c = s->create;
	struct lease_now now = lease_clock();

	step("create.identity");
	steps_add(&s->machine.steps, "named");
	agent_identity_done(&s->identity);
	s->text = TAKE(s->create->text);
	s->env = env_text(s->create->env);
	s->info.state = NODE_RUNNING;
	if (!is_builder(s)) { /* which no client knows of, and which has no end of its own */
		lease_begin(&s->lease, now, c->timeout_s);
		s->info.started_ns = now.wall_ns;
		s->info.end_ns = lease_end_wall(&s->lease, now);
	}
	network_wait(s, on_ruled);
}

/* What it was built with is told anew: the agent of a guest that boots knows nothing of it. */
static int give_env(struct sandbox *s, const struct create *c, struct err *err)
{
	s->identity.env = json_incref(c->env);
	return built_in_tell(s->snapshot, &s->identity, err);
}

/* Who may come to its ports, and how it sees its network: what its owner said, and what its
 * template did. */
static int give_wishes(struct sandbox *s, struct create *c, struct err *err)
{
	struct built_in_wishes w;

	if (built_in_allows(s->snapshot, c->flags, err) < 0 ||
	    built_in_wishes(s->snapshot, &w, err) < 0)
		return -1;
	if (w.guarded[0] && create_text_guard(&c->text, w.guarded, NODE_TEXT_MAX, err) < 0)
		return -1;
	if (w.refusal_pages && create_text_show_pages(&c->text, NODE_TEXT_MAX, err) < 0)
		return -1;
	if (w.guarded[0])
		s->info.flags |= NODE_INGRESS;
	if (w.guarded[0] || (c->flags & NODE_PRIVATE))
		random_name(s->info.traffic_token, AGENT_TOKEN_LENGTH);
	return 0;
}

void sandbox_claim(struct sandbox *s, struct create *c)
{
	struct err err;

	pools_claim(s);
	s->create = c;
	memcpy(s->info.team, c->team, sizeof(s->info.team));
	memcpy(s->key_id, c->key_id, sizeof(s->key_id));
	memcpy(s->token, c->token, sizeof(s->token));
	memcpy(s->request, c->request, sizeof(s->request));
	s->info.flags = c->flags & ~(uint32_t)NODE_BOOT;
	if (!(c->flags & NODE_SECURE))
		explicit_bzero(s->identity.access_token, sizeof(s->identity.access_token));
	snprintf(s->info.access_token, sizeof(s->info.access_token), "%.*s", NODE_ID_MAX,
		 s->identity.access_token);
	if (give_env(s, c, &err) < 0 || give_wishes(s, c, &err) < 0) {
		not_settled(s, &err, "its environment is none");
		return;
	}
	if (s->identity.stay_frozen)
		agent_identity_refresh(&s->identity);
	s->identity.stay_frozen = false;
	sandbox_enter(&s->node->table, s, SANDBOX_NAMING);
	steps_add(&s->machine.steps, "claimed");
	network_tell(s); /* beside it: egress is quicker than a guest */
	restore_identity(&s->restore, &s->identity);
}
