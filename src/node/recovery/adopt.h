/* adopt.h - what the journal says of sandboxes and snapshots that an earlier node had. */
#pragma once

#include "node/life/sandbox.h"

/* All of them; blocks. Failure (-1): the journal cannot be read. A row that makes no sense is no
 * failure: quarantine.h. */
int adopt_journal(struct node *n, struct err *err) NODISCARD;
/* One sandbox. Failure (-1): nothing of it is in the table. */
int sandbox_load(struct node *n, const struct journal_row *row, struct err *err) NODISCARD;
/* May a folder and a VM have this name? */
bool sandbox_id_ok(const char *id);
