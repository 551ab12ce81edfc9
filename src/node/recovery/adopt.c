/* adopt.c - what becomes of each row.
 *
 *	running  it runs, unless warden's list says otherwise; one that stands still goes on,
 *	         and one that was about to be saved: its guest may be frozen
 *	paused   it is paused; a VM it may still have is removed
 *	waking   its VM goes on if it is there; else its memory is lost, and so is it
 *	others   never finished: ended; of one that had lost its VM the disk is kept
 *	odd      it stays as it is: quarantine.h
 */
#include "node/recovery/adopt.h"

#include <errno.h>

#include "base/log.h"
#include "node/files/host_text.h"
#include "node/life/end.h"
#include "node/life/park.h"
#include "node/node.h"
#include "node/life/start.h"

bool sandbox_id_ok(const char *id)
{
	static const char may[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
	size_t n = strspn(id, may);

	return n > 0 && n <= NODE_ID_MAX && id[n] == '\0';
}

static void load_fields(struct sandbox *s, const struct journal_row *row)
{
	s->info = row->sandbox;
	s->info.flags &= ~((uint32_t)NODE_STALLED | (uint32_t)NODE_ABSENT); /* others say */
	s->absent.other_boot = s->node->installation.other_boot;
	s->slot = row->slot;
	s->started = true;
	s->pages_crc = row->pages_crc;
	s->state_crc = row->state_crc;
	s->disk_crc = row->disk_crc;
	s->saved_bytes = row->saved_bytes;
	s->base_sums = row->base_sums;
	s->blank = row->blank;
	memcpy(s->control_token, row->control_token, sizeof(s->control_token));
	memcpy(s->key_id, row->key_id, sizeof(s->key_id));
	memcpy(s->machine_id, row->machine_id, sizeof(s->machine_id));
	memcpy(s->boot_id, row->boot_id, sizeof(s->boot_id));
	memcpy(s->token, row->token, sizeof(s->token));
	memcpy(s->base_id, row->base_id[0] ? row->base_id : row->sandbox.template_id,
	       sizeof(s->base_id));
}

/* Last of all: whoever holds a hidden snapshot and lets go of it ends it. */
static void load_snapshot(struct sandbox *s, const struct journal_row *row)
{
	struct snapshot *p = row->base_id[0] ? snapshots_by_id(s->node, s->info.template_id) : NULL;

	if (p)
		s->snapshot = snapshot_hold(p);
	else if (row->base_id[0])
		log_error("%s: its snapshot %s is gone", s->info.id, s->info.template_id);
}

static void load_running(struct sandbox *s, const struct journal_row *row)
{
	lease_load(&s->lease, lease_clock(), row);
	sandbox_enter(&s->node->table, s, SANDBOX_RUNNING);
	sandbox_set_deadline(s);
	s->marked = files_is_marked(s->node->files, s->info.id);
	if (!s->marked) /* else when it goes on */
		tidy_later(s);
}

/* Its files stay until it runs: what they are worth is known then. */
static void load_waking(struct sandbox *s, const struct journal_row *row)
{
	lease_load(&s->lease, lease_clock(), row);
	sandbox_enter(&s->node->table, s, SANDBOX_WAKING);
}

static void load_paused(struct sandbox *s)
{
	s->slot = WARDEN_NO_SLOT;
	park_loaded(s);
	tidy_later(s);
}

static bool is_owned(const struct journal_row *row)
{
	return row->state == JOURNAL_RUNNING || row->state == JOURNAL_PAUSED ||
	       row->state == JOURNAL_WAKING;
}

static int check(const struct node *n, const struct journal_row *row, struct err *err)
{
	const char *id = row->sandbox.id;

	if (!sandbox_id_ok(id))
		return err_set(err, ERR_INVALID, 0, "its id may be no folder's name");
	if (table_find(&n->table, id))
		return err_set(err, ERR_INVALID, 0, "its id is another's");
	if (is_owned(row) && !row->sandbox.team[0])
		return err_set(err, ERR_INVALID, 0, "it has no team");
	return 0;
}

static int load_texts(struct sandbox *s, const struct journal_row *row, struct err *err)
{
	if (row->known && !(s->network.known = strdup(row->known)))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "no memory to load it");
	return host_text_split(row->text, &s->text, &s->env, &s->host, err);
}

/* What may fail. */
static int load_owned(struct sandbox *s, const struct journal_row *row, struct err *err)
{
	if (load_texts(s, row, err) < 0)
		return -1;
	if (s->text && strlen(s->text) > NODE_TEXT_MAX)
		return err_set(err, ERR_INVALID, 0, "its text has %zu bytes", strlen(s->text));
	if (idempotency_load(s, row, err) < 0)
		return -1;
	return table_own(&s->node->table, s, err);
}

/* Its end was begun by a node that did not finish it. A row "killing" is of one that somebody had.
 */
static bool had_lost_its_vm(const struct journal_row *row)
{
	return row->state == JOURNAL_KILLING && row->sandbox.reason == NODE_LOST &&
	       row->sandbox.team[0];
}

int sandbox_load(struct node *n, const struct journal_row *row, struct err *err)
{
	struct sandbox *s = check(n, row, err) < 0 ? NULL : sandbox_make(n, err);

	if (!s)
		return -1;
	load_fields(s, row);
	table_add(&n->table, s);
	s->absent.keeps_disk = had_lost_its_vm(row);
	if ((is_owned(row) && load_owned(s, row, err) < 0) ||
	    (s->absent.keeps_disk && load_texts(s, row, err) < 0)) {
		sandbox_free(s);
		return -1;
	}
	load_snapshot(s, row);
	if (row->state == JOURNAL_POOLED)
		pools_count(s);
	if (!is_owned(row))
		sandbox_end(s, s->info.reason ? (enum node_reason)s->info.reason : NODE_LOST,
			    "not finished when node ended");
	else if (row->state == JOURNAL_PAUSED)
		load_paused(s);
	else if (row->state == JOURNAL_WAKING)
		load_waking(s, row);
	else
		load_running(s, row);
	return 0;
}

/* --- all of them -------------------------------------------------------------------------- */

static int load_one(const struct journal_row *row, void *context, struct err *err)
{
	return sandbox_load(context, row, err);
}

static void set_aside(const struct journal_odd *row, void *context)
{
	quarantine_add(context, QUARANTINE_SANDBOX, row);
}

int adopt_journal(struct node *n, struct err *err)
{
	if (snapshots_load(n, err) < 0 || catalog_load(n, err) < 0)
		return -1;
	return journal_each(n->journal, load_one, set_aside, n, err);
}
