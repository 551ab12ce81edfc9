/* confine_files.h - all that is left of the file system, by Landlock. Part of confine(). */
#pragma once

#include "jail/confine.h"

/* The version of Landlock that now holds, 0 when the kernel has none. This thread only: threads
 * started later inherit it. What is open already stays open. */
int confine_files(const struct confine_path *paths, size_t n, struct err *err) NODISCARD;
