/* adopt.c - what the journal says of sandboxes that an earlier node had.
 *
 *	running  it runs, unless warden's list says otherwise; one that stands still goes on,
 *	         and one that was about to be saved: its guest may be frozen
 *	paused   it is paused; a VM it may still have is removed
 *	waking   its VM goes on if it is there; else its memory is lost, and so is it
 *	others   never finished: ended
 */
#include <errno.h>

#include "base/log.h"
#include "node/host_text.h"
#include "node/node.h"
#include "node/pause.h"
#include "node/start.h"

static void load_fields(struct sandbox *s, const struct journal_row *row)
{
	s->info = row->sandbox;
	s->info.flags &= ~(uint32_t)NODE_STALLED; /* its monitor says */
	s->slot = row->slot;
	s->started = true;
	s->pages_crc = row->pages_crc;
	s->state_crc = row->state_crc;
	s->saved_bytes = row->saved_bytes;
	memcpy(s->control_token, row->control_token, sizeof(s->control_token));
	memcpy(s->key_id, row->key_id, sizeof(s->key_id));
	memcpy(s->machine_id, row->machine_id, sizeof(s->machine_id));
	memcpy(s->boot_id, row->boot_id, sizeof(s->boot_id));
	memcpy(s->base_id, row->base_id[0] ? row->base_id : row->sandbox.template_id,
	       sizeof(s->base_id));
	s->snapshot = row->base_id[0] ? snapshots_by_id(s->node, s->info.template_id) : NULL;
	if (s->snapshot)
		snapshot_hold(s->snapshot);
	else if (row->base_id[0])
		log_error("%s: its snapshot %s is gone", s->info.id, s->info.template_id);
}

static int tidy(struct sandbox *s, enum files_verb verb, struct err *err)
{
	struct files_order o;

	sandbox_files_order(s, verb, &o);
	return files_ask(s->node->files, NULL, &o, NULL, err);
}

static int load_running(struct sandbox *s, const struct journal_row *row, struct err *err)
{
	lease_load(&s->lease, lease_clock(), row);
	sandbox_enter(&s->node->table, s, SANDBOX_RUNNING);
	sandbox_set_deadline(s);
	s->marked = files_is_marked(s->node->files, s->info.id);
	return s->marked ? 0 : tidy(s, FILES_RUNS, err); /* else when it goes on */
}

/* Its files stay until it runs: what they are worth is known then. */
static int load_waking(struct sandbox *s, const struct journal_row *row)
{
	lease_load(&s->lease, lease_clock(), row);
	sandbox_enter(&s->node->table, s, SANDBOX_WAKING);
	return 0;
}

static int load_paused(struct sandbox *s, struct err *err)
{
	s->slot = WARDEN_NO_SLOT;
	park(s);
	return tidy(s, FILES_PAUSED, err);
}

int sandbox_load(struct node *n, const struct journal_row *row, struct err *err)
{
	bool owned = row->state == JOURNAL_RUNNING || row->state == JOURNAL_PAUSED ||
		     row->state == JOURNAL_WAKING;
	struct sandbox *s = sandbox_make(n, err);

	if (!s)
		return -1;
	load_fields(s, row);
	table_add(&n->table, s);
	if (!owned) {
		sandbox_end(s, s->info.reason ? (enum node_reason)s->info.reason : NODE_LOST,
			    "not finished when node ended");
		return 0;
	}
	if (row->known && !(s->network.known = strdup(row->known)))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "load %s", s->info.id);
	if (host_text_split(row->text, &s->text, &s->env, &s->host, err) < 0 ||
	    repeats_load(s, row, err) < 0 || table_own(&n->table, s, err) < 0)
		return -1;
	if (row->state == JOURNAL_PAUSED)
		return load_paused(s, err);
	return row->state == JOURNAL_WAKING ? load_waking(s, row) : load_running(s, row, err);
}
