/* disk.c - what mke2fs does, for one kind of file system. */
/* #syscalls: pread64 pwrite64 lseek fstat newfstatat ftruncate fallocate fcntl fsync
 * getuid geteuid getgid getegid */
#include "unpack/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "unpack/limits.h"

enum {
	BLOCKS_PER_MIB = 256,
	INODE_SIZE = 256,
	BYTES_PER_INODE = 16384,
	GROUPS_PER_FLEX_LOG = 4,
	JOURNAL_BLOCKS = 4096,
	JOURNAL_SMALL_BLOCKS = 1024, /* of a disk below SMALL_MIB */
	SMALL_MIB = 128,
	RESERVED_PERCENT = 1,
	FD_NAME_MAX = 16,
};

/* Always the same, so that one input gives one output. Nothing in a guest mounts by UUID. */
static const uint8_t uuid[16] = "hotcel\x6c\0\x80\0\0\0\0\0\0\1";
static const uint8_t hash_seed[16] = "hotcel\x6c\0\x80\0\0\0\0\0\0\2";

int disk_err(struct err *err, errcode_t rc, const char *what)
{
	if (rc == EXT2_ET_BLOCK_ALLOC_FAIL || rc == EXT2_ET_DIR_NO_SPACE)
		return err_set(err, ERR_NO_SPACE, 0, "%s: the disk is too small for the image",
			       what);
	if (rc == EXT2_ET_INODE_ALLOC_FAIL)
		return err_set(err, ERR_NO_SPACE, 0, "%s: more files than the disk has inodes",
			       what);
	if (rc == ENOSPC || rc == EDQUOT || rc == EFBIG)
		return err_set(err, ERR_NO_SPACE, (int)rc, "%s", what);
	if (rc == EXT2_ET_SHORT_WRITE) /* by a regular file, for want of room */
		return err_set(err, ERR_NO_SPACE, ENOSPC, "%s", what);
	if (rc == EXT2_ET_EA_NO_SPACE)
		return err_set(err, ERR_EXHAUSTED, 0, "%s: no room for its attributes", what);
	if (rc == EXT2_ET_NO_MEMORY || rc == ENOMEM)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "%s", what);
	if (rc > 0 && rc < EXT2_ET_BASE)
		return err_set(err, ERR_INTERNAL, (int)rc, "%s", what);
	return err_set(err, ERR_INTERNAL, 0, "%s: libext2fs says %ld", what, rc - EXT2_ET_BASE);
}

static void choose(struct ext2_super_block *s, uint64_t mib)
{
	uint64_t blocks = mib * BLOCKS_PER_MIB;

	*s = (struct ext2_super_block){
		.s_rev_level = EXT2_DYNAMIC_REV,
		.s_log_block_size = 2,
		.s_log_cluster_size = 2,
		.s_inode_size = INODE_SIZE,
		.s_log_groups_per_flex = GROUPS_PER_FLEX_LOG,
		.s_inodes_count = (uint32_t)(mib * (1024 * 1024 / BYTES_PER_INODE)),
		.s_feature_compat = EXT2_FEATURE_COMPAT_EXT_ATTR |
				    EXT2_FEATURE_COMPAT_RESIZE_INODE |
				    EXT2_FEATURE_COMPAT_DIR_INDEX,
		.s_feature_incompat = EXT2_FEATURE_INCOMPAT_FILETYPE |
				      EXT3_FEATURE_INCOMPAT_EXTENTS | EXT4_FEATURE_INCOMPAT_64BIT |
				      EXT4_FEATURE_INCOMPAT_FLEX_BG,
		.s_feature_ro_compat =
			EXT2_FEATURE_RO_COMPAT_SPARSE_SUPER | EXT2_FEATURE_RO_COMPAT_LARGE_FILE |
			EXT4_FEATURE_RO_COMPAT_HUGE_FILE | EXT4_FEATURE_RO_COMPAT_DIR_NLINK |
			EXT4_FEATURE_RO_COMPAT_EXTRA_ISIZE | EXT4_FEATURE_RO_COMPAT_METADATA_CSUM,
	};
	ext2fs_blocks_count_set(s, blocks);
	ext2fs_r_blocks_count_set(s, blocks * RESERVED_PERCENT / 100);
}

static void describe(ext2_filsys fs)
{
	static const char label[] = "hotcell";
	struct ext2_super_block *s = fs->super;

	fs->now = DISK_TIME;
	s->s_mkfs_time = s->s_lastcheck = s->s_wtime = DISK_TIME;
	memcpy(s->s_uuid, uuid, sizeof(uuid));
	memcpy(s->s_hash_seed, hash_seed, sizeof(hash_seed));
	s->s_checksum_type = EXT2_CRC32C_CHKSUM;
	ext2fs_init_csum_seed(fs);
	s->s_def_hash_version = EXT2_HASH_HALF_MD4;
	s->s_flags |= EXT2_FLAGS_SIGNED_HASH;
	memcpy(s->s_volume_name, label, sizeof(label));
	s->s_errors = EXT2_ERRORS_RO;
	s->s_default_mount_opts = EXT2_DEFM_XATTR_USER | EXT2_DEFM_ACL;
	s->s_max_mnt_count = -1;
	s->s_checkinterval = 0;
}

