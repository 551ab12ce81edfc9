/* request.c - see request.h. */
#include "opener/request.h"

#include "base/folder.h"

/* What comes with it, and what it has to name. */
static const struct {
	size_t n_fds;
	bool whose;
} verbs[OPENER_VERBS] = {
	[OPENER_START] = { 1, true },
	[OPENER_STOP] = { 0, false },
	[OPENER_RESET] = { 0, false },
	[OPENER_FACTS] = { 0, false },
};

/* A team is part of a secret's label. */
static bool is_label(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] > '~' || text[i] == '/')
			return false;
	return n > 0 && n < size;
}

int opener_request_check(const struct opener_request *rq, size_t n_fds, struct err *err)
{
	if (rq->version != OPENER_VERSION || rq->verb >= OPENER_VERBS || rq->tag == 0)
		return err_set(err, ERR_INVALID, 0, "unknown version or verb, or no tag");
	if (n_fds != verbs[rq->verb].n_fds)
		return err_set(err, ERR_INVALID, 0, "%zu descriptors, expected %zu", n_fds,
			       verbs[rq->verb].n_fds);
	if (rq->slot >= OPENER_SLOTS_MAX)
		return err_set(err, ERR_INVALID, 0, "slots end at %d", OPENER_SLOTS_MAX);
	if (verbs[rq->verb].whose &&
	    (!folder_name_ok(rq->id, sizeof(rq->id)) || !is_label(rq->team, sizeof(rq->team))))
		return err_set(err, ERR_INVALID, 0, "not an id of a sandbox, or of a team");
	return 0;
}
