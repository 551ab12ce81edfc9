/* request.c - see request.h. */
#include "injector/request.h"

#include "base/folder.h"

/* What comes with it, and what it has to name. */
static const struct {
	size_t n_fds;
	bool whose;
} verbs[INJECTOR_VERBS] = {
	[INJECTOR_START] = { 1, true },
	[INJECTOR_STOP] = { 0, false },
	[INJECTOR_RESET] = { 0, false },
	[INJECTOR_FACTS] = { 0, false },
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

int injector_request_check(const struct injector_request *rq, size_t n_fds, struct err *err)
{
	if (rq->verb >= INJECTOR_VERBS || rq->tag == 0)
		return err_set(err, ERR_INVALID, 0, "unknown verb, or no tag");
	if (n_fds != verbs[rq->verb].n_fds)
		return err_set(err, ERR_INVALID, 0, "%zu descriptors, expected %zu", n_fds,
			       verbs[rq->verb].n_fds);
	if (rq->slot >= INJECTOR_SLOTS_MAX)
		return err_set(err, ERR_INVALID, 0, "slots end at %d", INJECTOR_SLOTS_MAX);
	if (verbs[rq->verb].whose &&
	    (!folder_name_ok(rq->id, sizeof(rq->id)) || !is_label(rq->team, sizeof(rq->team))))
		return err_set(err, ERR_INVALID, 0, "not an id of a sandbox, or of a team");
	return 0;
}
