/* catalog_db.c - the tables of templates and builds. */
#include "node/journal/catalog_db.h"

#include "base/bytes.h"
#include "node/journal/rows_db.h"

#define KIND(size) \
	((size) == sizeof(uint32_t) ? COL_U32 : (size) == sizeof(uint64_t) ? COL_U64 : COL_TEXT)
#define MEMBER(type, m)                                                      \
	{ #m, KIND(sizeof(((struct type *)0)->m)), offsetof(struct type, m), \
	  sizeof(((struct type *)0)->m) }
#define LONG(type, m) { #m, COL_LONG, offsetof(struct type, m), sizeof(((struct type *)0)->m) }

static const struct column template_columns[] = {
#define T(m) MEMBER(journal_template, m)
	T(id),         T(team),       T(namespace), T(name),   T(created_ns),
	T(updated_ns), T(spawned_ns), T(spawns),    T(public), LONG(journal_template, tags),
#undef T
};

static const struct column build_columns[] = {
#define B(m) MEMBER(journal_build, m)
	B(id),
	B(template_id),
	B(snapshot_id),
	B(step),
	B(created_ns),
	B(finished_ns),
	B(status),
	B(vcpus),
	B(memory_mib),
	B(disk_mib),
	B(free_disk_mib),
	B(copied),
	LONG(journal_build, tags),
	LONG(journal_build, reason),
#undef B
};

const struct row_kind template_rows = { "template", template_columns, COUNT(template_columns),
					sizeof(struct journal_template) };
const struct row_kind build_rows = { "build", build_columns, COUNT(build_columns),
				     sizeof(struct journal_build) };

static const char sql_remove_template[] = "DELETE FROM template WHERE id = ?";
static const char sql_remove_builds[] = "DELETE FROM build WHERE template_id = ?";
static const char sql_remove_build[] = "DELETE FROM build WHERE id = ?";

int catalog_db_open(struct journal_db *d, struct err *err)
{
	if (rows_db_prepare_put(d, &template_rows, &d->put_template, err) < 0 ||
	    rows_db_prepare_put(d, &build_rows, &d->put_build, err) < 0 ||
	    journal_db_prepare(d, sql_remove_template, &d->remove_template, err) < 0 ||
	    journal_db_prepare(d, sql_remove_builds, &d->remove_builds, err) < 0)
		return -1;
	return journal_db_prepare(d, sql_remove_build, &d->remove_build, err);
}

void catalog_db_close(struct journal_db *d)
{
	sqlite3_finalize(d->put_template);
	sqlite3_finalize(d->put_build);
	sqlite3_finalize(d->remove_template);
	sqlite3_finalize(d->remove_builds);
	sqlite3_finalize(d->remove_build);
}

int journal_db_put_template(struct journal_db *d, const struct journal_template *row,
			    struct err *err)
{
	rows_db_give(d->put_template, &template_rows, (const char *)row);
	return journal_db_run(d, d->put_template, "put a template", err);
}

int journal_db_put_build(struct journal_db *d, const struct journal_build *row, struct err *err)
{
	rows_db_give(d->put_build, &build_rows, (const char *)row);
	return journal_db_run(d, d->put_build, "put a build", err);
}

int journal_db_remove_template(struct journal_db *d, const char *id, struct err *err)
{
	statement_text(d->remove_builds, 1, id);
	if (journal_db_run(d, d->remove_builds, "remove builds", err) < 0)
		return -1;
	statement_text(d->remove_template, 1, id);
	return journal_db_run(d, d->remove_template, "remove a template", err);
}

int journal_db_remove_build(struct journal_db *d, const char *id, struct err *err)
{
	statement_text(d->remove_build, 1, id);
	return journal_db_run(d, d->remove_build, "remove a build", err);
}

struct catalog_walk {
	struct rows_walk rows;
	journal_each_template_fn *each_template;
	journal_each_build_fn *each_build;
};

static int take_template(struct rows_walk *rows, struct err *err)
{
	struct catalog_walk *w = CONTAINER_OF(rows, struct catalog_walk, rows);
	struct journal_template row;

	if (rows_db_take(rows, (char *)&row, err) < 0)
		return -1;
	return w->each_template(&row, rows->context, err);
}

static int take_build(struct rows_walk *rows, struct err *err)
{
	struct catalog_walk *w = CONTAINER_OF(rows, struct catalog_walk, rows);
	struct journal_build row;

	if (rows_db_take(rows, (char *)&row, err) < 0)
		return -1;
	if (row.status >= BUILD_STATUSES)
		return err_set(err, ERR_INVALID, 0, "status %u is not known", row.status);
	return w->each_build(&row, rows->context, err);
}

int journal_db_each_template(struct journal_db *d, journal_each_template_fn *each,
			     journal_odd_fn *odd, void *context, struct err *err)
{
	struct catalog_walk w = { { &template_rows, "created_ns", take_template, odd, context },
				  .each_template = each };

	return rows_db_each(d, &w.rows, err);
}

int journal_db_each_build(struct journal_db *d, journal_each_build_fn *each, journal_odd_fn *odd,
			  void *context, struct err *err)
{
	struct catalog_walk w = { { &build_rows, "created_ns", take_build, odd, context },
				  .each_build = each };

	return rows_db_each(d, &w.rows, err);
}
