/* park.h - a sandbox that is paused in its row has no VM for long. */
#pragma once

#include "node/life/sandbox.h"

/* Its row says paused; whatever VM it has is removed, then it is PAUSED. */
void park(struct sandbox *s);
/* The same after a restart, when there may be thousands and none has a VM: warden is asked for a
 * list before it is asked to remove any. */
void park_loaded(struct sandbox *s);
void park_looked(struct sandbox *s, bool has_vm); /* fine of any other sandbox */
