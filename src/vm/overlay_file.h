/* overlay_file.h - the disk of one sandbox: what it writes, on top of its template's disk. */
#pragma once

#include "base/err.h"

/* Make the file `name` in `folder` (both the caller's to choose; existing is ERR_EXISTS): a copy of
 * the empty qcow2 overlay in the template's folder. Returns it opened for reading and writing, for
 * WARDEN_RESTORE; on failure nothing is left. Not synced. Blocks, for a few hundred KiB at most:
 * for a thread that may. */
int overlay_file_make(int template_folder, int folder, const char *name, struct err *err) NODISCARD;
