/* row_file.h - a row of the journal as a file, beside what it describes.
 *
 *	data_dir/sandboxes/ID/row      while it is paused
 *	data_dir/snapshots/ID/row      as long as it is there
 *	.../ID/deleted                 its owner wanted it gone: nobody brings it back
 *
 * The journal writes it with the row itself, so that a journal can be made again from these files.
 * They hold tokens: 0600. Text, one entry a line, the length first: a value may be anything.
 *
 *	hotcell-row 1 sandbox
 *	id 22 ia0123456789abcdefghij
 *	started_ns 19 1790000000000000000
 *	...
 *	crc32c 0a1b2c3d
 *
 * Entries that are not known are passed over, those that are missing are empty: columns come and
 * go. A file is believed when its sum is right and its name is that of its folder.
 */
#pragma once

#include "base/bytes.h"
#include "node/journal/journal_catalog.h"
#include "node/journal/journal_snapshots.h"

#define ROW_FILE    "row"
#define ROW_DELETED "deleted"

enum {
	ROW_FILE_VERSION = 1,
	ROW_FILE_MAX = 512 * 1024,
	ROW_TEXT_MAX = 256 * 1024, /* of one value */
};

/* Appended to `out`, which should be secret. */
int row_put(const struct journal_row *row, struct buf *out, struct err *err) NODISCARD;
int row_put_snapshot(const struct journal_snapshot *row, struct buf *out,
		     struct err *err) NODISCARD;

/* Texts are the row's own: row_done(). ERR_MISMATCH: written by a later version. On failure there
 * is nothing to be done with. */
int row_get(struct bytes in, struct journal_row *ret, struct err *err) NODISCARD;
int row_get_snapshot(struct bytes in, struct journal_snapshot *ret, struct err *err) NODISCARD;
int row_get_template(struct bytes in, struct journal_template *ret, struct err *err) NODISCARD;
int row_get_build(struct bytes in, struct journal_build *ret, struct err *err) NODISCARD;
void row_done(struct journal_row *row);
void row_done_snapshot(struct journal_snapshot *row);
void row_done_template(struct journal_template *row);
void row_done_build(struct journal_build *row);

/* --- on disk; all of these block ---------------------------------------------------------- */

/* Of folder `id` in `root`: written and synced, and no longer to be deleted. Without a folder there
 * is nothing to describe, which is fine. */
int row_file_write(int root, const char *id, struct bytes text, struct err *err) NODISCARD;
/* Gone, for good when it returns. No folder, or no file, is fine. `deleted`: leaves the mark. */
int row_file_drop(int root, const char *id, bool deleted, struct err *err) NODISCARD;
int row_file_read(int folder, struct buf *ret, struct err *err) NODISCARD; /* ERR_NOT_FOUND: none */
bool row_file_is_deleted(int folder);
/* Is the file `name` in a folder of what is saved? 1, with its size, which may be NULL; 0: nothing
 * is; -1: it cannot be told now, or is no file. */
int row_has_file(int folder, const char *name, uint64_t *ret_size, struct err *err) NODISCARD;

/* Did somebody want it gone? What ended for any other reason may have been paused since its row
 * was written: a journal of before. Then its folder knows better. */
bool row_end_was_wished(enum node_reason why);
/* As its row is about to be written, durable: paused, it is described, unless a later pause of it
 * is; waking, it no longer is; to be killed because somebody wanted it, it is marked. */
int row_file_keep(int root, const struct journal_row *row, struct err *err) NODISCARD;
int row_file_keep_snapshot(int root, const struct journal_snapshot *row, struct err *err) NODISCARD;
int row_file_keep_template(int root, const struct journal_template *row, struct err *err) NODISCARD;
/* One that is not ready is not described: nothing came of it. */
int row_file_keep_build(int root, const struct journal_build *row, struct err *err) NODISCARD;
