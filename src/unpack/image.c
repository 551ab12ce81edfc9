/* image.c - from an empty file to one with all folders written. */
#include "unpack/image.h"

#include "unpack/folders.h"
#include "unpack/inode.h"
#include "unpack/limits.h"

int image_begin(struct image *im, int fd, uint64_t mib, struct err *err)
{
	const struct attributes root = { .mode = LINUX_S_IFDIR | 0755, .seconds = DISK_TIME };

	*im = (struct image){ .disk = { .fd = -1 }, .tell = -1 };
	if (disk_make(&im->disk, fd, mib, err) < 0 || inode_new_root(&im->disk, &root, err) < 0)
		return -1;
	return tree_init(&im->tree, EXT2_ROOT_INO, err);
}

int image_finish(struct image *im, struct err *err)
{
	if (folders_write(&im->disk, im->tree.root, err) < 0)
		return -1;
	return disk_finish(&im->disk, err);
}

void image_done(struct image *im)
{
	tree_done(&im->tree);
	disk_done(&im->disk);
}

int image_spend(struct image *im, uint64_t bytes, struct err *err)
{
	if (bytes > UNPACK_BYTES_MAX - im->spent)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %llu GiB unpacked",
			       UNPACK_BYTES_MAX >> 30);
	im->spent += bytes;
	return 0;
}
