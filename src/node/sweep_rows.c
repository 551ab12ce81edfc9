/* sweep_rows.c - what is saved and lacks its description gets one: rows of earlier versions, and
 * those for which there was no room. */
/* #syscalls: newfstatat */
#include "node/sweep_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/log.h"
#include "node/node.h"
#include "node/requests.h"
#include "node/row_file.h"

struct rows_left {
	struct node *node;
	struct rows_look rows;
	size_t at, n_described;
	struct journal_write write;
};

int rows_list(struct node *n, struct rows_look *ret, struct err *err)
{
	*ret = (struct rows_look){ .all = calloc(n->table.n + n->snapshots.n + 1,
						 sizeof(*ret->all)) };
	if (!ret->all)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "list what is saved");
	for (const struct sandbox *s = n->table.all; s; s = s->next)
		if (requests_rests(s))
			memcpy(ret->all[ret->n++].id, s->info.id, sizeof(s->info.id));
	for (const struct snapshot *p = n->snapshots.all; p; p = p->next) {
		struct saved_row *r = &ret->all[ret->n++];

		r->kind = LOST_SNAPSHOT;
		memcpy(r->id, p->row.id, sizeof(r->id));
	}
	return 0;
}

void rows_look(struct rows_look *r, int sandboxes, int snapshots)
{
	for (size_t i = 0; i < r->n; i++) {
		struct saved_row *x = &r->all[i];
		int root = x->kind == LOST_SANDBOX ? sandboxes : snapshots;
		char path[NODE_ID_MAX + sizeof("/" ROW_FILE)];
		struct stat st;

		snprintf(path, sizeof(path), "%s/" ROW_FILE, x->id);
		x->missing = fstatat(root, x->id, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
		x->undescribed = !x->missing && fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
				 errno == ENOENT;
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
	*r = (struct rows_look){ 0 };
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

	if (s && requests_rests(s))
		rc = sandbox_note_durable(s, &l->write, JOURNAL_PAUSED, on_described, &err);
	else if (p && !p->going)
		rc = journal_put_snapshot(l->node->journal, &l->write, &p->row, on_described, &err);
	else
		return false;
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
