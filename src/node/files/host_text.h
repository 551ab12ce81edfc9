/* host_text.h - the machine that a sandbox was booted on, as lines of its row.
 *
 * Whoever was restored has the machine that its template's or its snapshot's manifest names. One
 * that booted from its disk has that of the host it booted on, and what is saved of it later can be
 * loaded by the same alone. Pure.
 */
#pragma once

#include "base/bytes.h"
#include "vm/manifest.h"

/* Which QEMU, processor, accelerator and arguments; nothing of the guest. */
void host_copy(struct manifest_facts *to, const struct manifest_facts *from);

/* What node alone wants to know of a sandbox, behind its text, which has no line break:
 *	TEXT [\n ENV [\n VMM_VERSION \n CPU_MODEL \n ACCEL \n ARGUMENTS]]
 * Each may be NULL. *ret is the caller's to free; NULL: there is nothing to keep. */
int host_text_join(const char *text, const char *env, const struct manifest_facts *host, char **ret,
		   struct err *err) NODISCARD;
/* The inverse of host_text_join(); the caller frees each, which may be NULL. ERR_INVALID:
 * host_text_join() does not write such lines. */
int host_text_split(const char *all, char **ret_text, char **ret_env,
		    struct manifest_facts **ret_host, struct err *err) NODISCARD;
