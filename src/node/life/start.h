/* start.h - between the parts that start a sandbox and give it to somebody. */
#pragma once

#include "node/life/sandbox.h"

enum { SANDBOX_FIRST_GENERATION = 1 }; /* each pause makes the next */

/* start.c: it has what it needs of its files. */
void start_take_slot(struct sandbox *s);
/* start.c: begins one that is nobody's yet. NULL: *err. */
struct sandbox *sandbox_begin(struct node *n, bool for_pool, struct err *err) NODISCARD;
/* A copy of the create's snapshot, for that create alone. NULL: *err. */
struct sandbox *sandbox_begin_copy(struct node *n, struct create *c, struct err *err) NODISCARD;
struct sandbox *sandbox_make(struct node *n, struct err *err) NODISCARD; /* in no table yet */
/* end.c: what is to be done with its files. */
void sandbox_files_order(const struct sandbox *s, enum files_verb verb, struct files_order *ret);

/* claim.c: the row of one whose VM is gone, as row_file.h has it and with a NUL: paused, without
 * its memory. */
int sandbox_describe_disk(const struct sandbox *s, struct buf *out, struct err *err) NODISCARD;
/* claim.c: it has taken its identity. */
void sandbox_named(struct sandbox *s);
