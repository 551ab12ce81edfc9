/* wipe.h - what nobody may find in memory later is removed from it where it was, not just given up.
 *
 * Three places keep what a program is done with: memory that was freed or moved (wipe_free(), and
 * BUF_SECRET() in bytes.h), the stack below its present depth, and the processor's wide registers,
 * through which strings are copied: the dynamic linker saves all of them to the stack whenever a
 * library calls a function of another for the first time.
 */
#pragma once

#include <stddef.h>

enum { WIPE_STACK_DEPTH = 128 * 1024 }; /* in bytes; more than anything here goes down */

void wipe(void *at, size_t n);
void wipe_free(void *p); /* free(), all that malloc() gave wiped; NULL is fine */

/* The stack below its caller, and the wide registers. From as shallow a place as there is: the
 * frames above the caller's keep what they hold. */
void wipe_stack(void);
