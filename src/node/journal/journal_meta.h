/* journal_meta.h - what the journal knows of itself, by name; and what else is asked at start. */
#pragma once

#include "node/journal/journal.h"

enum { JOURNAL_FAILURE_MAX = 160 };

bool journal_fresh(struct journal *j); /* there was none before: it was made just now */

/* "" when there is none of that name; blocks (at start only). */
int journal_get_meta(struct journal *j, const char *name, char *ret, size_t size,
		     struct err *err) NODISCARD;
/* On the disk when it returns; blocks (at start only). */
int journal_put_meta(struct journal *j, const char *name, const char *value,
		     struct err *err) NODISCARD;
/* After all that was asked for before; at most NODE_ID_MAX characters each. */
int journal_note_meta(struct journal *j, struct journal_write *w, const char *name,
		      const char *value, journal_done_fn *on_done, struct err *err) NODISCARD;

/* Of the last write that failed for another reason than a full disk, since the journal was opened;
 * "": there was none. */
const char *journal_failure(const struct journal *j);

/* Is there a tombstone? Blocks (at start only). */
bool journal_ended(struct journal *j, const char *id, enum node_reason *ret_reason);
/* Rows of sandboxes and snapshots without base_sums get them, for good: what `of` says of `id`, a
 * template's or a snapshot's; 0: they stay without. Blocks (at start only). */
int journal_bind(struct journal *j, journal_sums_fn *of, void *context, struct err *err) NODISCARD;
