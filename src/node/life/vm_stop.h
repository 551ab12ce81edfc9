/* vm_stop.h - a sandbox's VM goes, and its slot with it: once, and however long it takes. */
#pragma once

#include "node/life/sandbox.h"

enum { VM_STOP_AGAIN_MS = 200 }; /* warden is removing it already, or could not */

/* First: the doors are closed before the slot's number may be used again. A slot that never had a
 * VM is dropped. */
void vm_leave_slot(struct sandbox *s);
/* Uses s->ask and s->timer. on_stopped() runs when the VM is gone; at once if there is none. */
void vm_stop(struct sandbox *s, sandbox_stopped_fn *on_stopped);
