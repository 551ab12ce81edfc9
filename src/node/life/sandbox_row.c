/* sandbox_row.c - a sandbox as its row in the journal says it. */
#include "node/life/sandbox_row.h"

#include "node/files/host_text.h"
#include "node/journal/row_file.h"
#include "node/node.h"

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
				     .blank = s->blank,
				     .run_boot_ns = s->lease.run_ns,
				     .end_boot_ns = s->lease.end_ns };
	if (host_text_join(s->text, s->env, s->host, &ret->text, err) < 0)
		return err_wrap(err, "note %s", s->info.id);
	ret->known = s->network.known;
	memcpy(ret->token, s->token, sizeof(ret->token));
	memcpy(ret->control_token, s->control_token, sizeof(ret->control_token));
	idempotency_note(s, ret);
	memcpy(ret->key_id, s->key_id, sizeof(ret->key_id));
	memcpy(ret->machine_id, s->machine_id, sizeof(ret->machine_id));
	memcpy(ret->boot_id, s->boot_id, sizeof(ret->boot_id));
	if (strcmp(s->base_id, s->info.template_id) != 0)
		memcpy(ret->base_id, s->base_id, sizeof(ret->base_id));
	return 0;
}

struct node_sandbox sandbox_told(const struct sandbox *s)
{
	const struct build *b = s->snapshot ? s->snapshot->build : NULL;
	struct node_sandbox told = s->info;

	if (!b)
		return told;
	memcpy(told.template_id, b->template->row.id, sizeof(told.template_id));
	memcpy(told.alias, b->template->row.name, sizeof(told.alias));
	return told;
}

static int put(struct sandbox *s, struct journal_write *w, enum journal_state state, bool durable,
	       journal_done_fn *on_done, struct err *err)
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
		 journal_done_fn *on_done, struct err *err)
{
	return put(s, w, state, false, on_done, err);
}

int sandbox_note_durable(struct sandbox *s, struct journal_write *w, enum journal_state state,
			 journal_done_fn *on_done, struct err *err)
{
	return put(s, w, state, true, on_done, err);
}
