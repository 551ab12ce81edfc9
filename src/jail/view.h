/* view.h - all a VM's process sees of the host's files: the VMM, its libraries and its firmware.
 *
 * Built once, as a tree of read-only bind mounts on a tmpfs, in warden's own mount namespace (so
 * it is gone when warden is). Each VM gets a clone of that tree as its root, with its own folder
 * at /vm, the guest's memory file at /memory and the kernel at /kernel.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

enum { VIEW_FILES_MAX = 192, VIEW_PATH_MAX = 256 };

struct view_file {
	char from[VIEW_PATH_MAX]; /* on the host */
	char to[VIEW_PATH_MAX];   /* as the VM's process sees it */
};

struct view {
	size_t n;
	struct view_file files[VIEW_FILES_MAX];
};

/* What a VM's process finds under these names. */
#define VIEW_OWN      "/vm"
#define VIEW_MEMORY   "/memory"
#define VIEW_KERNEL   "/kernel"
#define VIEW_FIRMWARE "/firmware"

/* List the VMM at `path`, the libraries its loader resolves, and its firmware. */
int view_list(struct view *ret, const char *path, const char *firmware_dir,
	      struct err *err) NODISCARD;

/* Enter a private mount namespace and build the tree at `at`. */
int view_build(const struct view *v, const char *at, struct err *err) NODISCARD;

/* What one VM sees besides the tree: mounts that hang nowhere yet. */
struct view_cell {
	int own;    /* its folder, writable */
	int memory; /* the guest's memory file */
	int kernel;
};

/* What another process opened hangs in a mount of its namespace, and only one of ours can be
 * cloned: find the file again by its name here, and see that it is the same. ERR_INVALID: it is
 * not. Who opened it may change what the name leads to meanwhile: no link is followed, and what is
 * returned is only a place (O_PATH), which opens nothing. */
int view_open_again(int fd, struct err *err) NODISCARD;

/* A mount of the file or folder `fd`, without programs, devices or set-uid, attached to nothing. */
int view_detach(int fd, bool writable, struct err *err) NODISCARD;

/* In a VM's own mount namespace: make a clone of the tree the root of all it sees. */
int view_enter(const char *at, const struct view_cell *cell, struct err *err) NODISCARD;
