/* reserve_db.h - room in the journal's own files for what must be written when the disk is full. */
#pragma once

#include "node/journal/journal_db.h"

/* For journal_db.c. */
int reserve_db_open(struct journal_db *d, struct err *err) NODISCARD;
void reserve_db_close(struct journal_db *d);

/* Makes room again if there is little left. Blocks. */
void journal_db_reserve(struct journal_db *d);
