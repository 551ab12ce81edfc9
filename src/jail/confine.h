/* confine.h - a daemon gives up what it does not need: user, files, system calls. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum confine_access { CONFINE_READ, CONFINE_WRITE };
struct confine_path {
	const char *path; /* a folder or file that exists; all below it */
	enum confine_access access;
};

struct confine {
	const char *user; /* name or number to become when started as root; "" stays */
	const struct confine_path *paths; /* all that Landlock leaves of the file system */
	size_t n_paths;
	const char *const *syscalls; /* names, ends with NULL: generated from #syscalls comments */
};

/* User (with its group, no supplementary ones), no_new_privs, no capabilities, Landlock where the
 * kernel has it (logged when not), then the filter: anything else fails with EPERM and is logged
 * by the kernel's audit. Call it when everything privileged is open, before any outside input. */
int confine(const struct confine *c, struct err *err) NODISCARD;
