/* inode.c - inodes by libext2fs, their data in large pieces: a block at a time would be slow. */
#include "unpack/inode.h"

#include <ext2fs/ext3_extents.h>

#include "unpack/limits.h"

enum { EXTRA_SIZE = 32, FAST_SYMLINK_MAX = 59, EXTRA_EPOCH_BITS = 2, EXTENT_MAX = 32768 };

/* What 34 bits of seconds can tell; 1901 to 2446. */
#define SECONDS_MIN (-0x80000000ll)
#define SECONDS_MAX 0x37fffffffll

static uint32_t extra_time(int64_t seconds, uint32_t nanoseconds)
{
	uint64_t epochs = (uint64_t)(seconds - (int32_t)(uint32_t)seconds) >> 32;

	return (uint32_t)(epochs & 3) | nanoseconds << EXTRA_EPOCH_BITS;
}

static void describe(struct ext2_inode_large *in, const struct attributes *a)
{
	int64_t s = a->seconds < SECONDS_MIN   ? SECONDS_MIN
		    : a->seconds > SECONDS_MAX ? SECONDS_MAX
					       : a->seconds;
	uint32_t extra = extra_time(s, a->nanoseconds);

	in->i_mode = a->mode;
	in->i_uid = (uint16_t)a->uid;
	in->i_gid = (uint16_t)a->gid;
	in->i_uid_high = (uint16_t)(a->uid >> 16);
	in->i_gid_high = (uint16_t)(a->gid >> 16);
	in->i_extra_isize = EXTRA_SIZE;
	in->i_atime = in->i_ctime = in->i_mtime = in->i_crtime = (uint32_t)s;
	in->i_atime_extra = in->i_ctime_extra = in->i_mtime_extra = in->i_crtime_extra = extra;
}

/* The root of a tree of extents without any, where the numbers of blocks used to be. */
static void begin_extents(struct ext2_inode_large *in)
{
	const struct ext3_extent_header none = {
		.eh_magic = EXT3_EXT_MAGIC,
		.eh_max = (sizeof(in->i_block) - sizeof(none)) / sizeof(struct ext3_extent),
	};

	memcpy(in->i_block, &none, sizeof(none));
	in->i_flags |= EXT4_EXTENTS_FL;
}

static errcode_t write_large(struct disk *d, uint32_t ino, struct ext2_inode_large *in)
{
	return ext2fs_write_inode_full(d->fs, ino, (struct ext2_inode *)in, sizeof(*in));
}

static errcode_t make(struct disk *d, struct ext2_inode_large *in, uint32_t *ret)
{
	ext2_ino_t ino;
	errcode_t rc = ext2fs_new_inode(d->fs, 0, in->i_mode, NULL, &ino);

	if (rc)
		return rc;
	ext2fs_inode_alloc_stats2(d->fs, ino, +1, LINUX_S_ISDIR(in->i_mode));
	in->i_links_count = 1;
	*ret = ino;
	return write_large(d, ino, in);
}

int inode_new(struct disk *d, const struct attributes *a, uint32_t *ret, struct err *err)
{
	struct ext2_inode_large in = { 0 };
	errcode_t rc;

	describe(&in, a);
	if (LINUX_S_ISREG(a->mode) || LINUX_S_ISDIR(a->mode))
		begin_extents(&in);
	rc = make(d, &in, ret);
	return rc ? disk_err(err, rc, "make a file") : 0;
}

int inode_new_root(struct disk *d, const struct attributes *a, struct err *err)
{
	struct ext2_inode_large in = { .i_links_count = 2 };
	errcode_t rc;

	describe(&in, a);
	begin_extents(&in);
	rc = write_large(d, EXT2_ROOT_INO, &in);
	return rc ? disk_err(err, rc, "make the root folder") : 0;
}

int inode_new_symlink(struct disk *d, const struct attributes *a, struct bytes target,
		      uint32_t *ret, struct err *err)
{
	struct ext2_inode_large in = { 0 };
	struct file f;
	errcode_t rc;

	describe(&in, a);
	in.i_size = (uint32_t)target.len;
	if (target.len <= FAST_SYMLINK_MAX)
		memcpy(in.i_block, target.ptr, target.len);
	else
		begin_extents(&in);
	rc = make(d, &in, ret);
	if (rc)
		return disk_err(err, rc, "make a symlink");
	if (target.len <= FAST_SYMLINK_MAX)
		return 0;
	if (file_begin(&f, d, *ret, target.len, err) < 0 || file_write(&f, target, 0, err) < 0)
		return -1;
	return file_end(&f, err);
}

int inode_change(struct disk *d, uint32_t ino, const struct attributes *a, struct err *err)
{
	struct ext2_inode_large in;
	errcode_t rc = ext2fs_read_inode_full(d->fs, ino, (struct ext2_inode *)&in, sizeof(in));

	if (rc)
		return disk_err(err, rc, "read an inode");
	describe(&in, a);
	rc = write_large(d, ino, &in);
	return rc ? disk_err(err, rc, "change an inode") : 0;
}

