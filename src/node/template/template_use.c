/* template_use.c - what is on the disk is looked at now and then; who uses it is known here. */
/* #syscalls: openat openat2 close */
#include "node/template/template_use.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/folder.h"
#include "base/log.h"
#include "node/files/disk_use.h"
#include "node/node.h"

static struct template_seen *find(const struct node *n, const char *id)
{
	struct template_seen *t = n->template_use.all;

	while (t && strcmp(t->id, id) != 0)
		t = t->next;
	return t;
}

static void measure(struct template_seen *t, int dir)
{
	struct disk_use use = { 0 };
	struct err err;
	AUTO(auto_close) int folder = folder_open(dir, t->id, O_RDONLY | O_DIRECTORY, 0, &err);

	if (folder >= 0)
		disk_use_of(folder, &use);
	t->bytes = use.own + use.shared;
}

/* Its files never change: they are measured once. */
struct template_seen *template_see(struct node *n, int dir, const char *id)
{
	struct template_use *u = &n->template_use;
	struct template_seen *t = find(n, id);

	if (!t && u->n < TEMPLATES_SEEN_MAX && folder_name_ok(id, sizeof(t->id)))
		t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	if (!t->id[0]) {
		snprintf(t->id, sizeof(t->id), "%s", id);
		t->used_ms = loop_now_ms(n->loop);
		measure(t, dir);
		t->next = u->all;
		u->all = t;
		u->n++;
	}
	t->there = true;
	return t;
}

static int see(int dir, const char *name, void *context, struct err *err)
{
	(void)err;
	(void)template_see(context, dir, name);
	return 0;
}

static void forget_gone(struct template_use *u)
{
	for (struct template_seen **at = &u->all, *t; (t = *at);) {
		if (t->there) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		u->n--;
		free(t);
	}
}

static bool see_all(struct node *n)
{
	struct err err;
	AUTO(auto_close) int dir = base_open_folder(n, ".", &err);

	if (dir < 0)
		return false;
	for (struct template_seen *t = n->template_use.all; t; t = t->next)
		t->there = false;
	if (folder_each(dir, see, n, &err) < 0)
		return false;
	forget_gone(&n->template_use);
	return true;
}

/* --- who has it ----------------------------------------------------------------------------- */

static void used(struct node *n, const char *id)
{
	struct template_seen *t = find(n, id);

	if (t)
		t->used_ms = loop_now_ms(n->loop);
}

/* Most have the same: each is looked for once in a row. */
static void note_used(struct node *n)
{
	const char *last = n->base.id;

	for (const struct sandbox *s = n->table.all; s; s = s->next) {
		if (s->state == SANDBOX_PAUSED || strcmp(s->base_id, last) == 0)
			continue;
		last = s->base_id;
		used(n, last);
	}
	for (const struct create *c = n->creates.all; c; c = c->all_next)
		used(n, c->ground);
	if (n->grounds.build)
		used(n, n->grounds.id);
}

/* And again after a while: a VM may come and go between two looks. */
static void cool(struct node *n, struct template_seen *t)
{
	struct files_order o = { .verb = FILES_BASE_COOL };
	struct err err;

	t->used_ms = loop_now_ms(n->loop);
	memcpy(o.id, t->id, sizeof(o.id));
	memcpy(o.template_id, t->id, sizeof(o.template_id));
	if (files_ask(n->files, NULL, &o, NULL, &err) < 0)
		log_debug("template %s stays in the page cache: %s", t->id, err.msg);
}

static void cool_unused(struct node *n)
{
	uint64_t now = loop_now_ms(n->loop);
	uint64_t after = n->set[SET_POOL_UNUSED_S].number * 1000;
	size_t left = TEMPLATES_COOL_MAX;

	for (struct template_seen *t = n->template_use.all; t && left > 0; t = t->next) {
		if (now - t->used_ms < after || strcmp(t->id, n->base.id) == 0)
			continue;
		cool(n, t);
		left--;
	}
}

void template_use_look(struct node *n)
{
	if (!see_all(n))
		return;
	note_used(n);
	cool_unused(n);
	pools_cool_unused(n);
	grounds_soon(n); /* one may have been spare for long enough */
}

static void on_look(struct timer *t)
{
	template_use_look(CONTAINER_OF(t, struct node, template_use.look));
}

void template_use_open(struct node *n)
{
	uint64_t ms = n->set[SET_POOL_UNUSED_S].number * 1000 / 4;

	timer_init(&n->template_use.look, n->loop, on_look);
	timer_repeat(&n->template_use.look,
		     ms > TEMPLATES_LOOK_MAX_MS ? TEMPLATES_LOOK_MAX_MS : (ms ? ms : 1000));
}

void template_use_close(struct node *n)
{
	timer_stop(&n->template_use.look);
	for (struct template_seen *t = n->template_use.all; t; t = t->next)
		t->there = false;
	forget_gone(&n->template_use);
}

int template_use_describe(const struct node *n, json_t *status)
{
	json_int_t grounds = 0, spare = 0, bytes = 0;

	for (const struct template_seen *t = n->template_use.all; t; t = t->next) {
		if (!ground_is(t->id))
			continue;
		grounds++;
		spare += t->spare_ms > 0;
		bytes += (json_int_t)t->bytes;
	}
	return json_object_set_new(status, "grounds", json_integer(grounds)) |
	       json_object_set_new(status, "groundsSpare", json_integer(spare)) |
	       json_object_set_new(status, "groundsBytes", json_integer(bytes));
}
