/* names.c - folders: the names that are seen, those that are durable, and what lies between. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lossy.h"

static struct name **place_of(struct name **table, const char *name)
{
	while (*table && strcmp((*table)->text, name) != 0)
		table = &(*table)->next;
	return table;
}

struct node *names_find(const struct node *folder, const char *name)
{
	for (const struct name *e = folder->names; e; e = e->next)
		if (strcmp(e->text, name) == 0)
			return e->to;
	return NULL;
}

static char *copy_of(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		abort(); /* a test's program: better none than a wrong one */
	return copy;
}

/* `to` NULL removes the name. */
static void set(struct store *s, struct name **table, const char *name, struct node *to)
{
	struct name **at = place_of(table, name), *e = *at;
	struct node *old = e ? e->to : NULL;

	if (to)
		to->holds++;
	if (!e && to) {
		e = calloc(1, sizeof(*e));
		if (!e)
			abort();
		e->text = copy_of(name);
		e->place = ++s->n_names;
		*at = e;
	}
	if (e)
		e->to = to;
	if (e && !to) {
		*at = e->next;
		free(e->text);
		free(e);
	}
	if (old) {
		old->holds--;
		node_put(s, old);
	}
}

static struct change *note(struct store *s)
{
	struct change *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	*s->changes_end = c;
	s->changes_end = &c->next;
	return c;
}

static void note_part(struct change_part *p, struct node *folder, const char *name, struct node *to)
{
	*p = (struct change_part){ folder, copy_of(name), to };
	folder->holds++;
	if (to)
		to->holds++;
}

int names_add(struct store *s, struct node *folder, const char *name, struct node *to)
{
	if (strlen(name) > LOSSY_NAME_MAX)
		return -ENAMETOOLONG;
	if (names_find(folder, name))
		return -EEXIST;
	set(s, &folder->names, name, to);
	note_part(&note(s)->parts[0], folder, name, to);
	return 0;
}

int names_remove(struct store *s, struct node *folder, const char *name)
{
	if (!names_find(folder, name))
		return -ENOENT;
	note_part(&note(s)->parts[0], folder, name, NULL);
	set(s, &folder->names, name, NULL);
	return 0;
}

int names_move(struct store *s, struct node *from, const char *old, struct node *to,
	       const char *new)
{
	struct node *what = names_find(from, old), *over = names_find(to, new);
	struct change *c;

	if (!what)
		return -ENOENT;
	if (what == over)
		return 0;
	if (over && over->names)
		return -ENOTEMPTY;
	c = note(s);
	note_part(&c->parts[0], from, old, NULL);
	note_part(&c->parts[1], to, new, what);
	set(s, &to->names, new, what);
	set(s, &from->names, old, NULL);
	return 0;
}

int names_found(struct store *s, struct node *folder, const char *name, struct node *to)
{
	set(s, &folder->names, name, to);
	set(s, &folder->durable_names, name, to);
	return 0;
}

/* --- durable ------------------------------------------------------------------------------ */

void names_apply(struct store *s, struct change *c, const struct node *folder)
{
	for (size_t i = 0; i < 2; i++) {
		struct change_part p = c->parts[i];

		if (!p.folder || (folder && p.folder != folder))
			continue;
		c->parts[i] = (struct change_part){ 0 };
		set(s, &p.folder->durable_names, p.name, p.to);
		if (p.to) {
			p.to->holds--;
			node_put(s, p.to);
		}
		p.folder->holds--;
		node_put(s, p.folder);
		free(p.name);
	}
}

int names_sync(struct store *s, struct node *folder)
{
	struct change **at = &s->changes, *c;

	folder->holds++; /* a change may be the last that knows it */
	while ((c = *at)) {
		names_apply(s, c, folder);
		if (c->parts[0].folder || c->parts[1].folder) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		free(c);
	}
	s->changes_end = at;
	folder->holds--;
	return 0;
}
