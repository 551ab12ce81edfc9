/* folder.h - files below a folder, never outside it, never through a symbolic link. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* All paths are relative to `dir` and resolved with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS. */
int folder_open(int dir, const char *path, int flags, mode_t mode, struct err *err) NODISCARD;

/* Make a folder, with the mode exactly as given. Existing is an error. Returns it opened. */
int folder_make(int dir, const char *name, mode_t mode, struct err *err) NODISCARD;

/* Make every missing folder of an absolute path; returns it opened. */
int folder_ensure(const char *path, mode_t mode, struct err *err) NODISCARD;

/* Remove a file or a tree, however deep and whoever made it. Absent is success. */
int folder_remove(int dir, const char *name, struct err *err) NODISCARD;

/* Call `each` with every name in it, "." and ".." left out, until one call returns -1. */
typedef int folder_each_fn(int dir, const char *name, void *context, struct err *err);
int folder_each(int dir, folder_each_fn *each, void *context, struct err *err) NODISCARD;

/* Write a short text into an existing file (cgroup and /proc files). */
int folder_write(int dir, const char *path, const char *text, struct err *err) NODISCARD;

/* Copy data, keeping holes, sharing blocks where the filesystem can. */
int folder_copy(int from, int to, struct err *err) NODISCARD;

/* Names are ours to make: lower-case letters, digits and '-', 1 to 63, not beginning with '-'. */
bool folder_name_ok(const char *name, size_t size);