int inode_set_xattrs(struct disk *d, uint32_t ino, const struct xattr *x, size_t n, struct err *err)
{
	struct ext2_xattr_handle *h;
	errcode_t rc;

	if (n == 0)
		return 0;
	rc = ext2fs_xattrs_open(d->fs, ino, &h);
	if (rc)
		return disk_err(err, rc, "read attributes");
	rc = ext2fs_xattrs_read(h);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = ext2fs_xattr_set(h, x[i].name, x[i].value.ptr, x[i].value.len);
	(void)ext2fs_xattrs_close(&h);
	return rc ? disk_err(err, rc, "set attributes") : 0;
}

int inode_set_links(struct disk *d, uint32_t ino, uint32_t links, struct err *err)
{
	struct ext2_inode in;
	errcode_t rc = ext2fs_read_inode(d->fs, ino, &in);

	in.i_links_count = (uint16_t)links;
	if (rc == 0)
		rc = ext2fs_write_inode(d->fs, ino, &in);
	return rc ? disk_err(err, rc, "count links") : 0;
}

int inode_link(struct disk *d, uint32_t ino, struct err *err)
{
	struct ext2_inode in;
	errcode_t rc = ext2fs_read_inode(d->fs, ino, &in);

	if (rc)
		return disk_err(err, rc, "read an inode");
	if (in.i_links_count >= UNPACK_HARD_LINKS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d hard links to one file",
			       UNPACK_HARD_LINKS_MAX);
	in.i_links_count++;
	rc = ext2fs_write_inode(d->fs, ino, &in);
	return rc ? disk_err(err, rc, "make a hard link") : 0;
}

static errcode_t free_inode(struct disk *d, uint32_t ino, struct ext2_inode *in)
{
	struct ext2_inode_large none = { 0 };
	bool folder = LINUX_S_ISDIR(in->i_mode);
	errcode_t rc = 0;

	if (in->i_flags & EXT4_EXTENTS_FL)
		rc = ext2fs_punch(d->fs, ino, in, NULL, 0, ~0ULL);
	if (rc == 0 && ext2fs_file_acl_block(d->fs, in) != 0)
		rc = ext2fs_free_ext_attr(d->fs, ino, NULL);
	if (rc == 0)
		rc = write_large(d, ino, &none);
	ext2fs_inode_alloc_stats2(d->fs, ino, -1, folder);
	return rc;
}

int inode_unlink(struct disk *d, uint32_t ino, struct err *err)
{
	struct ext2_inode in;
	errcode_t rc = ext2fs_read_inode(d->fs, ino, &in);

	if (rc)
		return disk_err(err, rc, "read an inode");
	if (in.i_links_count > 1) {
		in.i_links_count--;
		rc = ext2fs_write_inode(d->fs, ino, &in);
	} else {
		rc = free_inode(d, ino, &in);
	}
	return rc ? disk_err(err, rc, "remove a file") : 0;
}

int file_begin(struct file *f, struct disk *d, uint32_t ino, uint64_t size, struct err *err)
{
	errcode_t rc;

	*f = (struct file){ .disk = d, .ino = ino };
	rc = ext2fs_read_inode(d->fs, ino, &f->inode);
	if (rc == 0)
		rc = ext2fs_inode_size_set(d->fs, &f->inode, (ext2_off64_t)size);
	return rc ? disk_err(err, rc, "begin a file") : 0;
}

/* Free blocks behind each other, at most `want`: from where the last ones ended, then from the
 * beginning. The disk's last block stays free: ext2fs_punch() of 1.47 does not take a file that
 * ends with it. */
static errcode_t find_run(struct disk *d, blk64_t want, blk64_t *ret, blk64_t *ret_len)
{
	blk64_t last = ext2fs_blocks_count(d->fs->super) - 2, end, used;
	ext2fs_block_bitmap map = d->fs->block_map;

	if (d->goal > last || ext2fs_find_first_zero_block_bitmap2(map, d->goal, last, ret) != 0) {
		d->goal = d->fs->super->s_first_data_block;
		if (ext2fs_find_first_zero_block_bitmap2(map, d->goal, last, ret) != 0)
			return EXT2_ET_BLOCK_ALLOC_FAIL;
	}
	end = want <= last - *ret ? *ret + want - 1 : last;
	if (ext2fs_find_first_set_block_bitmap2(map, *ret, end, &used) != 0)
		used = end + 1;
	*ret_len = used - *ret;
	return 0;
}

