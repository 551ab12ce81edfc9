/* cell.c - a table small enough to be searched, by ids warden was given. */
#include "warden/cell.h"

#define TO(s) (1u << (s))

static const struct {
	const char *name;
	uint32_t next;
} rules[] = {
	[WARDEN_STARTING] = { "starting", TO(WARDEN_RUNNING) | TO(WARDEN_STOPPING) },
	[WARDEN_RUNNING] = { "running", TO(WARDEN_EXITED) | TO(WARDEN_STOPPING) },
	[WARDEN_STOPPING] = { "stopping", 0 },
	[WARDEN_EXITED] = { "exited", TO(WARDEN_STOPPING) },
};

void cell_enter(struct cell *c, enum warden_cell_state next)
{
	if (!(rules[c->state].next & TO(next))) {
		fprintf(stderr, "cell %s: illegal step %s -> %s\n", c->record.id,
			rules[c->state].name, rules[next].name);
		abort();
	}
	c->state = next;
}

struct cell *cell_add(struct cells *t, const struct record *r, struct err *err)
{
	if (cell_find(t, r->id)) {
		err_set(err, ERR_EXISTS, 0, "vm %s exists", r->id);
		return NULL;
	}
	for (size_t i = 0; i < CELLS_MAX; i++) {
		struct cell *c = &t->all[i];

		if (c->record.id[0])
			continue;
		*c = (struct cell){ .record = *r, .pidfd = -1, .netns = -1 };
		c->stopper.client = UINT32_MAX; /* nobody yet */
		t->count++;
		return c;
	}
	err_set(err, ERR_EXHAUSTED, 0, "%d vms already", CELLS_MAX);
	return NULL;
}

struct cell *cell_find(struct cells *t, const char *id)
{
	for (size_t i = 0; i < CELLS_MAX; i++)
		if (strcmp(t->all[i].record.id, id) == 0)
			return id[0] ? &t->all[i] : NULL;
	return NULL;
}

bool cell_uses(const struct cells *t, const char *template_id, bool build)
{
	for (size_t i = 0; i < CELLS_MAX; i++) {
		const struct record *r = &t->all[i].record;

		if (r->id[0] && r->build >= build && strcmp(r->template_id, template_id) == 0)
			return true;
	}
	return false;
}

struct cell *cell_after(struct cells *t, const char *id)
{
	struct cell *best = NULL;

	for (size_t i = 0; i < CELLS_MAX; i++) {
		struct cell *c = &t->all[i];

		if (c->record.id[0] && strcmp(c->record.id, id) > 0 &&
		    (!best || strcmp(c->record.id, best->record.id) < 0))
			best = c;
	}
	return best;
}

void cell_forget(struct cells *t, struct cell *c)
{
	if (c->pidfd >= 0)
		close(c->pidfd);
	if (c->netns >= 0)
		close(c->netns);
	*c = (struct cell){ .pidfd = -1, .netns = -1 };
	t->count--;
}
