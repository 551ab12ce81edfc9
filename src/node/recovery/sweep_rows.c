/* sweep_rows.c - what is saved and lacks its description gets one: rows of earlier versions, and
 * those for which there was no room. What lacks its folder gets that, if it was set aside. */
/* #syscalls: newfstatat renameat2 fsync */
#include "node/recovery/sweep_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "node/node.h"
#include "node/journal/row_file.h"
#include "node/life/requests_paused.h"
#include "node/life/sandbox_row.h"

struct rows_left {
	struct node *node;
	struct rows_look rows;
	size_t at, n_described;
	struct journal_write write;
};

struct lost_save rows_save(const struct sandbox *s)
{
	return (struct lost_save){ s->info.generation, s->pages_crc, s->state_crc };
}

struct lost_save rows_save_snapshot(const struct snapshot *p)
{
	return (struct lost_save){ .number = p->row.created_ns };
}

static bool lacks_snapshot(struct node *n, const struct sandbox *s)
{
	return strcmp(s->base_id, s->info.template_id) != 0 &&
	       !snapshots_by_id(n, s->info.template_id);
}

static int list_needed(struct node *n, struct rows_look *ret, struct err *err)
{
	size_t count = 0;

	for (const struct sandbox *s = n->table.all; s; s = s->next)
		count += lacks_snapshot(n, s);
	if (count == 0)
		return 0;
	ret->needed = calloc(count, sizeof(*ret->needed));
	if (!ret->needed)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "list what is needed");
	for (const struct sandbox *s = n->table.all; s; s = s->next)
		if (lacks_snapshot(n, s))
			memcpy(ret->needed[ret->n_needed++].id, s->info.template_id,
			       sizeof(ret->needed[0].id));
	return 0;
}

bool rows_look_need(const struct rows_look *r, const char *snapshot)
{
	for (size_t i = 0; i < r->n_needed; i++)
		if (strcmp(r->needed[i].id, snapshot) == 0)
			return true;
	return false;
}

int rows_list(struct node *n, struct rows_look *ret, struct err *err)
{
	*ret = (struct rows_look){ .all = calloc(n->table.n + n->snapshots.n + 1,
						 sizeof(*ret->all)) };
	if (!ret->all)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "list what is saved");
	if (list_needed(n, ret, err) < 0)
		return -1;
	for (const struct sandbox *s = n->table.all; s; s = s->next)
		if (requests_rests(s)) {
			struct saved_row *r = &ret->all[ret->n++];

			memcpy(r->id, s->info.id, sizeof(r->id));
			r->save = rows_save(s);
		}
	for (const struct snapshot *p = n->snapshots.all; p; p = p->next) {
		struct saved_row *r = &ret->all[ret->n++];

		r->kind = LOST_SNAPSHOT;
		memcpy(r->id, p->row.id, sizeof(r->id));
		r->save = rows_save_snapshot(p);
	}
	return 0;
}

