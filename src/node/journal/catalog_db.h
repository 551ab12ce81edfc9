/* catalog_db.h - the tables of templates and builds. Blocks. */
#pragma once

#include "node/journal/journal_catalog.h"
#include "node/journal/journal_db.h"

/* For journal_db.c. */
int catalog_db_open(struct journal_db *d, struct err *err) NODISCARD;
void catalog_db_close(struct journal_db *d);

extern const struct row_kind template_rows, build_rows; /* struct journal_template, _build */
int journal_db_put_template(struct journal_db *d, const struct journal_template *row,
			    struct err *err) NODISCARD;
int journal_db_put_build(struct journal_db *d, const struct journal_build *row,
			 struct err *err) NODISCARD;
int journal_db_remove_template(struct journal_db *d, const char *id, struct err *err) NODISCARD;
int journal_db_remove_build(struct journal_db *d, const char *id, struct err *err) NODISCARD;
int journal_db_each_template(struct journal_db *d, journal_each_template_fn *each,
			     journal_odd_fn *odd, void *context, struct err *err) NODISCARD;
int journal_db_each_build(struct journal_db *d, journal_each_build_fn *each, journal_odd_fn *odd,
			  void *context, struct err *err) NODISCARD;
