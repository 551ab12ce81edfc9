/* bases_db.h - rows written before a row said what its sandbox or snapshot differs from. Blocks. */
#pragma once

#include "node/journal/journal_db.h"

/* See journal_bind(). */
int journal_db_bind(struct journal_db *d, journal_sums_fn *of, void *context,
		    struct err *err) NODISCARD;
