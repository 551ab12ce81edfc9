/* fuzz_unpack_entries.c - promises about what entries of layers do to an image, without tar around
 * them: paths, whiteouts, links, one kind in the place of another.
 *
 * Input: lines. `F PATH`, `D PATH`, `P PATH`, `C PATH` is a file, folder, fifo, device; `L PATH
 * TARGET` and `H PATH TARGET` a symlink and a hard link; `+` begins the next layer. An entry that
 * is refused is passed over, which hotcell-unpack does not do: more of it is tried that way.
 */
#include "fuzz/unpack_promises.h"
#include "unpack/entry.h"
#include "unpack/inode.h"

enum { LAYERS = 8, LINES_MAX = 256 };

static bool read_kind(uint8_t letter, enum entry_kind *ret)
{
	static const char letters[] = {
		[ENTRY_FILE] = 'F', [ENTRY_FOLDER] = 'D',    [ENTRY_SYMLINK] = 'L',
		[ENTRY_FIFO] = 'P', [ENTRY_HARD_LINK] = 'H', [ENTRY_DEVICE] = 'C'
	};

	for (size_t i = 0; i < COUNT(letters); i++)
		if (letters[i] == letter) {
			*ret = (enum entry_kind)i;
			return true;
		}
	return false;
}

static bool read_line(struct bytes line, struct entry *ret)
{
	*ret = (struct entry){ .attributes = { .mode = 0644 } };
	if (line.len < 2 || line.ptr[1] != ' ' || !read_kind(line.ptr[0], &ret->kind))
		return false;
	ret->link = bytes_tail(line, 2);
	if (!bytes_cut(&ret->link, ' ', &ret->path)) {
		ret->path = ret->link;
		ret->link = (struct bytes){ 0 };
	}
	return true;
}

/* The folder of a path; NULL when there is none, or a symlink on its way. */
static const struct node *plain_folder(const struct image *im, struct bytes folder, bool *ret_link)
{
	const struct node *at = im->tree.root;
	struct bytes c;

	*ret_link = false;
	while (at && bytes_next(&folder, '/', &c)) {
		at = tree_child(at, (struct name){ (const char *)c.ptr, c.len });
		if (at && at->type != EXT2_FT_DIR) {
			*ret_link = at->type == EXT2_FT_SYMLINK;
			return NULL;
		}
	}
	return at;
}

static bool hides(const struct path *p)
{
	return (p->last.len >= 4 && memcmp(p->last.text, ".wh.", 4) == 0) ||
	       (p->folder.len > 0 && memmem(p->folder.ptr, p->folder.len, ".wh.", 4));
}

/* What it says it made is there, and of this layer. */
static void must_be_there(const struct image *im, const struct entry *e, const struct path *p)
{
	bool link;
	const struct node *folder = plain_folder(im, p->folder, &link), *n;

	MUST(folder);
	n = tree_child(folder, p->last);
	MUST(n && n->layer == im->tree.layer &&
	     (n->type == EXT2_FT_DIR) == (e->kind == ENTRY_FOLDER));
}

static void fill(struct image *im, const struct entry *e, uint32_t ino)
{
	struct err err = { 0 };
	struct file f;

	MUST(e->kind == ENTRY_FILE);
	MUST(file_begin(&f, &im->disk, ino, e->path.len, &err) == 0 &&
	     file_write(&f, e->path, 0, &err) == 0 && file_end(&f, &err) == 0);
}

static void apply(struct image *im, const struct entry *e)
{
	bool link = true;
	struct err err = { 0 };
	struct path p;
	uint32_t ino;

	/* through a symlink it may take the place of what the symlink led through */
	if (path_read(e->path, &p, &err) == 0)
		(void)plain_folder(im, p.folder, &link);
	err = (struct err){ 0 };
	if (entry_apply(im, e, &ino, &err) < 0) {
		must_say_why(&err);
		return;
	}
	if (ino)
		fill(im, e, ino);
	if (!link && p.last.len > 0 && !hides(&p) && e->kind != ENTRY_DEVICE)
		must_be_there(im, e, &p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_close) int disk = memfd_create("disk", MFD_CLOEXEC);
	struct bytes in = { data, size }, line;
	struct err err = { 0 };
	struct image im;
	struct entry e;

	MUST(disk >= 0 && image_begin(&im, disk, PROMISES_DISK_MIB, &err) == 0);
	im.tree.layer = 1;
	im.n_layers = LAYERS;
	for (size_t i = 0; i < LINES_MAX && bytes_next(&in, '\n', &line); i++) {
		if (line.len == 1 && line.ptr[0] == '+')
			im.tree.layer =
				(uint16_t)(im.tree.layer < LAYERS ? im.tree.layer + 1 : LAYERS);
		else if (read_line(line, &e))
			apply(&im, &e);
	}
	must_keep_promises(&im, bytes_head(in, UNPACK_NAME_MAX));
	image_done(&im);
	return 0;
}
