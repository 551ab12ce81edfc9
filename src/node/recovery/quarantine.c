/* quarantine.c - rows that make no sense, by their ids. */
#include "node/recovery/quarantine.h"

#include "base/list.h"
#include "base/log.h"
#include "node/recovery/adopt.h"
#include "node/node.h"
#include "node/life/start.h"

struct quarantined {
	enum quarantine_kind kind;
	char id[NODE_ID_MAX + 1], team[NODE_ID_MAX + 1], base_id[NODE_ID_MAX + 1];
	char why[QUARANTINE_WHY_MAX];
	struct snapshot *snapshot; /* held; NULL: none */
	struct quarantined *next;
};

static const char *const kinds[] = {
	[QUARANTINE_SANDBOX] = "sandbox",
	[QUARANTINE_SNAPSHOT] = "snapshot",
};
static_assert(COUNT(kinds) == QUARANTINE_KINDS, "a kind without a name");

static struct quarantined **place_of(struct quarantine *q, enum quarantine_kind kind,
				     const char *id)
{
	struct quarantined **at = &q->buckets[table_hash(id) % QUARANTINE_BUCKETS];

	while (*at && ((*at)->kind != kind || strcmp((*at)->id, id) != 0))
		at = &(*at)->next;
	return at;
}

static const struct quarantined *find(const struct node *n, enum quarantine_kind kind,
				      const char *id)
{
	const struct quarantined *r = n->quarantine.buckets[table_hash(id) % QUARANTINE_BUCKETS];

	while (r && (r->kind != kind || strcmp(r->id, id) != 0))
		r = r->next;
	return r;
}

/* A snapshot that nobody may ask for goes with the last that was made of it: not before this. */
static void hold_snapshot(struct node *n, struct quarantined *r, const struct journal_odd *row)
{
	struct snapshot *p = row->base_id[0] ? snapshots_by_id(n, row->template_id) : NULL;

	if (r->kind == QUARANTINE_SANDBOX && p)
		r->snapshot = snapshot_hold(p);
}

void quarantine_add(struct node *n, enum quarantine_kind kind, const struct journal_odd *row)
{
	struct quarantined *r = calloc(1, sizeof(*r)), **at;

	log_error("%s %s is set aside, its row makes no sense here: %s", kinds[kind], row->id,
		  row->why);
	if (!r) {
		n->quarantine.blind = true;
		return;
	}
	r->kind = kind;
	memcpy(r->id, row->id, sizeof(r->id));
	memcpy(r->team, row->team, sizeof(r->team));
	memcpy(r->base_id, row->base_id[0] ? row->base_id : row->template_id, sizeof(r->base_id));
	snprintf(r->why, sizeof(r->why), "%s", row->why);
	hold_snapshot(n, r, row);
	at = place_of(&n->quarantine, kind, row->id);
	r->next = *at;
	*at = r;
	n->quarantine.n++;
}

void quarantine_close(struct node *n)
{
	for (size_t i = 0; i < QUARANTINE_BUCKETS; i++) {

		list_each(struct quarantined, r, n->quarantine.buckets[i])
			free(r);
	}
	n->quarantine = (struct quarantine){ 0 };
}

bool quarantine_has(const struct node *n, enum quarantine_kind kind, const char *id)
{
	return n->quarantine.blind || find(n, kind, id);
}

bool quarantine_needs(const struct node *n, const char *base_id)
{
	for (size_t i = 0; n->quarantine.n > 0 && i < QUARANTINE_BUCKETS; i++)
		for (const struct quarantined *r = n->quarantine.buckets[i]; r; r = r->next)
			if (!r->base_id[0] || strcmp(r->base_id, base_id) == 0)
				return true;
	return n->quarantine.blind;
}

bool quarantine_tells(const struct node *n, const struct node_request *rq, struct err *err)
{
	const struct quarantined *r = find(n, QUARANTINE_SANDBOX, rq->id);

	if (!r || (rq->team[0] && strcmp(rq->team, r->team) != 0))
		return false;
	err_set(err, ERR_UNAVAILABLE, 0,
		"Sandbox \"%s\" is kept, but set aside, as its row makes no sense here: %s. "
		"`hotcell doctor` tells the operator what to do",
		r->id, r->why);
	return true;
}

struct sandbox *quarantine_give_up(struct node *n, const char *id, struct err *err)
{
	struct quarantined **at = place_of(&n->quarantine, QUARANTINE_SANDBOX, id), *r = *at;
	struct sandbox *s;

	if (!r)
		return NULL;
	if (!sandbox_id_ok(id)) {
		err_set(err, ERR_INVALID, 0, "\"%s\" is no sandbox's id", id);
		return NULL;
	}
	s = sandbox_make(n, err);
	if (!s)
		return NULL;
	memcpy(s->info.id, r->id, sizeof(s->info.id));
	memcpy(s->info.team, r->team, sizeof(s->info.team));
	s->snapshot = r->snapshot;
	s->started = true; /* it may have a VM */
	table_add(&n->table, s);
	*at = r->next;
	n->quarantine.n--;
	free(r);
	return s;
}

json_t *quarantine_json(const struct node *n)
{
	json_t *all = json_array();

	for (size_t i = 0; n->quarantine.n > 0 && i < QUARANTINE_BUCKETS; i++)
		for (const struct quarantined *r = n->quarantine.buckets[i]; r; r = r->next)
			if (json_array_size(all) < QUARANTINE_TOLD)
				(void)json_array_append_new(
					all, json_pack("{s:o, s:s, s:o}", "id",
						       json_text(bytes_str(r->id)), "kind",
						       kinds[r->kind], "why",
						       json_text(bytes_str(r->why))));
	return all;
}
