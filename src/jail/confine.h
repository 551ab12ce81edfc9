/* confine.h - a daemon gives up what it does not need: user, files, system calls. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum confine_access {
	CONFINE_READ,
	CONFINE_WRITE,
	CONFINE_RUN, /* read, and start as programs */
};
struct confine_path {
	const char *path; /* a folder or file that exists; all below it */
	enum confine_access access;
};

struct confine {
	const char *user; /* name or number to become when started as root; "" stays */
	const struct confine_path *paths; /* all that Landlock leaves of the file system */
	size_t n_paths;
	const char *const *syscalls; /* names, ends with NULL: generated from #syscalls comments.
				      * NULL: no filter yet, see confine_calls.h */
};

/* The first thing a daemon does, before it opens a loop: no_new_privs, no core dumps, `files`
 * descriptors (root may raise the limit; who may not takes what there is) and no io_uring.
 * libuv 1.49 and later make one for every loop, whatever the environment says; the filter that
 * comes later would not let them use it. */
int confine_begin(uint64_t files, struct err *err) NODISCARD;

/* Make a folder of the daemon's own and give it to `user`; does nothing to one that is not root. */
int confine_folder(const char *path, const char *user, struct err *err) NODISCARD;

/* The number of such a user. ERR_NOT_FOUND: there is none; "" is none. */
int confine_uid(const char *user, uid_t *ret, struct err *err) NODISCARD;

/* The first part of confine() alone, in two: for who starts programs that give up the rest
 * themselves. The files that names of users are in may be out of sight before the second. */
struct credentials;
int confine_who(const char *user, struct credentials *ret, struct err *err) NODISCARD;
int confine_become(const struct credentials *who, struct err *err) NODISCARD;

/* User (with its group, no supplementary ones), no_new_privs, no capabilities, not dumpable,
 * Landlock where the kernel has it (logged when not), then the filter: anything else fails with
 * EPERM and is logged by the kernel's audit. Call it when everything privileged is open, before any
 * outside input. */
int confine(const struct confine *c, struct err *err) NODISCARD;
