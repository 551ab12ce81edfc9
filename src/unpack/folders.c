/* folders.c - entries in the order of their names, packed: no search for room, so no O(n^2).
 *
 * No index is made (dir_index): the kernel searches such a folder from its beginning, as it does
 * with what `mke2fs -d` wrote.
 */
#include "unpack/folders.h"

#include "unpack/inode.h"

enum {
	HEAD = 8, /* bytes of an entry before its name */
	TAIL = sizeof(struct ext2_dir_entry_tail),
	ROOM = DISK_BLOCK - TAIL,
	LOST_FOUND_BLOCKS = 4, /* what mke2fs gives to it, for e2fsck */
	LINKS_MAX = 65000,     /* beyond it a folder says 1, which means "many" */
};

struct folder {
	struct file file;
	uint32_t ino;
	uint64_t blocks;   /* that were written */
	size_t used, last; /* bytes of the block; where its last entry begins */
	union {
		uint8_t bytes[DISK_BLOCK];
		struct ext2_dir_entry first;
	} block;
};

static size_t entry_size(size_t name)
{
	return (HEAD + name + 3) / 4 * 4;
}

/* Entries begin at multiples of four bytes. */
static struct ext2_dir_entry *entry_at(struct folder *f, size_t at)
{
	assert(at % 4 == 0 && at < ROOM);
	return (struct ext2_dir_entry *)(void *)(f->block.bytes + at);
}

/* The last entry takes what is left, and the sum comes behind it. */
static int end_block(struct folder *f, struct err *err)
{
	struct ext2_dir_entry *last = entry_at(f, f->last);
	errcode_t rc;

	last->rec_len = (uint16_t)(ROOM - f->last);
	ext2fs_initialize_dirent_tail(f->file.disk->fs,
				      EXT2_DIRENT_TAIL(f->block.bytes, DISK_BLOCK));
	rc = ext2fs_dir_block_csum_set(f->file.disk->fs, f->ino, &f->block.first);
	if (rc)
		return disk_err(err, rc, "sum a folder");
	if (file_write(&f->file, (struct bytes){ f->block.bytes, DISK_BLOCK },
		       f->blocks * DISK_BLOCK, err) < 0)
		return -1;
	f->blocks++;
	f->used = f->last = 0;
	memset(&f->block, 0, sizeof(f->block));
	return 0;
}

static int add(struct folder *f, struct name name, uint32_t ino, uint8_t type, struct err *err)
{
	size_t size = entry_size(name.len);
	struct ext2_dir_entry *e;

	if (f->used + size > ROOM && end_block(f, err) < 0)
		return -1;
	e = entry_at(f, f->used);
	e->inode = ino;
	e->rec_len = (uint16_t)size;
	ext2fs_dirent_set_name_len(e, (int)name.len);
	ext2fs_dirent_set_file_type(e, type);
	memcpy(e->name, name.text, name.len);
	f->last = f->used;
	f->used += size;
	return 0;
}

/* How many blocks the same calls of add() will fill. */
static uint64_t count_blocks(struct node *const *children, uint32_t n)
{
	size_t used = 2 * entry_size(2);
	uint64_t blocks = 1;

	for (uint32_t i = 0; i < n; i++) {
		size_t size = entry_size(children[i]->name.len);

		if (used + size > ROOM) {
			blocks++;
			used = 0;
		}
		used += size;
	}
	return blocks;
}

static bool is_lost_found(const struct node *n)
{
	static const char name[] = "lost+found";

	return n->depth == 1 && n->name.len == sizeof(name) - 1 &&
	       memcmp(n->name.text, name, sizeof(name) - 1) == 0;
}

static int write_one(struct disk *d, const struct node *n, struct node *const *children,
		     struct err *err)
{
	uint64_t blocks = count_blocks(children, n->n_children);
	struct folder f = { .ino = n->ino };

	if (is_lost_found(n) && blocks < LOST_FOUND_BLOCKS)
		blocks = LOST_FOUND_BLOCKS;
	if (file_begin(&f.file, d, n->ino, blocks * DISK_BLOCK, err) < 0 ||
	    add(&f, (struct name){ ".", 1 }, n->ino, EXT2_FT_DIR, err) < 0 ||
	    add(&f, (struct name){ "..", 2 }, n->parent ? n->parent->ino : n->ino, EXT2_FT_DIR,
		err) < 0)
		return -1;
	for (uint32_t i = 0; i < n->n_children; i++)
		if (add(&f, children[i]->name, children[i]->ino, children[i]->type, err) < 0)
			return -1;
	while (f.blocks < blocks)
		if (end_block(&f, err) < 0)
			return -1;
	return file_end(&f.file, err);
}

int folders_write(struct disk *d, const struct node *n, struct err *err)
{
	uint32_t links = n->n_folders + 2;
	AUTO(auto_free) struct node **children = NULL;

	if (tree_children(n, &children, err) < 0 || write_one(d, n, children, err) < 0 ||
	    inode_set_links(d, n->ino, links > LINKS_MAX ? 1 : links, err) < 0)
		return -1;
	for (uint32_t i = 0; i < n->n_children; i++)
		if (children[i]->type == EXT2_FT_DIR && folders_write(d, children[i], err) < 0)
			return -1;
	return 0;
}
