/* entry.c - what is there already gives way, as the OCI image specification says. */
#include "unpack/entry.h"

#include "unpack/inode.h"
#include "unpack/path.h"
#include "unpack/whiteout.h"

static const uint8_t types[] = {
	[ENTRY_FILE] = EXT2_FT_REG_FILE,
	[ENTRY_FOLDER] = EXT2_FT_DIR,
	[ENTRY_SYMLINK] = EXT2_FT_SYMLINK,
	[ENTRY_FIFO] = EXT2_FT_FIFO,
};

static struct attributes with_type(const struct entry *e)
{
	static const uint16_t modes[] = {
		[ENTRY_FILE] = LINUX_S_IFREG,
		[ENTRY_FOLDER] = LINUX_S_IFDIR,
		[ENTRY_SYMLINK] = LINUX_S_IFLNK,
		[ENTRY_FIFO] = LINUX_S_IFIFO,
	};
	struct attributes a = e->attributes;

	a.mode = (uint16_t)((a.mode & 07777) | modes[e->kind]);
	if (e->kind == ENTRY_SYMLINK)
		a.mode |= 0777;
	return a;
}

static int change_folder(struct image *im, const struct entry *e, struct node *n, struct err *err)
{
	const struct attributes a = with_type(e);

	n->layer = im->tree.layer;
	if (inode_change(&im->disk, n->ino, &a, err) < 0)
		return -1;
	return inode_set_xattrs(&im->disk, n->ino, e->xattrs, e->n_xattrs, err);
}

static void count(struct counts *c, enum entry_kind kind)
{
	uint64_t *const of[] = {
		[ENTRY_FILE] = &c->files,           [ENTRY_FOLDER] = &c->folders,
		[ENTRY_SYMLINK] = &c->symlinks,     [ENTRY_FIFO] = &c->fifos,
		[ENTRY_HARD_LINK] = &c->hard_links, [ENTRY_DEVICE] = &c->devices,
	};

	++*of[kind];
}

/* A node with a name that is free. */
static int add(struct image *im, const struct entry *e, struct node *folder, struct name name,
	       uint32_t *ret_ino, struct err *err)
{
	char target[UNPACK_PATH_MAX + 1] = "";
	const struct attributes a = with_type(e);
	bool symlink = e->kind == ENTRY_SYMLINK;
	struct node *n;
	int rc;

	if (symlink && (e->link.len == 0 || !bytes_to_str(e->link, target, sizeof(target))))
		return err_set(err, ERR_INVALID, 0, "a symlink to nothing, or to too long a path");
	if (tree_add(&im->tree, folder, name, types[e->kind], symlink ? target : NULL, &n, err) < 0)
		return -1;
	rc = symlink ? inode_new_symlink(&im->disk, &a, e->link, &n->ino, err)
		     : inode_new(&im->disk, &a, &n->ino, err);
	if (rc < 0 || inode_set_xattrs(&im->disk, n->ino, e->xattrs, e->n_xattrs, err) < 0)
		return -1;
	if (e->kind == ENTRY_FILE)
		*ret_ino = n->ino;
	return 0;
}

/* The node that a hard link names: in the image, and not a folder. */
static int find_linked(struct image *im, const struct entry *e, struct node **ret, struct err *err)
{
	struct node *folder;
	struct path p;

	if (path_read(e->link, &p, err) < 0)
		return err_wrap(err, "where a hard link leads to");
	if (path_folder(&im->tree, &im->disk, p.folder, MISSING_REFUSE, &folder, err) < 0)
		return err_wrap(err, "where a hard link leads to");
	*ret = p.last.len > 0 ? tree_child(folder, p.last) : folder;
	if (!*ret)
		return err_set(err, ERR_INVALID, 0, "a hard link to what is not there");
	if ((*ret)->type == EXT2_FT_DIR)
		return err_set(err, ERR_INVALID, 0, "a hard link to a folder");
	return 0;
}

static int link_to(struct image *im, struct node *to, struct node *folder, struct name name,
		   struct err *err)
{
	struct node *n;

	if (tree_add(&im->tree, folder, name, to->type, to->target, &n, err) < 0)
		return -1;
	/* the tree is not to free what it was not given */
	if (inode_link(&im->disk, to->ino, err) < 0)
		return -1;
	n->ino = to->ino;
	return 0;
}

/* The link counts before the name that it replaces is gone: that may be the last other one. */
static int put_link(struct image *im, const struct entry *e, struct node *folder, struct name name,
		    struct err *err)
{
	struct node *old = tree_child(folder, name), *to = NULL;

	if (find_linked(im, e, &to, err) < 0)
		return -1;
	if (old == to || (old && old->ino == to->ino)) {
		old->layer = im->tree.layer;
		return 0;
	}
	/* what would go holds what the link leads to */
	for (const struct node *n = to; n; n = n->parent)
		if (n == old)
			return err_set(err, ERR_INVALID, 0,
				       "a hard link in the place of what it leads to");
	if (old && tree_remove(&im->tree, &im->disk, old, err) < 0)
		return -1;
	return link_to(im, to, folder, name, err);
}

static int put(struct image *im, const struct entry *e, struct node *folder, struct name name,
	       uint32_t *ret_ino, struct err *err)
{
	struct node *old;

	if (e->kind == ENTRY_HARD_LINK)
		return put_link(im, e, folder, name, err);
	old = tree_child(folder, name);
	if (old && old->type == EXT2_FT_DIR && e->kind == ENTRY_FOLDER)
		return change_folder(im, e, old, err);
	if (old && tree_remove(&im->tree, &im->disk, old, err) < 0)
		return -1;
	return add(im, e, folder, name, ret_ino, err);
}

int entry_apply(struct image *im, const struct entry *e, uint32_t *ret_ino, struct err *err)
{
	struct node *folder;
	struct path p;
	int hides;

	*ret_ino = 0;
	if (path_read(e->path, &p, err) < 0)
		return -1;
	hides = whiteout_apply(im, &p, err);
	if (hides != 0)
		return hides < 0 ? -1 : 0;
	if (e->kind == ENTRY_DEVICE) {
		count(&im->counts, e->kind);
		return 0;
	}
	if (p.last.len == 0)
		return e->kind == ENTRY_FOLDER ? change_folder(im, e, im->tree.root, err)
					       : err_set(err, ERR_INVALID, 0,
							 "the root of the image is not a folder");
	if (path_folder(&im->tree, &im->disk, p.folder, MISSING_MAKE, &folder, err) < 0 ||
	    put(im, e, folder, p.last, ret_ino, err) < 0)
		return -1;
	count(&im->counts, e->kind);
	return 0;
}
