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

/* All that is kept for `team`, or for all when it is NULL. *ret_oldest: what may go first, or NULL.
 */
static uint64_t kept_bytes(const struct snapshot *newest, const char *team,
			   struct snapshot **ret_oldest)
{
	uint64_t bytes = 0;

	*ret_oldest = NULL;
	for (struct snapshot *p = newest->node->snapshots.all; p; p = p->next) {
		if (!is_step(p, team))
			continue;
		bytes += p->row.disk_bytes;
		if (p != newest && p->users == 0 && !p->lost && !p->missing &&
		    (!*ret_oldest || p->used_ns < (*ret_oldest)->used_ns))
			*ret_oldest = p;
	}
	return bytes;
}

static void trim(const struct snapshot *newest, const char *team, uint64_t most)
{
	struct snapshot *oldest;
	struct err err;

	while (kept_bytes(newest, team, &oldest) > most && oldest) {
		log_info("step %s goes: there is no room for all", oldest->row.id);
		if (snapshot_remove(oldest, &err) < 0)
			return;
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
	uint64_t most = newest->node->set[SET_STEPS_MIB].number * MIB;

	drop_same(newest);
	trim(newest, newest->row.team, most / STEPS_TEAM_PART);
	trim(newest, NULL, most);
}
