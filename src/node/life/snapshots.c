/* snapshots.c - the table of snapshots: who may have which, and when one goes. */
#include "node/life/snapshots.h"

#include <errno.h>
#include <inttypes.h>

#include "base/list.h"
#include "base/log.h"
#include "node/recovery/adopt.h"
#include "node/node.h"
#include "node/life/pools_text.h"
#include "node/life/step.h"
#include "wire/rfc3339.h"

/* --- the table ---------------------------------------------------------------------------- */

struct snapshot *snapshots_add(struct node *n, const struct journal_snapshot *row)
{
	struct snapshot **bucket = &n->snapshots.by_id[table_hash(row->id) % SNAPSHOTS_BUCKETS];
	struct snapshot *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->node = n;
	p->row = *row;
	p->used_ns = row->created_ns;
	p->cached = true;
	p->row.known = row->known ? strdup(row->known) : NULL; /* it can do without */
	p->row.context = row->context ? strdup(row->context) : NULL;
	if (!p->row.context != !row->context) {
		free(p->row.known);
		free(p);
		return NULL;
	}
	list_add(&n->snapshots.all, p);
	n->snapshots.n++;
	p->bucket_next = *bucket;
	*bucket = p;
	return p;
}

static void forget(struct snapshot *p)
{
	struct snapshots *t = &p->node->snapshots;
	struct snapshot **at = &t->by_id[table_hash(p->row.id) % SNAPSHOTS_BUCKETS];

	journal_write_cancel(&p->write);
	catalog_snapshot_gone(p);
	pools_forget(p);
	while (*at != p)
		at = &(*at)->bucket_next;
	*at = p->bucket_next;
	list_remove(p);
	t->n--;
	free(p->row.known);
	free(p->row.context);
	explicit_bzero(&p->row, sizeof(p->row));
	free(p);
}

struct snapshot *snapshots_by_id(const struct node *n, const char *id)
{
	struct snapshot *p = n->snapshots.by_id[table_hash(id) % SNAPSHOTS_BUCKETS];

	while (p && strcmp(p->row.id, id) != 0)
		p = p->bucket_next;
	return p;
}

bool snapshots_need(const struct node *n, const char *base_id)
{
	for (const struct snapshot *p = n->snapshots.all; p; p = p->next)
		if (strcmp(p->row.base_id, base_id) == 0)
			return true;
	return false;
}

static bool named(const struct snapshot *p, const char *name, const char *tag)
{
	const char *want = tag[0] ? tag : SNAPSHOT_TAG;

	return p->row.name[0] && strcmp(p->row.name, name) == 0 && strcmp(p->row.tag, want) == 0;
}

/* Its id has one tag. */
static bool is_it(const struct snapshot *p, const char *name, const char *tag)
{
	if (strcmp(p->row.id, name) == 0)
		return !tag[0] || strcmp(tag, SNAPSHOT_TAG) == 0 || strcmp(tag, p->row.tag) == 0;
	return named(p, name, tag);
}

/* It may be there again: whoever mounted it need not tell us. */
bool snapshot_has_files(struct snapshot *p, struct err *err)
{
	p->missing = p->missing && !files_has_snapshot(p->node->files, p->row.id);
	if (p->missing)
		err_set(err, ERR_NO_FILES, 0,
			"the files of snapshot %s are not there: is %s/snapshots mounted?",
			p->row.id, p->node->set[SET_DATA_DIR].text);
	return !p->missing;
}

struct snapshot *snapshots_find(struct node *n, const char *team, const char *name, const char *tag,
				struct err *err)
{
	bool known = base_is(n, name);

	for (struct snapshot *p = n->snapshots.all; p; p = p->next) {
		if (p->going || p->row.hidden || p->row.kind != JOURNAL_SNAPSHOT ||
		    (team[0] && strcmp(p->row.team, team) != 0))
			continue;
		if (is_it(p, name, tag))
			return snapshot_has_files(p, err) ? p : NULL;
		known |= strcmp(p->row.name, name) == 0 || strcmp(p->row.id, name) == 0;
	}
	if (known && tag[0])
		err_set(err, ERR_NOT_FOUND, 0, "tag '%s' does not exist for template '%s'", tag,
			name);
	else if (!aside_tells(n, LOST_SNAPSHOT, team, name, err))
		err_set(err, ERR_NOT_FOUND, 0, "template '%s' not found", name);
	return NULL;
}

