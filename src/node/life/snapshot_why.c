/* snapshot_why.c - what keeps a snapshot, said to people. */
#include "node/node.h"
#include "node/life/snapshots.h"

json_t *snapshot_kept_by(const struct snapshot *p)
{
	json_t *ids = json_array();

	for (const struct sandbox *s = p->node->table.all; s; s = s->next)
		if (s->snapshot == p && json_array_size(ids) < SNAPSHOT_USERS_TOLD)
			(void)json_array_append_new(ids, json_text(bytes_str(s->info.id)));
	return ids;
}

static const char *doing(const struct sandbox *s)
{
	if (s->state == SANDBOX_RUNNING || s->state == SANDBOX_PAUSING)
		return "runs";
	if (s->state == SANDBOX_PAUSED || s->state == SANDBOX_PARKING)
		return "is paused";
	return s->state == SANDBOX_ENDING ? "is being removed" : "starts";
}

static void say(json_t *to, json_t *text)
{
	(void)json_array_append_new(to, text);
}

/* Each use of it by a sandbox. How many there are. */
static size_t say_sandboxes(const struct snapshot *p, json_t *to)
{
	size_t n = 0;

	for (const struct sandbox *s = p->node->table.all; s; s = s->next)
		if (s->snapshot == p && n++ < SNAPSHOT_USERS_TOLD)
			say(to, json_sprintf("sandbox %s, made of it, %s", s->info.id, doing(s)));
	if (n > SNAPSHOT_USERS_TOLD)
		say(to, json_sprintf("%zu more sandboxes", n - SNAPSHOT_USERS_TOLD));
	return n;
}

json_t *snapshot_why(const struct snapshot *p)
{
	json_t *all = json_array();
	size_t known;

	if (!p->row.hidden && p->row.name[0])
		say(all, json_sprintf("it is %s:%s of its team, until that is deleted", p->row.name,
				      p->row.tag));
	else if (!p->row.hidden)
		say(all, json_string("it was asked for, and is kept until it is deleted"));
	if (p->missing)
		say(all, json_string("its files are not there: its row waits for them"));
	known = say_sandboxes(p, all) + p->readers;
	if (p->readers > 0)
		say(all, json_sprintf("%zu snapshots that are being made read it", p->readers));
	if (p->users > known)
		say(all, json_sprintf("%zu creates wait to be made of it", p->users - known));
	if (json_array_size(all) == 0)
		say(all, json_string("nothing keeps it: it is being removed"));
	return all;
}
