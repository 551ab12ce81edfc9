/* claim.c - a machine that waits becomes somebody's sandbox.
 *
 *	identity told, rules told -> row: running -> answer
 *
 * In this order: a row that says "running" is adopted by the next node, so it must be true.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "base/random.h"
#include "node/files/host_text.h"
#include "node/node.h"
#include "node/journal/row_file.h"
#include "node/life/start.h"
#include "node/life/step.h"

/* ret->text is the caller's to free, ret->known is the sandbox's. */
static int make_row(const struct sandbox *s, enum journal_state state, struct journal_row *ret,
		    struct err *err)
{
	*ret = (struct journal_row){ .sandbox = s->info,
				     .state = state,
				     .slot = s->slot,
				     .pages_crc = s->pages_crc,
				     .state_crc = s->state_crc,
				     .disk_crc = state == JOURNAL_PAUSED ? s->disk_crc : 0,
				     .saved_bytes = s->saved_bytes,
				     .base_sums = s->base_sums,
				     .run_boot_ns = s->lease.run_ns,
				     .end_boot_ns = s->lease.end_ns };
	if (host_text_join(s->text, s->env, s->host, &ret->text, err) < 0)
		return err_wrap(err, "note %s", s->info.id);
	ret->known = s->network.known;
	memcpy(ret->token, s->token, sizeof(ret->token));
	memcpy(ret->control_token, s->control_token, sizeof(ret->control_token));
	repeats_note(s, ret);
	memcpy(ret->key_id, s->key_id, sizeof(ret->key_id));
	memcpy(ret->machine_id, s->machine_id, sizeof(ret->machine_id));
	memcpy(ret->boot_id, s->boot_id, sizeof(ret->boot_id));
	if (strcmp(s->base_id, s->info.template_id) != 0)
		memcpy(ret->base_id, s->base_id, sizeof(ret->base_id));
	return 0;
}

static int put(struct sandbox *s, struct journal_write *w, enum journal_state state, bool durable,
	       void (*on_done)(struct journal_write *w, const struct err *err), struct err *err)
{
	struct journal_row row;
	int rc;

	if (make_row(s, state, &row, err) < 0)
		return -1;
	rc = journal_put(s->node->journal, w, &row, durable, on_done, err);
	free(row.text);
	return rc;
}

int sandbox_describe_disk(const struct sandbox *s, struct buf *out, struct err *err)
{
	struct journal_row row;
	int rc;

	if (make_row(s, JOURNAL_PAUSED, &row, err) < 0)
		return -1;
	row.saved_bytes = 0;
	row.pages_crc = row.state_crc = row.disk_crc = 0; /* it ran to its end */
	row.sandbox.state = NODE_PAUSED;
	row.sandbox.end_ns = row.sandbox.ended_ns;
	row.sandbox.generation++; /* as at a pause */
	rc = row_put(&row, out, err);
	free(row.text);
	return rc < 0 ? -1 : buf_add(out, (struct bytes){ (const uint8_t *)"", 1 }, err);
}

int sandbox_note(struct sandbox *s, struct journal_write *w, enum journal_state state,
		 void (*on_done)(struct journal_write *w, const struct err *err), struct err *err)
{
	return put(s, w, state, false, on_done, err);
}

int sandbox_note_durable(struct sandbox *s, struct journal_write *w, enum journal_state state,
			 void (*on_done)(struct journal_write *w, const struct err *err),
			 struct err *err)
{
	return put(s, w, state, true, on_done, err);
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
	struct err err;

	if (failed || table_own(&n->table, s, &err) < 0) {
		not_settled(s, failed ? failed : &err, "could not be noted");
		return;
	}
	sandbox_enter(&n->table, s, SANDBOX_RUNNING);
	s->seen = n->look.number;
	sandbox_set_deadline(s);
	events_add(&s->record.events, EVENT_INFO, "created", "Sandbox created");
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

/* NULL: there is none, or no memory for it; then it boots without one day. */
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
	if (sandbox_note(s, &s->write, JOURNAL_RUNNING, on_settled, &err) < 0)
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
	lease_begin(&s->lease, now, c->timeout_s);
	s->info.started_ns = now.wall_ns;
	s->info.end_ns = lease_end_wall(&s->lease, now);
	s->info.state = NODE_RUNNING;
	network_wait(s, on_ruled);
}

void sandbox_claim(struct sandbox *s, struct create *c)
{
	s->create = c;
	memcpy(s->info.team, c->team, sizeof(s->info.team));
	memcpy(s->key_id, c->key_id, sizeof(s->key_id));
	memcpy(s->token, c->token, sizeof(s->token));
	s->info.flags = c->flags & ~(uint32_t)NODE_BOOT;
	if (!(c->flags & NODE_SECURE))
		explicit_bzero(s->identity.access_token, sizeof(s->identity.access_token));
	snprintf(s->info.access_token, sizeof(s->info.access_token), "%.*s", NODE_ID_MAX,
		 s->identity.access_token);
	if (c->flags & NODE_PRIVATE)
		random_name(s->info.traffic_token, AGENT_TOKEN_LENGTH);
	s->identity.env = json_incref(c->env);
	if (s->identity.stay_frozen)
		agent_identity_refresh(&s->identity);
	s->identity.stay_frozen = false;
	sandbox_enter(&s->node->table, s, SANDBOX_NAMING);
	steps_add(&s->machine.steps, "claimed");
	network_tell(s); /* beside it: egress is quicker than a guest */
	restore_identity(&s->restore, &s->identity);
}
