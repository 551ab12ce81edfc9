/* sandbox_row.h - the row of a sandbox is written, as it is now. */
#pragma once

#include "base/bytes.h"
#include "node/life/sandbox.h"

/* Put its row, as `state`. Failure (-1): on_done will not come. */
int sandbox_note(struct sandbox *s, struct journal_write *w, enum journal_state state,
		 journal_done_fn *on_done, struct err *err) NODISCARD;
int sandbox_note_durable(struct sandbox *s, struct journal_write *w, enum journal_state state,
			 journal_done_fn *on_done, struct err *err) NODISCARD;
/* As gateways are told of it: of one that was made of a build its template, which is what they
 * know; to node it is a copy of a snapshot. */
struct node_sandbox sandbox_told(const struct sandbox *s);
/* The row of one whose VM is gone, as row_file.h has it and with a NUL: paused, without its
 * memory. */
int sandbox_describe_disk(const struct sandbox *s, struct buf *out, struct err *err) NODISCARD;
