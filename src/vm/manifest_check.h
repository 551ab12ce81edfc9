/* manifest_check.h - does a template fit this host? If not, why not.
 *
 * Device state loaded into a machine that differs is undefined behaviour inside the guest, so each
 * difference has a reason of its own, and nothing is loaded on trust.
 */
#pragma once

#include "vm/manifest.h"

enum manifest_reason {
	MANIFEST_OK,
	MANIFEST_FORMAT, /* the manifest cannot be read */
	MANIFEST_VMM_VERSION,
	MANIFEST_CPU_MODEL,
	MANIFEST_ACCEL,
	MANIFEST_ARGUMENTS,
	MANIFEST_KERNEL, /* its version, or its file */
	MANIFEST_AGENT,
	MANIFEST_SIZE,
	MANIFEST_CHECKSUM, /* of any other file */
	MANIFEST_REASONS,
};

/* Against what this host would load it with; a kernel_version or agent_version that is empty and a
 * size of 0 there ask for nothing. ERR_MISMATCH: *ret_reason, and a message with both values. */
int manifest_check(const struct manifest *m, const struct manifest_facts *here,
		   enum manifest_reason *ret_reason, struct err *err) NODISCARD;

/* Against what its files are. */
int manifest_check_files(const struct manifest *m, const struct checksum found[MANIFEST_FILES],
			 enum manifest_reason *ret_reason, struct err *err) NODISCARD;

const char *manifest_reason_name(enum manifest_reason r); /* "cpu_model" */