static bool lacks(int root, const char *id, const char *name)
{
	char path[NODE_ID_MAX + sizeof("/" ROW_DELETED)];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", id, name);
	return fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* A row of what its owner deleted is of an older journal: its folder keeps the mark. */
void rows_look(struct rows_look *r, int sandboxes, int snapshots)
{
	for (size_t i = 0; i < r->n; i++) {
		struct saved_row *x = &r->all[i];
		int root = x->kind == LOST_SANDBOX ? sandboxes : snapshots;

		x->missing = lacks(root, x->id, "");
		x->undescribed = !x->missing && lacks(root, x->id, ROW_FILE) &&
				 lacks(root, x->id, ROW_DELETED);
	}
}

size_t rows_look_missing(const struct rows_look *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->all[i].missing;
	return n;
}

void rows_look_done(struct rows_look *r)
{
	free(r->all);
	free(r->needed);
	*r = (struct rows_look){ 0 };
}

/* --- back --------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	const struct saved_row *x = a, *y = b;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->id, y->id);
}

static struct saved_row *find_missing(const struct rows_look *r, const struct lost_entry *e)
{
	struct saved_row wanted = { .kind = e->kind }, *x;

	memcpy(wanted.id, e->id, sizeof(wanted.id));
	x = bsearch(&wanted, r->all, r->n, sizeof(*r->all), by_id);
	return x && x->missing && lost_is_save(e, &x->save) ? x : NULL;
}

/* False: it is still lost. */
static bool bring_back(struct saved_row *x, int root, int lost, const struct lost_entry *e)
{
	struct err err;

	if (lost_move_back(lost, e, root, &err) < 0) {
		log_error("%s %s has a row again, and lost/%s stays where it is: %s",
			  lost_word(x->kind), x->id, e->name, err.msg);
		return false;
	}
	log_warn("%s %s has a row again: lost/%s is its folder again", lost_word(x->kind), x->id,
		 e->name);
	x->missing = false;
	x->back = true;
	return true;
}

void rows_bring_back(struct rows_look *r, int sandboxes, int snapshots, int lost,
		     struct lost_list *all)
{
	size_t n = 0;

	if (rows_look_missing(r) == 0)
		return;
	qsort(r->all, r->n, sizeof(*r->all), by_id);
	for (size_t i = 0; i < all->n; i++) {
		const struct lost_entry *e = &all->all[i];
		struct saved_row *x = find_missing(r, e);
		int root = e->kind == LOST_SNAPSHOT ? snapshots : sandboxes;

		if (x && bring_back(x, root, lost, e))
			all->bytes -= e->bytes;
		else
			all->all[n++] = *e;
	}
	all->n = n;
}

void rows_are_back(struct node *n, const struct rows_look *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct snapshot *p = r->all[i].back && r->all[i].kind == LOST_SNAPSHOT
					     ? snapshots_by_id(n, r->all[i].id)
					     : NULL;

		if (p)
			p->missing = false;
	}
}

/* --- described ---------------------------------------------------------------------------- */

static void go_on(struct rows_left *l);

static void on_described(struct journal_write *w, const struct err *err)
{
	struct rows_left *l = CONTAINER_OF(w, struct rows_left, write);

	if (err)
		log_error("describe %s: %s", l->rows.all[l->at].id, err->msg);
	else
		l->n_described++;
	l->at++;
	go_on(l);
}

/* False: it is not at rest any more, and needs none. */
static bool describe(struct rows_left *l, const struct saved_row *r)
{
	struct sandbox *s = r->kind == LOST_SANDBOX ? table_find(&l->node->table, r->id) : NULL;
	struct snapshot *p = r->kind == LOST_SNAPSHOT ? snapshots_by_id(l->node, r->id) : NULL;
	struct err err;
	int rc;

	if (s && requests_rests(s)) {
		s->disk_crc = 0; /* a journal of before may say so of one that ran since */
		rc = sandbox_note_durable(s, &l->write, JOURNAL_PAUSED, on_described, &err);
	} else if (p && !p->going) {
		rc = journal_put_snapshot(l->node->journal, &l->write, &p->row, on_described, &err);
	} else {
		return false;
	}
	if (rc == 0)
		return true;
	log_error("describe %s: %s", r->id, err.msg);
	return false;
}

static void go_on(struct rows_left *l)
{
	for (; l->at < l->rows.n; l->at++)
		if (l->rows.all[l->at].undescribed && describe(l, &l->rows.all[l->at]))
			return;
	if (l->n_described > 0)
		log_info("%zu saved sandboxes and snapshots had no description and have one now",
			 l->n_described);
	rows_describe_close(l->node);
}

void rows_describe(struct node *n, struct rows_look *r)
{
	struct rows_left *l = n->sweep.rows ? NULL : calloc(1, sizeof(*l));

	if (!l) /* at the next look */
		return;
	*l = (struct rows_left){ .node = n, .rows = *r };
	*r = (struct rows_look){ 0 };
	n->sweep.rows = l;
	go_on(l);
}

void rows_describe_close(struct node *n)
{
	struct rows_left *l = TAKE(n->sweep.rows);

	if (!l)
		return;
	journal_write_cancel(&l->write);
	rows_look_done(&l->rows);
	free(l);
}