/* Behind all the file has: as a part of its last extent, or as one of its own. */
static errcode_t append_extent(struct file *f, ext2_extent_handle_t h,
			       const struct ext2fs_extent *added)
{
	struct ext2fs_extent last;
	errcode_t rc = ext2fs_extent_goto(h, added->e_lblk);

	if (rc != EXT2_ET_EXTENT_NOT_FOUND)
		return rc ? rc : EXT2_ET_INVALID_ARGUMENT;
	rc = ext2fs_extent_get(h, EXT2_EXTENT_CURRENT, &last);
	if (rc == 0 && last.e_lblk + last.e_len == added->e_lblk &&
	    last.e_pblk + last.e_len == added->e_pblk && last.e_len + added->e_len <= EXTENT_MAX) {
		last.e_len += added->e_len;
		rc = ext2fs_extent_replace(h, 0, &last);
	} else if (rc == 0 || rc == EXT2_ET_NO_CURRENT_NODE) {
		/* the first one of a file has nothing that it could be behind */
		rc = ext2fs_extent_insert(h, rc ? 0 : EXT2_EXTENT_INSERT_AFTER,
					  (struct ext2fs_extent[]){ *added });
		if (rc == 0)
			rc = ext2fs_extent_fix_parents(h);
	}
	return rc ? rc : ext2fs_iblk_add_blocks(f->disk->fs, &f->inode, added->e_len);
}

/* Some blocks of the file, at least one, where there is room; the data goes there at once. */
static errcode_t write_run(struct file *f, blk64_t block, const uint8_t *data, blk64_t *n)
{
	struct ext2fs_extent added = { .e_lblk = block };
	ext2_filsys fs = f->disk->fs;
	ext2_extent_handle_t h;
	errcode_t rc = find_run(f->disk, *n, &added.e_pblk, n);

	if (rc)
		return rc;
	added.e_len = (uint32_t)*n;
	rc = ext2fs_extent_open2(fs, f->ino, &f->inode, &h);
	if (rc)
		return rc;
	/* taken before blocks of the tree itself are looked for */
	ext2fs_block_alloc_stats_range(fs, added.e_pblk, (blk_t)*n, +1);
	rc = append_extent(f, h, &added);
	ext2fs_extent_free(h);
	if (rc)
		return rc;
	f->disk->goal = added.e_pblk + *n;
	if (f->disk->end < f->disk->goal)
		f->disk->end = f->disk->goal;
	return io_channel_write_blk64(fs->io, added.e_pblk, (int)*n, data);
}

static int flush(struct file *f, struct err *err)
{
	struct disk *d = f->disk;
	blk64_t first = f->at / DISK_BLOCK, n = (f->held + DISK_BLOCK - 1) / DISK_BLOCK, now;

	memset(d->piece + f->held, 0, n * DISK_BLOCK - f->held);
	for (blk64_t done = 0; done < n; done += now) {
		errcode_t rc;

		now = n - done;
		rc = write_run(f, first + done, d->piece + done * DISK_BLOCK, &now);
		if (rc)
			return disk_err(err, rc, "write a file");
	}
	f->at += n * DISK_BLOCK;
	f->held = 0;
	return 0;
}

/* To an offset that is not behind the piece's end. */
static int skip_to(struct file *f, uint64_t offset, struct err *err)
{
	uint64_t block = offset / DISK_BLOCK * DISK_BLOCK;

	if (f->at + f->held < block || f->held == 0) {
		if (flush(f, err) < 0)
			return -1;
		f->at = block;
	}
	memset(f->disk->piece + f->held, 0, offset - f->at - f->held);
	f->held = offset - f->at;
	return 0;
}

int file_write(struct file *f, struct bytes data, uint64_t offset, struct err *err)
{
	if (offset < f->at + f->held || offset > EXT2_I_SIZE(&f->inode) ||
	    data.len > EXT2_I_SIZE(&f->inode) - offset)
		return err_set(err, ERR_INVALID, 0, "the pieces of a sparse file make no sense");
	if (data.len == 0)
		return 0;
	if (offset > f->at + f->held && skip_to(f, offset, err) < 0)
		return -1;
	f->stored += data.len;
	while (data.len > 0) {
		struct bytes now = bytes_head(data, DISK_PIECE - f->held);

		memcpy(f->disk->piece + f->held, now.ptr, now.len);
		f->held += now.len;
		data = bytes_tail(data, now.len);
		if (f->held == DISK_PIECE && flush(f, err) < 0)
			return -1;
	}
	return 0;
}

int file_end(struct file *f, struct err *err)
{
	errcode_t rc;

	if (flush(f, err) < 0)
		return -1;
	rc = ext2fs_write_inode(f->disk->fs, f->ino, &f->inode);
	return rc ? disk_err(err, rc, "end a file") : 0;
}

int inode_mode(struct disk *d, uint32_t ino, uint16_t *ret, struct err *err)
{
	struct ext2_inode in;
	errcode_t rc = ext2fs_read_inode(d->fs, ino, &in);

	*ret = in.i_mode;
	return rc ? disk_err(err, rc, "read an inode") : 0;
}

int inode_read(struct disk *d, uint32_t ino, void *ret, size_t size, size_t *ret_len,
	       struct err *err)
{
	unsigned int got = 0;
	ext2_file_t f;
	errcode_t rc = ext2fs_file_open(d->fs, ino, 0, &f);

	if (rc)
		return disk_err(err, rc, "open a file");
	rc = ext2fs_file_read(f, ret, (unsigned int)size, &got);
	(void)ext2fs_file_close(f);
	*ret_len = got;
	return rc ? disk_err(err, rc, "read a file") : 0;
}