/* --- its end ------------------------------------------------------------------------------ */

static void on_row_removed(struct journal_write *w, const struct err *failed)
{
	struct snapshot *p = CONTAINER_OF(w, struct snapshot, write);
	struct files_order o = { .verb = FILES_SNAP_DROP };
	struct door_asked *asked = TAKE(p->asked);
	struct err err;

	if (failed) {
		log_error("remove snapshot %s: %s", p->row.id, failed->msg);
		p->going = false;
		if (asked)
			door_refuse(asked, failed);
		return;
	}
	step("forget.row");
	log_info("snapshot %s is removed", p->row.id);
	memcpy(o.id, p->row.id, sizeof(o.id));
	memcpy(o.into, p->row.id, sizeof(o.into));
	if (files_ask(p->node->files, NULL, &o, NULL, &err) < 0) /* the next node does */
		log_error("remove snapshot %s: %s", p->row.id, err.msg);
	if (asked)
		door_answer(asked, &(struct node_reply){ 0 }, (struct bytes){ 0 }, NULL, 0);
	forget(p);
}

/* The row first, and with it the mark that its folder is to go: the next node sees to that. */
static void remove_row(struct snapshot *p)
{
	struct err err;

	journal_write_cancel(&p->write);
	if (journal_remove_snapshot(p->node->journal, &p->write, p->row.id, on_row_removed, &err) <
	    0)
		on_row_removed(&p->write, &err);
}

/* Nobody uses it but VMs that are nobody's: these end first. */
static void take_away(struct snapshot *p)
{
	p->going = true;
	pools_drop(p, "its snapshot is removed");
	if (p->users == 0)
		remove_row(p);
}

/* Sandboxes of somebody, and whoever wants to make one. */
static size_t used_by(const struct snapshot *p)
{
	return p->users - p->pooled;
}

int snapshot_remove(struct snapshot *p, struct err *err)
{
	if (used_by(p) > 0 || p->lost || p->missing)
		return err_set(err, ERR_INVALID, 0, "snapshot %s is in use", p->row.id);
	if (!p->going)
		take_away(p);
	return 0;
}

struct snapshot *snapshot_hold(struct snapshot *p)
{
	p->users++;
	return p;
}

void snapshot_release(struct snapshot *p)
{
	if (!p)
		return;
	p->users--;
	if (p->users > 0 || p->node->snapshots.closed)
		return;
	if (p->going)
		remove_row(p);
	else if (p->row.hidden && !p->missing && !p->lost)
		take_away(p);
}

struct snapshot *snapshots_by_token(const struct node *n, const char *token)
{
	struct snapshot *p = n->snapshots.all;

	while (p && (p->going || strcmp(p->row.token, token) != 0))
		p = p->next;
	return p;
}

/* One with a name may be found by it, and may have taken the place of another. One that sandboxes
 * were made of was found in a list. */
void snapshots_undo(struct node *n, const char *token)
{
	struct snapshot *p = snapshots_by_token(n, token);

	if (!p || p->row.name[0] || used_by(p) > 0)
		return;
	log_info("snapshot %s: nobody was told of it", p->row.id);
	take_away(p);
}

static void on_hidden(struct journal_write *w, const struct err *err)
{
	struct snapshot *p = CONTAINER_OF(w, struct snapshot, write);

	if (err)
		log_error("snapshot %s keeps its name: %s", p->row.id, err->msg);
}

void snapshot_hide(struct snapshot *p)
{
	struct err err;

	if (p->going || p->row.hidden)
		return;
	p->row.hidden = 1;
	pools_drop(p, "its snapshot lost its name");
	if (p->users == 0 && !p->missing && !p->lost)
		take_away(p);
	else if (journal_put_snapshot(p->node->journal, &p->write, &p->row, on_hidden, &err) < 0)
		on_hidden(&p->write, &err);
}

void snapshots_rename_older(struct snapshot *newest)
{
	const struct journal_snapshot *r = &newest->row;
	struct snapshot *next;

	for (struct snapshot *p = newest->node->snapshots.all; r->name[0] && p; p = next) {
		next = p->next;
		if (p != newest && strcmp(p->row.team, r->team) == 0 && named(p, r->name, r->tag))
			snapshot_hide(p);
	}
}

