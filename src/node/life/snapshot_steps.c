/* snapshot_steps.c - which step is found, and which goes. */
#include "node/life/snapshot_steps.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "node/node.h"

enum { MIB = 1024 * 1024 };

static bool is_step(const struct snapshot *p, const char *team)
{
	return p->row.kind == JOURNAL_STEP && !p->going &&
	       (!team || strcmp(p->row.team, team) == 0);
}

struct snapshot *snapshots_by_key(struct node *n, const char *team, const char *key)
{
	struct snapshot *p = n->snapshots.all;

	while (p && (!is_step(p, team) || p->missing || strcmp(p->row.key, key) != 0))
		p = p->next;
	if (p)
		p->used_ns = clock_wall_ns();
	return p;
}

struct kept {
	uint64_t bytes;
	size_t n;
	struct snapshot *oldest; /* what may go first; NULL: nothing */
};

/* All that is kept for `team`, or for all when it is NULL. */
static struct kept count(const struct snapshot *newest, const char *team)
{
	struct kept k = { 0 };

	for (struct snapshot *p = newest->node->snapshots.all; p; p = p->next) {
		if (!is_step(p, team))
			continue;
		k.n++;
		k.bytes += p->row.disk_bytes;
		if (p != newest && p->users == 0 && !p->lost && !p->missing &&
		    (!k.oldest || p->used_ns < k.oldest->used_ns))
			k.oldest = p;
	}
	return k;
}

static void trim(const struct snapshot *newest, const char *team, uint64_t part)
{
	uint64_t bytes = newest->node->set[SET_STEPS_MIB].number * MIB / part;
	struct kept k = count(newest, team);
	struct err err;

	while (k.oldest && (k.bytes > bytes || k.n > STEPS_KEPT_MAX / part)) {
		log_info("step %s goes: there is no room for all", k.oldest->row.id);
		if (snapshot_remove(k.oldest, &err) < 0)
			return;
		k = count(newest, team);
	}
}

/* Nobody finds the older one any more. */
static void drop_same(const struct snapshot *newest)
{
	struct err in_use;

	list_each(struct snapshot, p, newest->node->snapshots.all)
		if (p != newest && is_step(p, newest->row.team) &&
		    strcmp(p->row.key, newest->row.key) == 0)
			(void)!snapshot_remove(p, &in_use);
}

void snapshots_trim_steps(const struct snapshot *newest)
{
	drop_same(newest);
	trim(newest, newest->row.team, STEPS_TEAM_PART);
	trim(newest, NULL, 1);
}

struct steps_kept snapshots_steps(const struct node *n)
{
	struct steps_kept k = { 0 };

	for (const struct snapshot *p = n->snapshots.all; p; p = p->next) {
		if (!is_step(p, NULL))
			continue;
		k.n++;
		k.bytes += p->row.disk_bytes;
	}
	return k;
}
