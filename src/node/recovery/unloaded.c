/* unloaded.c - what is saved and could not be loaded, in the order in which that was seen. */
#include "node/recovery/unloaded.h"

#include <stdio.h>
#include <string.h>

#include "node/node.h"

static bool is_told_elsewhere(enum err_code code)
{
	return code == ERR_BASE_LOST || code == ERR_NO_FILES || code == ERR_NO_SPACE ||
	       code == ERR_EXHAUSTED;
}

static void forget(struct unloaded *u, size_t i)
{
	u->n--;
	memmove(&u->all[i], &u->all[i + 1], (u->n - i) * sizeof(u->all[0]));
}

static void forget_id(struct unloaded *u, enum lost_kind kind, const char *id)
{
	for (size_t i = u->n; i-- > 0;)
		if (u->all[i].kind == kind && strcmp(u->all[i].id, id) == 0)
			forget(u, i);
}

void unloaded_note(struct node *n, enum lost_kind kind, const char *id, const struct err *why)
{
	struct unloaded *u = &n->unloaded;
	struct unloaded_one *one;

	forget_id(u, kind, id);
	if (!why || is_told_elsewhere(why->code))
		return;
	if (u->n == UNLOADED_MAX)
		forget(u, 0);
	one = &u->all[u->n++];
	one->kind = kind;
	snprintf(one->id, sizeof(one->id), "%s", id);
	snprintf(one->why, sizeof(one->why), "%.*s", UNLOADED_WHY_MAX - 1, why->msg);
}

static bool is_there(const struct node *n, const struct unloaded_one *one)
{
	return one->kind == LOST_SANDBOX ? table_find(&n->table, one->id) != NULL
					 : snapshots_by_id(n, one->id) != NULL;
}

json_t *unloaded_json(const struct node *n)
{
	json_t *all = json_array();

	for (size_t i = 0; i < n->unloaded.n; i++) {
		const struct unloaded_one *one = &n->unloaded.all[i];

		if (is_there(n, one))
			(void)json_array_append_new(all,
						    json_pack("{s:o, s:s, s:o}", "id",
							      json_text(bytes_str(one->id)), "kind",
							      lost_word(one->kind), "why",
							      json_text(bytes_str(one->why))));
	}
	return all;
}
