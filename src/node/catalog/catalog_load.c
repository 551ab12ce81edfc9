/* catalog_load.c - templates and builds as the last node left them. */
#include <errno.h>
#include <fcntl.h>

#include "base/folder.h"
#include "base/list.h"
#include "base/clock.h"
#include "base/log.h"
#include "node/build/build_disk.h"
#include "node/catalog/catalog.h"
#include "node/node.h"
#include "node/recovery/adopt.h"

enum { FOLDER_MODE = 0700 };

static const char not_any_more[] = "node was restarted while the template was built";

static void load_tags(struct template *t, const char *text)
{
	struct bytes rest = bytes_str(text ? text : ""), line, tag, build;

	while (bytes_cut(&rest, '\n', &line) && t->tags.n < TEMPLATE_TAGS_MAX) {
		struct template_tag *g = &t->tags.all[t->tags.n];

		if (bytes_cut(&line, ' ', &tag) && bytes_cut(&line, ' ', &build) &&
		    bytes_to_str(tag, g->name, sizeof(g->name)) &&
		    bytes_to_str(build, g->build_id, sizeof(g->build_id)) &&
		    bytes_to_u64(line, &g->created_ns))
			t->tags.n++;
	}
}

static int load_template(const struct journal_template *row, void *context, struct err *err)
{
	struct node *n = context;
	struct template *t;

	if (!sandbox_id_ok(row->id) || !row->team[0] || !row->name[0])
		return err_set(err, ERR_INVALID, 0, "it has no id, team or name");
	t = template_add(n, row);
	if (!t)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "no memory to load it");
	load_tags(t, row->tags);
	return 0;
}

static void on_noted(struct journal_write *w, const struct err *err)
{
	struct build *b = CONTAINER_OF(w, struct build, write);

	if (err)
		log_warn("build %s: not noted that it ended: %s", b->row.id, err->msg);
}

static void end_half(struct build *b)
{
	struct err err;

	b->row.status = BUILD_ERROR;
	b->row.finished_ns = clock_wall_ns();
	free(b->row.reason);
	b->row.reason = strdup(not_any_more);
	if (journal_put_template(b->template->node->journal, &b->write, NULL, &b->row, on_noted,
				 &err) < 0)
		on_noted(&b->write, &err);
}

static int load_build(const struct journal_build *row, void *context, struct err *err)
{
	struct node *n = context;
	struct template *t = catalog_by_id(n, row->template_id);
	struct snapshot *p = snapshots_by_id(n, row->snapshot_id);
	struct build *b;

	if (!t || !sandbox_id_ok(row->id) || strlen(row->id) != BUILD_ID_SIZE - 1) {
		if (p) /* it is not known what it is: nothing of it goes */
			snapshot_hold(p);
		return err_set(err, ERR_INVALID, 0, "it is of no template, or has no id");
	}
	b = build_add(t, row);
	if (!b)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "no memory to load it");
	if (row->status == BUILD_BUILDING)
		end_half(b);
	if (row->status == BUILD_READY && p && !p->build)
		build_is(b, p);
	return 0;
}

/* Sandboxes were made of it before its build was frozen again; or it was not noted that it is what
 * the build has: then nothing uses it, and it goes. */
static void load_old(struct snapshot *p)
{
	struct build *b = p->row.kind == JOURNAL_BUILD && !p->build && p->row.key[0]
				  ? catalog_build_anywhere(p->node, p->row.key)
				  : NULL;

	if (!b || strcmp(b->template->row.team, p->row.team) != 0)
		return;
	p->build = b;
	b->n_old++;
}

static void skip(const struct journal_odd *row, void *context)
{
	(void)context;
	log_error("template or build %s stays in the journal and is not used: %s", row->id,
		  row->why);
}

static int sweep_log(int dir, const char *name, void *context, struct err *err)
{
	struct build *b = catalog_build_anywhere(context, name);
	struct err why;

	(void)err;
	if (b) {
		build_disk_sweep(context, name);
		b->log_bytes = build_log_bytes(dir, name);
	} else if (folder_remove(dir, name, &why) < 0) {
		log_warn("builds/%s: %s", name, why.msg);
	}
	return 0;
}

static int open_folder(const struct node *n, const char *name, struct err *err)
{
	char path[CONFIG_VALUE_MAX + 16];

	snprintf(path, sizeof(path), "%s/%s", n->set[SET_DATA_DIR].text, name);
	return folder_ensure(path, FOLDER_MODE, err);
}

int catalog_open(struct node *n, struct err *err)
{
	n->catalog.builds_dir = -1;
	n->catalog.rows_dir = open_folder(n, "catalog", err);
	if (n->catalog.rows_dir < 0)
		return -1;
	n->catalog.builds_dir = open_folder(n, "builds", err);
	return n->catalog.builds_dir < 0 ? -1 : 0;
}

void catalog_make_folder(int dir, const char *id)
{
	AUTO(auto_close) int made = -1;
	struct err err;

	made = folder_make(dir, id, FOLDER_MODE, &err);
	if (made < 0 && err.sys != EEXIST)
		log_warn("%s cannot be described: %s", id, err.msg);
}

int catalog_load(struct node *n, struct err *err)
{
	if (journal_each_template(n->journal, load_template, skip, n, err) < 0 ||
	    journal_each_build(n->journal, load_build, skip, n, err) < 0)
		return -1;
	list_each(struct snapshot, p, n->snapshots.all)
		load_old(p);
	list_each(struct template, t, n->catalog.all)
		template_settle(
			t); /* snapshots.c removes nothing before all that use it are known */
	return folder_each(n->catalog.builds_dir, sweep_log, n, err);
}
