/* rows_db.c - rows in their order, without a sort in SQLite; one that cannot be read stops nobody.
 *
 * SQLite would sort whole rows, with all of their texts. Here numbers are sorted, and each row is
 * read when its turn has come.
 */
/* libc's qsort() asks how much memory there is. */
/* #syscalls: sysinfo */
#include "node/journal/rows_db.h"

#include <errno.h>

#include "base/bytes.h"

enum { SQL_MAX = 2048 };

/* --- one row ------------------------------------------------------------------------------ */

static int put_names(struct buf *sql, const struct row_kind *k, struct err *err)
{
	for (size_t i = 0; i < k->n; i++)
		if (buf_printf(sql, err, "%s%s", i ? ", " : "", k->columns[i].name) < 0)
			return -1;
	return 0;
}

int rows_db_prepare_put(struct journal_db *d, const struct row_kind *k, sqlite3_stmt **ret,
			struct err *err)
{
	AUTO(buf_done) struct buf sql = BUF_MAX(SQL_MAX);

	if (buf_printf(&sql, err, "INSERT OR REPLACE INTO %s (", k->name) < 0 ||
	    put_names(&sql, k, err) < 0 || buf_printf(&sql, err, ") VALUES (?") < 0)
		return -1;
	for (size_t i = 1; i < k->n; i++)
		if (buf_printf(&sql, err, ",?") < 0)
			return -1;
	if (buf_printf(&sql, err, ")%c", '\0') < 0)
		return -1;
	return journal_db_prepare(d, (const char *)sql.ptr, ret, err);
}

void rows_db_give(sqlite3_stmt *s, const struct row_kind *k, const char *row)
{
	for (size_t i = 0; i < k->n; i++) {
		const struct column *c = &k->columns[i];
		const char *text = row + c->at;
		uint64_t number = 0;

		switch (c->kind) {
		case COL_LONG:
			memcpy(&text, row + c->at, sizeof(text));
			statement_text(s, (int)i + 1, text);
			break;
		case COL_TEXT:
			statement_text(s, (int)i + 1, text);
			break;
		case COL_U32:
		case COL_U64:
			memcpy(&number, row + c->at, c->size); /* the low bytes come first */
			statement_number(s, (int)i + 1, number);
		}
	}
}

static int prepare_get(struct journal_db *d, const struct row_kind *k, sqlite3_stmt **ret,
		       struct err *err)
{
	AUTO(buf_done) struct buf sql = BUF_MAX(SQL_MAX);

	if (buf_printf(&sql, err, "SELECT ") < 0 || put_names(&sql, k, err) < 0 ||
	    buf_printf(&sql, err, " FROM %s WHERE rowid = ?%c", k->name, '\0') < 0)
		return -1;
	return journal_db_prepare(d, (const char *)sql.ptr, ret, err);
}

int rows_db_take(const struct rows_walk *w, char *ret, struct err *err)
{
	const struct row_kind *k = w->kind;

	memset(ret, 0, k->size);
	for (size_t i = 0; i < k->n; i++) {
		const struct column *c = &k->columns[i];
		const unsigned char *text;
		uint64_t number;

		switch (c->kind) {
		case COL_LONG:
			text = sqlite3_column_text(w->row, (int)i);
			memcpy(ret + c->at, &text, sizeof(text)); /* only read by who is called */
			break;
		case COL_TEXT:
			if (!journal_db_text(w->row, (int)i, ret + c->at, c->size))
				return err_set(err, ERR_INVALID, 0, "%s is too long", c->name);
			break;
		case COL_U32:
		case COL_U64:
			number = (uint64_t)sqlite3_column_int64(w->row, (int)i);
			memcpy(ret + c->at, &number, c->size);
		}
	}
	return 0;
}

/* --- every row, in its order -------------------------------------------------------------- */

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

static int find_places(struct journal_db *d, const struct rows_walk *w, struct places *ret,
		       struct err *err)
{
	AUTO(statement_done) sqlite3_stmt *s = NULL;
	char sql[128];
	int rc;

	snprintf(sql, sizeof(sql), "SELECT rowid, %s, id FROM %s", w->order, w->kind->name);
	if (journal_db_prepare(d, sql, &s, err) < 0)
		return -1;
	while ((rc = sqlite3_step(s)) == SQLITE_ROW)
		if (add_place(ret, s, err) < 0)
			return -1;
	return rc == SQLITE_DONE ? 0 : journal_db_failed(d, "read", err);
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

	statement_number(w->row, 1, (uint64_t)p->rowid);
	rc = sqlite3_step(w->row);
	if (rc == SQLITE_ROW ? w->take(w, &err) < 0
			     : rc != SQLITE_DONE && journal_db_failed(d, "read a row", &err) < 0)
		tell_odd(w, p, &err);
	sqlite3_reset(w->row);
}

int rows_db_each(struct journal_db *d, struct rows_walk *w, struct err *err)
{
	AUTO(places_done) struct places p = { 0 };

	if (find_places(d, w, &p, err) < 0 || prepare_get(d, w->kind, &w->row, err) < 0)
		return -1;
	if (p.n > 0)
		qsort(p.list, p.n, sizeof(*p.list), by_place);
	for (size_t i = 0; i < p.n; i++)
		read_one(d, w, &p.list[i]);
	sqlite3_finalize(w->row);
	return 0;
}
