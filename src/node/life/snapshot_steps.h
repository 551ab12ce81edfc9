/* snapshot_steps.h - steps of builds: found again by their keys, and how many are kept.
 *
 * A step is what a later build may begin with. Nobody needs it: the one that was not used for the
 * longest time goes first.
 */
#pragma once

#include "node/life/snapshots.h"

enum {
	STEPS_KEPT_MAX = 4000, /* of all that SNAPSHOTS_MAX allows; of one team: */
	STEPS_TEAM_PART = 2,   /* this part of it, and of the setting steps_mib, at most: a half */
};

/* Of `team`; NULL: none. It counts as used now. */
struct snapshot *snapshots_by_key(struct node *n, const char *team, const char *key);
struct steps_kept {
	uint64_t bytes; /* of the disk */
	size_t n;
};
struct steps_kept snapshots_steps(const struct node *n); /* of all teams */
/* `newest` was made: of older ones that nothing uses those with its key go, then the longest unused
 * until what is left may be kept. */
void snapshots_trim_steps(const struct snapshot *newest);