/* --- at start ----------------------------------------------------------------------------- */

static int load_one(const struct journal_snapshot *row, void *context, struct err *err)
{
	struct node *n = context;
	struct snapshot *p;

	if (!sandbox_id_ok(row->id))
		return err_set(err, ERR_INVALID, 0, "its id may be no folder's name");
	if (row->layers > WARDEN_LAYERS_MAX)
		return err_set(err, ERR_INVALID, 0, "it has %u layers", row->layers);
	if (row->kind >= JOURNAL_KINDS)
		return err_set(err, ERR_INVALID, 0, "it is of kind %u", row->kind);
	p = snapshots_add(n, row);
	if (!p)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "no memory to load it");
	p->lost = true;
	p->missing = !files_has_snapshot(n->files, row->id); /* sweep.c says it, of all at once */
	return 0;
}

static void set_aside(const struct journal_odd *row, void *context)
{
	quarantine_add(context, QUARANTINE_SNAPSHOT, row);
}

int snapshots_load(struct node *n, struct err *err)
{
	return journal_each_snapshot(n->journal, load_one, set_aside, n, err);
}

void snapshots_sweep(struct node *n, const struct lost_list *lost)
{
	list_each(struct snapshot, p, n->snapshots.all) {
		if (!p->lost || lost_holds(lost, p->row.id))
			continue;
		p->lost = false;
		if (p->row.hidden && p->users == 0 && !p->missing && !p->going)
			take_away(p);
	}
}

void snapshots_close(struct node *n)
{
	n->snapshots.closed = true;
	while (n->snapshots.all)
		forget(n->snapshots.all);
}

/* --- what keeps one, said to people ------------------------------------------------------- */

/* The ids of some sandboxes that do. */
static json_t *kept_by(const struct snapshot *p)
{
	json_t *ids = json_array();

	for (const struct sandbox *s = p->node->table.all; s; s = s->next)
		if (s->snapshot == p && !s->pooled && json_array_size(ids) < SNAPSHOT_USERS_TOLD)
			(void)json_array_append_new(ids, json_text(bytes_str(s->info.id)));
	return ids;
}

static const char *doing(const struct sandbox *s)
{
	if (s->state == SANDBOX_RUNNING || s->state == SANDBOX_PAUSING)
		return "runs";
	if (s->state == SANDBOX_PAUSED || s->state == SANDBOX_PARKING)
		return "is paused";
	return s->state == SANDBOX_ENDING ? "is being removed" : "starts";
}

static void say(json_t *to, json_t *text)
{
	(void)json_array_append_new(to, text);
}

/* Each use of it by a sandbox. How many there are. */
static size_t say_sandboxes(const struct snapshot *p, json_t *to)
{
	size_t n = 0;

	for (const struct sandbox *s = p->node->table.all; s; s = s->next)
		if (s->snapshot == p && !s->pooled && n++ < SNAPSHOT_USERS_TOLD)
			say(to, json_sprintf("sandbox %s, made of it, %s", s->info.id, doing(s)));
	if (n > SNAPSHOT_USERS_TOLD)
		say(to, json_sprintf("%zu more sandboxes", n - SNAPSHOT_USERS_TOLD));
	return n;
}

static size_t held_by_build(const struct snapshot *p)
{
	return build_holds(p);
}

json_t *snapshot_why(const struct snapshot *p)
{
	json_t *all = json_array();
	size_t known, held = held_by_build(p);

	if (p->row.kind != JOURNAL_SNAPSHOT && !p->row.hidden)
		say(all, json_string(p->row.kind == JOURNAL_STEP
					     ? "later builds of its team may begin with it"
					     : "it is the end of a build"));
	else if (!p->row.hidden && p->row.name[0])
		say(all, json_sprintf("it is %s:%s of its team, until that is deleted", p->row.name,
				      p->row.tag));
	else if (!p->row.hidden)
		say(all, json_string("it was asked for, and is kept until it is deleted"));
	if (p->missing)
		say(all, json_string("its files are not there: its row waits for them"));
	known = say_sandboxes(p, all) + p->readers + p->pooled + held;
	if (p->pooled > 0)
		say(all,
		    json_sprintf("%zu VMs of its pool, which end when it is deleted", p->pooled));
	if (held)
		say(all, json_sprintf("it is build %s of template %s", p->build->row.id,
				      p->build->template->row.id));
	if (p->readers > 0)
		say(all, json_sprintf("%zu snapshots that are being made read it", p->readers));
	if (p->users > known)
		say(all, json_sprintf("%zu creates wait to be made of it", p->users - known));
	if (json_array_size(all) == 0)
		say(all, json_string("nothing keeps it: it is being removed"));
	return all;
}

