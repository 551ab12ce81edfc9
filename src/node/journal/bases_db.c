/* bases_db.c - rows written before a row said what its sandbox or snapshot differs from. */
#include "node/journal/bases_db.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "node/journal/statements_db.h"

enum { BASES_MAX = 1024 }; /* bound at one start; the others at the next */

struct base { /* what rows without sums were made of */
	char id[NODE_ID_MAX + 1];
	bool snapshot;
};

/* A snapshot's own folder says it; a sandbox's is said by what it was made of, which is a snapshot
 * where base_id names a template besides. */
static const char sql_bases[] =
	"SELECT template_id, base_id <> '' FROM sandbox WHERE base_sums = 0 AND template_id <> ''"
	" UNION SELECT id, 1 FROM snapshot WHERE base_sums = 0 LIMIT ?";
static const char *const sql_bind[] = {
	"UPDATE sandbox SET base_sums = ?1 WHERE base_sums = 0 AND template_id = ?2"
	" AND (base_id <> '') = ?3",
	"UPDATE snapshot SET base_sums = ?1 WHERE base_sums = 0 AND id = ?2 AND ?3 = 1",
};

static int list(struct journal_db *d, struct base *ret, size_t *ret_n, struct err *err)
{
	AUTO(statement_done) sqlite3_stmt *s = NULL;
	int rc = SQLITE_DONE;

	*ret_n = 0;
	if (journal_db_prepare(d, sql_bases, &s, err) < 0)
		return -1;
	statement_number(s, 1, BASES_MAX);
	while (*ret_n < BASES_MAX && (rc = sqlite3_step(s)) == SQLITE_ROW) {
		struct base *b = &ret[*ret_n];

		b->snapshot = sqlite3_column_int(s, 1);
		*ret_n += journal_db_text(s, 0, b->id, sizeof(b->id));
	}
	if (rc != SQLITE_DONE && rc != SQLITE_ROW)
		return journal_db_failed(d, "find rows without sums", err);
	return 0;
}

static int bind_rows(struct journal_db *d, const struct base *b, uint64_t sums, struct err *err)
{
	for (size_t i = 0; i < COUNT(sql_bind); i++) {
		AUTO(statement_done) sqlite3_stmt *s = NULL;

		if (journal_db_prepare(d, sql_bind[i], &s, err) < 0)
			return -1;
		statement_number(s, 1, sums);
		statement_text(s, 2, b->id);
		statement_number(s, 3, b->snapshot);
		if (journal_db_run(d, s, "bind rows to their template", err) < 0)
			return -1;
	}
	return 0;
}

int journal_db_bind(struct journal_db *d, journal_sums_fn *of, void *context, struct err *err)
{
	AUTO(auto_free) struct base *all = calloc(BASES_MAX, sizeof(*all));
	size_t n = 0;
	int rc = 0;

	if (!all)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "rows without sums");
	if (list(d, all, &n, err) < 0)
		return -1;
	if (n == 0)
		return 0;
	if (journal_db_begin(d, true, err) < 0)
		return -1;
	for (size_t i = 0; i < n && rc == 0; i++) {
		uint64_t sums = of(all[i].id, all[i].snapshot, context);

		rc = sums ? bind_rows(d, &all[i], sums, err) : 0;
	}
	return journal_db_end(d, rc, err);
}
