/* aside.c - whose is what is in no row. */
#include "node/recovery/aside.h"

#include <stdlib.h>

#include "base/log.h"
#include "node/node.h"

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct aside_one *)a)->id, ((const struct aside_one *)b)->id);
}

/* Room for so many, and nothing in it. */
static bool begin(struct aside *a, size_t most)
{
	free(a->all);
	*a = (struct aside){ .all = most ? calloc(most, sizeof(*a->all)) : NULL };
	if (most && !a->all)
		log_error("no memory: who asks for what is set aside is not told");
	return a->all;
}

static void fill(struct aside_one *one, enum lost_kind kind, const char *id, const char *team)
{
	one->kind = kind;
	snprintf(one->id, sizeof(one->id), "%s", id);
	snprintf(one->team, sizeof(one->team), "%s", team);
}

void aside_expect(struct node *n, const struct orphans *found)
{
	struct aside *a = &n->aside;

	if (!begin(a, found->n))
		return;
	for (size_t i = 0; i < found->n; i++)
		if (!found->all[i].ended && !found->all[i].wished)
			fill(&a->all[a->n++], found->all[i].kind, found->all[i].name, "");
	qsort(a->all, a->n, sizeof(*a->all), by_id);
}

/* Of a disk of one that lost its VM, its tombstone tells. */
void aside_learn(struct node *n, const struct lost_list *all)
{
	struct aside *a = &n->aside;

	if (!begin(a, all->n))
		return;
	for (size_t i = 0; i < all->n; i++)
		if (all->all[i].kind != LOST_DISK && all->all[i].team[0])
			fill(&a->all[a->n++], all->all[i].kind, all->all[i].id, all->all[i].team);
	qsort(a->all, a->n, sizeof(*a->all), by_id);
}

static struct aside_one *find(const struct aside *a, const char *id)
{
	struct aside_one wanted = { 0 };

	snprintf(wanted.id, sizeof(wanted.id), "%s", id);
	return a->n ? bsearch(&wanted, a->all, a->n, sizeof(*a->all), by_id) : NULL;
}

void aside_add(struct node *n, enum lost_kind kind, const char *id, const char *team)
{
	struct aside *a = &n->aside;
	struct aside_one *more = reallocarray(a->all, a->n + 1, sizeof(*more));
	size_t low = 0, high = a->n;

	if (!more) {
		log_error("no memory: who asks for %s is not told that it is set aside", id);
		return;
	}
	a->all = more;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (strcmp(more[mid].id, id) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	memmove(&more[low + 1], &more[low], (a->n - low) * sizeof(*more));
	fill(&more[low], kind, id, team);
	a->n++;
}

void aside_forget(struct node *n, const char *id)
{
	struct aside *a = &n->aside;
	struct aside_one *one;

	while ((one = find(a, id))) {
		a->n--;
		memmove(one, one + 1, (size_t)(a->all + a->n - one) * sizeof(*one));
	}
}

void aside_close(struct node *n)
{
	free(n->aside.all);
	n->aside = (struct aside){ 0 };
}

bool aside_tells(const struct node *n, enum lost_kind kind, const char *team, const char *id,
		 struct err *err)
{
	const struct aside_one *one = find(&n->aside, id);

	if (!one || one->kind != kind)
		return false;
	if (!one->team[0])
		err_set(err, ERR_UNAVAILABLE, 0,
			"%s %s is in no row of the journal, and node looks at its files: ask again",
			lost_word(kind), id);
	else if (!team[0] || strcmp(team, one->team) == 0)
		err_set(err, ERR_UNAVAILABLE, 0,
			"%s %s is in no row of the journal: its files are set aside, and its "
			"operator can bring it back (hotcell lost)",
			lost_word(kind), id);
	else
		return false;
	return true;
}
