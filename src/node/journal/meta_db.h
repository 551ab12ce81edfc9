/* meta_db.h - what the journal knows of itself: names and values; whether it has ever held
 * anything. Blocks. */
#pragma once

#include "node/journal/journal_db.h"

/* Are there rows of sandboxes or snapshots, and tombstones? */
int journal_db_is_used(struct journal_db *d, bool *ret_rows, bool *ret_ended,
		       struct err *err) NODISCARD;

bool journal_db_fresh(const struct journal_db *d); /* there was no journal before */
/* *ret is "" when there is none of that name. */
int journal_db_get_meta(struct journal_db *d, const char *name, char *ret, size_t size,
			struct err *err) NODISCARD;
int journal_db_put_meta(struct journal_db *d, const char *name, const char *value,
			struct err *err) NODISCARD;