/* --- what gateways ask -------------------------------------------------------------------- */

/* {"snapshotID", "name"?, "tag", ...}; NULL: no memory. */
static json_t *snapshot_json(const struct snapshot *p)
{
	const struct journal_snapshot *r = &p->row;
	static const char *const kinds[] = { "snapshot", "step", "build" };
	char created[32], at[RFC3339_SIZE];
	json_t *v;

	static_assert(COUNT(kinds) == JOURNAL_KINDS, "a kind without a name");

	rfc3339_put(r->created_ns, 6, at);
	snprintf(created, sizeof(created), "%" PRIu64, r->created_ns);
	v = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b, "
		      "s:b, s:s, s:o, s:o}",
		      "snapshotID", r->id, "teamID", r->team, "name", r->name, "tag", r->tag,
		      "sandboxID", r->source, "parentID", r->parent, "baseID", r->base_id,
		      "createdNs", created, "createdAt", at, "memoryBytes",
		      (json_int_t)r->memory_bytes, "diskBytes", (json_int_t)r->disk_bytes, "layers",
		      (json_int_t)r->layers, "sandboxes",
		      (json_int_t)(used_by(p) - held_by_build(p)), "hidden", (int)r->hidden,
		      "missing", (int)p->missing, "kind", kinds[r->kind], "keptBy", kept_by(p),
		      "why", snapshot_why(p));
	if (v)
		(void)pool_describe(p->pool, v);
	return v;
}

static bool is_wanted(const struct snapshot *p, const struct node_request *rq)
{
	const struct journal_snapshot *r = &p->row;

	if (p->going || ((r->hidden || r->kind != JOURNAL_SNAPSHOT) && rq->team[0]) ||
	    (rq->after_ns && r->created_ns >= rq->after_ns))
		return false;
	return (!rq->team[0] || strcmp(r->team, rq->team) == 0) &&
	       (!rq->id[0] || strcmp(r->source, rq->id) == 0) &&
	       (!rq->template_id[0] ||
		is_it(p, rq->template_id, rq->template_tag[0] ? rq->template_tag : r->tag));
}

void snapshots_list(struct node *n, struct door_asked *a, const struct node_request *rq,
		    struct bytes text)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_MESSAGE_MAX - sizeof(struct node_reply));
	AUTO(json_decrefp) json_t *all = json_array();
	size_t max = rq->count && rq->count < SNAPSHOTS_PAGE ? rq->count : SNAPSHOTS_PAGE;
	struct err err;

	(void)text;
	for (const struct snapshot *p = n->snapshots.all; p && json_array_size(all) < max;
	     p = p->next)
		if (is_wanted(p, rq))
			(void)json_array_append_new(all, snapshot_json(p));
	if (json_encode(all, &out, &err) < 0)
		door_refuse(a, &err);
	else
		door_answer(a, &(struct node_reply){ 0 }, buf_view(&out), NULL, 0);
}

void snapshot_answer(const struct snapshot *p, struct door_asked *a)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_TEXT_MAX);
	AUTO(json_decrefp) json_t *v = snapshot_json(p);
	struct err err;

	if (json_encode(v, &out, &err) < 0)
		door_refuse(a, &err);
	else
		door_answer(a, &(struct node_reply){ 0 }, buf_view(&out), NULL, 0);
}

void snapshots_delete(struct node *n, struct door_asked *a, const struct node_request *rq,
		      struct bytes text)
{
	struct err err;
	struct snapshot *p = snapshots_find(n, rq->team, rq->template_id, rq->template_tag, &err);

	(void)text;
	if (p && used_by(p) > 0) {
		err_set(&err, ERR_INVALID, 0,
			"cannot delete template '%s' because there are %zu sandboxes using it",
			rq->template_id, used_by(p));
		p = NULL;
	}
	if (!p) {
		door_refuse(a, &err);
		return;
	}
	p->asked = a;
	take_away(p);
}
