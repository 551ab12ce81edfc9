/* entry.h - one entry of a layer becomes a part of the image, or hides a part of it.
 *
 * Nothing of libarchive is known here: what an entry means does not depend on how it was packed.
 */
#pragma once

#include "unpack/image.h"

enum entry_kind {
	ENTRY_FILE,
	ENTRY_FOLDER,
	ENTRY_SYMLINK,
	ENTRY_HARD_LINK,
	ENTRY_FIFO,
	ENTRY_DEVICE, /* left out, and counted */
};

struct entry {
	enum entry_kind kind;
	struct bytes path;
	struct bytes link;            /* of a symlink or hard link: where to */
	struct attributes attributes; /* mode without the type */
	const struct xattr *xattrs;
	size_t n_xattrs;
};

/* *ret_ino: the inode whose contents come next, of a file; 0 of everything else. */
int entry_apply(struct image *im, const struct entry *e, uint32_t *ret_ino,
		struct err *err) NODISCARD;
