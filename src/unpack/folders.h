/* folders.h - the blocks of folders, written once, when all that is in them is known. */
#pragma once

#include "unpack/tree.h"

/* `n` and all folders below it. */
int folders_write(struct disk *d, const struct node *n, struct err *err) NODISCARD;