/* A new file reads as zeros, so the tables are as good as written: no guest starts to do it. */
static void mark_tables_zeroed(ext2_filsys fs)
{
	for (dgrp_t i = 0; i < fs->group_desc_count; i++) {
		ext2fs_bg_flags_set(fs, i, EXT2_BG_INODE_ZEROED);
		ext2fs_group_desc_csum_set(fs, i);
	}
}

/* The first ten inodes are the file system's own, the second of them is the root folder. */
static errcode_t reserve_inodes(ext2_filsys fs)
{
	for (ext2_ino_t i = 1; i < EXT2_FIRST_INODE(fs->super); i++)
		ext2fs_inode_alloc_stats2(fs, i, +1, i == EXT2_ROOT_INO);
	return ext2fs_update_bb_inode(fs, NULL);
}

static errcode_t fill_in(ext2_filsys fs, uint64_t mib)
{
	uint32_t journal = mib < SMALL_MIB ? JOURNAL_SMALL_BLOCKS : JOURNAL_BLOCKS;
	errcode_t rc = ext2fs_allocate_tables(fs);

	if (rc)
		return rc;
	mark_tables_zeroed(fs);
	fs->super->s_overhead_clusters =
		(uint32_t)(ext2fs_blocks_count(fs->super) - ext2fs_free_blocks_count(fs->super)) +
		journal;
	rc = reserve_inodes(fs);
	if (rc == 0)
		rc = ext2fs_create_resize_inode(fs);
	if (rc == 0)
		rc = ext2fs_add_journal_inode2(
			fs, journal, ~0ULL, EXT2_MKJOURNAL_LAZYINIT | EXT2_MKJOURNAL_NO_MNT_CHECK);
	return rc;
}

int disk_make(struct disk *d, int fd, uint64_t mib, struct err *err)
{
	struct ext2_super_block chosen;
	char name[FD_NAME_MAX];
	errcode_t rc;

	*d = (struct disk){ .fd = fd, .piece = malloc(DISK_PIECE) };
	if (!d->piece)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "make a disk");
	if (mib < UNPACK_DISK_MIB_MIN || mib > UNPACK_DISK_MIB_MAX)
		return err_set(err, ERR_INVALID, 0, "a disk of %lu MiB", mib);
	if (ftruncate(fd, (off_t)(mib << 20)) < 0)
		return err_set(err, ERR_INTERNAL, errno, "make a disk");
	choose(&chosen, mib);
	snprintf(name, sizeof(name), "%d", fd);
	rc = ext2fs_initialize(name, EXT2_FLAG_64BITS, &chosen, unixfd_io_manager, &d->fs);
	if (rc)
		return disk_err(err, rc, "make a disk");
	describe(d->fs);
	rc = fill_in(d->fs, mib);
	if (rc)
		return disk_err(err, rc, "make a disk");
	return 0;
}

/* What a later layer removed is not to be found on the disk, and takes no room of the host's. */
static int punch_free(struct disk *d, struct err *err)
{
	blk64_t end = d->end, from = d->fs->super->s_first_data_block, to;

	while (from < end &&
	       ext2fs_find_first_zero_block_bitmap2(d->fs->block_map, from, end - 1, &from) == 0) {
		if (ext2fs_find_first_set_block_bitmap2(d->fs->block_map, from, end - 1, &to) != 0)
			to = end;
		if (fallocate(d->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)(from * DISK_BLOCK), (off_t)((to - from) * DISK_BLOCK)) < 0 &&
		    errno != EOPNOTSUPP)
			return err_set(err, ERR_INTERNAL, errno, "free what is not used");
		from = to;
	}
	return 0;
}

int disk_finish(struct disk *d, struct err *err)
{
	errcode_t rc = ext2fs_flush2(d->fs, EXT2_FLAG_FLUSH_NO_SYNC);

	if (rc)
		return disk_err(err, rc, "write the disk");
	if (punch_free(d, err) < 0)
		return -1;
	rc = ext2fs_close2(d->fs, EXT2_FLAG_FLUSH_NO_SYNC);
	if (rc)
		return disk_err(err, rc, "write the disk");
	d->fs = NULL;
	return 0;
}

void disk_done(struct disk *d)
{
	if (d->fs)
		ext2fs_free(d->fs);
	free(d->piece);
	*d = (struct disk){ .fd = -1 };
}
