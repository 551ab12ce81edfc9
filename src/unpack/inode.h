/* inode.h - files on the disk, by their number: made, filled, linked and freed. What they are
 * called is not known here. */
#pragma once

#include "unpack/disk.h"

/* A new inode with one link and no contents. */
int inode_new(struct disk *d, const struct attributes *a, uint32_t *ret, struct err *err) NODISCARD;
/* A symlink, whole. `target` has 1 to UNPACK_PATH_MAX bytes, none of them NUL. */
int inode_new_symlink(struct disk *d, const struct attributes *a, struct bytes target,
		      uint32_t *ret, struct err *err) NODISCARD;
/* The root folder, whose number is fixed: EXT2_ROOT_INO. */
int inode_new_root(struct disk *d, const struct attributes *a, struct err *err) NODISCARD;
/* Of a folder that is named again. */
int inode_change(struct disk *d, uint32_t ino, const struct attributes *a,
		 struct err *err) NODISCARD;
int inode_set_xattrs(struct disk *d, uint32_t ino, const struct xattr *x, size_t n,
		     struct err *err) NODISCARD;
int inode_set_links(struct disk *d, uint32_t ino, uint32_t links, struct err *err) NODISCARD;
int inode_link(struct disk *d, uint32_t ino, struct err *err) NODISCARD;   /* one more */
int inode_unlink(struct disk *d, uint32_t ino, struct err *err) NODISCARD; /* freed with the last */

/* The contents of a new inode, in order. One at a time of a disk. */
struct file {
	struct disk *disk;
	uint32_t ino;
	struct ext2_inode inode;
	uint64_t at;     /* where the piece begins: a whole number of blocks */
	size_t held;     /* bytes of the piece */
	uint64_t stored; /* bytes that were given, without holes */
};

/* After inode_set_xattrs(). `size` is what it will have, holes included. */
int file_begin(struct file *f, struct disk *d, uint32_t ino, uint64_t size,
	       struct err *err) NODISCARD;
/* Not before what was written last, not beyond the size. What is left out between is a hole. */
int file_write(struct file *f, struct bytes data, uint64_t offset, struct err *err) NODISCARD;
int file_end(struct file *f, struct err *err) NODISCARD;

int inode_mode(struct disk *d, uint32_t ino, uint16_t *ret, struct err *err) NODISCARD;
/* The beginning of a file, and how many bytes that is. */
int inode_read(struct disk *d, uint32_t ino, void *ret, size_t size, size_t *ret_len,
	       struct err *err) NODISCARD;
