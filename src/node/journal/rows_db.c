/* rows_db.c - rows in their order, without a sort in SQLite; one that cannot be read stops nobody.
 *
 * SQLite would sort whole rows, with all of their texts. Here numbers are sorted, and each row is
 * read when its turn has come.
 */
/* libc's qsort() asks how much memory there is. */
/* #syscalls: sysinfo */
#include "node/journal/rows_db.h"

#include <errno.h>

struct place {
	uint64_t at;
	sqlite3_int64 rowid;
	char id[NODE_ID_MAX + 1]; /* or its beginning */
};

struct places {
	struct place *list;
	size_t n, cap;
};

static void places_done(struct places *p)
{
	free(p->list);
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return strcmp(x->id, y->id);
}

/* As much of it as fits. */
static void copy_text(sqlite3_stmt *s, int column, char *ret, size_t size)
{
	const unsigned char *text = sqlite3_column_text(s, column);

	snprintf(ret, size, "%s", text ? (const char *)text : "");
}

static int add_place(struct places *p, sqlite3_stmt *s, struct err *err)
{
	struct place *next;

	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 64;

		next = reallocarray(p->list, cap, sizeof(*next));
		if (!next)
			return err_set(err, ERR_EXHAUSTED, ENOMEM, "journal: the order of rows");
		p->list = next;
		p->cap = cap;
	}
	next = &p->list[p->n++];
	next->rowid = sqlite3_column_int64(s, 0);
	next->at = (uint64_t)sqlite3_column_int64(s, 1);
	copy_text(s, 2, next->id, sizeof(next->id));
	return 0;
}

static int find_places(struct journal_db *d, const char *sql, struct places *ret, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc, result = 0;

	if (journal_db_prepare(d, sql, &s, err) < 0)
		return -1;
	while (result == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW)
		result = add_place(ret, s, err);
	if (result == 0 && rc != SQLITE_DONE)
		result = journal_db_failed(d, "read", err);
	sqlite3_finalize(s);
	return result;
}

static void read_named(sqlite3_stmt *s, const char *name, char *ret, size_t size)
{
	for (int i = 0; i < sqlite3_data_count(s); i++)
		if (strcmp(sqlite3_column_name(s, i), name) == 0)
			copy_text(s, i, ret, size);
}

static void tell_odd(const struct rows_walk *w, const struct place *p, const struct err *why)
{
	struct journal_odd odd = { .why = why->msg };

	memcpy(odd.id, p->id, sizeof(odd.id));
	read_named(w->row, "team", odd.team, sizeof(odd.team));
	read_named(w->row, "template_id", odd.template_id, sizeof(odd.template_id));
	read_named(w->row, "base_id", odd.base_id, sizeof(odd.base_id));
	w->odd(&odd, w->context);
}

static void read_one(struct journal_db *d, struct rows_walk *w, const struct place *p)
{
	struct err err = { 0 };
	int rc;

	(void)sqlite3_bind_int64(w->row, 1, p->rowid);
	rc = sqlite3_step(w->row);
	if (rc == SQLITE_ROW ? w->take(w, &err) < 0
			     : rc != SQLITE_DONE && journal_db_failed(d, "read a row", &err) < 0)
		tell_odd(w, p, &err);
	sqlite3_reset(w->row);
}

int rows_db_each(struct journal_db *d, struct rows_walk *w, struct err *err)
{
	AUTO(places_done) struct places p = { 0 };

	if (find_places(d, w->places, &p, err) < 0)
		return -1;
	if (p.n > 0)
		qsort(p.list, p.n, sizeof(*p.list), by_place);
	for (size_t i = 0; i < p.n; i++)
		read_one(d, w, &p.list[i]);
	return 0;
}
