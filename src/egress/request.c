/* request.c - see request.h. */
#include "egress/request.h"

#include "base/folder.h"

/* What comes with it, what may come as well, and whether it says whose the slot is. */
static const struct {
	size_t n_fds, more;
	bool names;
} verbs[EGRESS_VERBS] = {
	[EGRESS_OPEN] = { .n_fds = EGRESS_DOORS },
	[EGRESS_CLOSE] = { 0 },
	[EGRESS_NAME] = { .names = true },
	[EGRESS_COUNT] = { 0 },
	[EGRESS_RULE] = { .n_fds = 1, .more = 1 },
	[EGRESS_LOG] = { 0 },
	[EGRESS_KNOWN] = { 0 },
	[EGRESS_EXPLAIN] = { .n_fds = 1 },
	[EGRESS_RESET] = { 0 },
	[EGRESS_TOTALS] = { 0 },
};

int egress_request_check(const struct egress_request *rq, size_t n_fds, struct err *err)
{
	if (rq->verb >= EGRESS_VERBS)
		return err_set(err, ERR_INVALID, 0, "unknown verb");
	if (n_fds < verbs[rq->verb].n_fds || n_fds > verbs[rq->verb].n_fds + verbs[rq->verb].more)
		return err_set(err, ERR_INVALID, 0, "%zu descriptors, expected %zu", n_fds,
			       verbs[rq->verb].n_fds);
	if (rq->slot >= EGRESS_SLOTS_MAX)
		return err_set(err, ERR_INVALID, 0, "slots end at %d", EGRESS_SLOTS_MAX);
	if (verbs[rq->verb].names && !folder_name_ok(rq->id, sizeof(rq->id)))
		return err_set(err, ERR_INVALID, 0, "not an id of a sandbox");
	return 0;
}
