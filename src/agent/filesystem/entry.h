/* entry.h - EntryInfo of filesystem.Filesystem: what there is to say about a file.
 *
 * Type and mode of a symbolic link are those of what it leads to; its size, permissions and owner
 * are its own. Members with the value that proto3 assumes are left out.
 */
#pragma once

#include <sys/stat.h>

#include "agent/filesystem/account_names.h"

enum { ENTRY_PERMISSIONS_MAX = 24, ENTRY_TIME_MAX = 96 };

/* Appends {"name":...}. err->sys is the errno of the look at the file. */
int entry_put(struct buf *out, const char *path, struct account_names *names,
	      struct err *err) NODISCARD;

/* "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx": the way Go writes it. */
void entry_permissions(mode_t mode, char ret[static ENTRY_PERMISSIONS_MAX]);

/* RFC 3339 with 0, 3, 6 or 9 digits of a fraction. False: no year that has four digits. */
bool entry_time(const struct timespec *t, char ret[static ENTRY_TIME_MAX]);
