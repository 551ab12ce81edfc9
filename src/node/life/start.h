/* start.h - from nothing to a machine that lacks an identity only. */
#pragma once

#include "node/life/sandbox.h"

enum { SANDBOX_FIRST_GENERATION = 1 }; /* each pause makes the next */

/* It has what it needs of its files. */
void start_take_slot(struct sandbox *s);
/* Begins one that is nobody's yet. `request`: in logs, of who waits; NULL: nobody does, it is for
 * the pool. NULL: *err. */
struct sandbox *sandbox_begin(struct node *n, struct pool *pool, const char *request,
			      struct err *err) NODISCARD;
/* Of the create's snapshot or template, with its sizes, for that create alone. NULL: *err. */
struct sandbox *sandbox_begin_copy(struct node *n, struct create *c, struct err *err) NODISCARD;
struct sandbox *sandbox_make(struct node *n, struct err *err) NODISCARD; /* in no table yet */
/* CRC-32C of the memory that its own was mapped from; 0: not known, or of zeros. */
uint32_t sandbox_base_crc(const struct sandbox *s);
/* What is to be done with its files. */
void sandbox_files_order(const struct sandbox *s, enum files_verb verb, struct files_order *ret);
