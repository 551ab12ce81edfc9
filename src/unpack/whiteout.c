/* whiteout.c - by the OCI image specification, "Representing Changes". */
#include "unpack/whiteout.h"

#define MARK   PATH_WHITEOUT
#define NOTE   ".wh..wh."
#define OPAQUE ".wh..wh..opq"

static int hide_name(struct image *im, struct node *folder, struct name name, struct err *err)
{
	struct node *n = tree_child(folder, name);
	int stays;

	if (!n)
		return 0;
	stays = tree_hide(&im->tree, &im->disk, n, err);
	if (stays != 0)
		return stays < 0 ? -1 : 0;
	return tree_remove(&im->tree, &im->disk, n, err);
}

static int hide(struct image *im, const struct path *p, struct err *err)
{
	struct bytes last = { (const uint8_t *)p->last.text, p->last.len };
	struct bytes hidden = bytes_tail(last, sizeof(MARK) - 1);
	struct node *folder;

	if (path_folder(&im->tree, &im->disk, p->folder, MISSING_NULL, &folder, err) < 0)
		return -1;
	if (!folder)
		return 0;
	im->counts.whiteouts++;
	if (bytes_eq(last, BYTES_LIT(OPAQUE)))
		return tree_hide(&im->tree, &im->disk, folder, err) < 0 ? -1 : 0;
	return hide_name(im, folder, (struct name){ (const char *)hidden.ptr, hidden.len }, err);
}

static bool is_marked(struct bytes name)
{
	return bytes_starts(name, BYTES_LIT(MARK));
}

/* A folder that is a whiteout would have contents that nobody could name. 1: a driver's notes. */
static int check_folder(const struct path *p, struct err *err)
{
	struct bytes left = p->folder, c;

	while (bytes_next(&left, '/', &c)) {
		if (bytes_starts(c, BYTES_LIT(NOTE)))
			return 1;
		if (is_marked(c))
			return err_set(err, ERR_INVALID, 0, "a whiteout with something in it");
	}
	return 0;
}

int whiteout_apply(struct image *im, const struct path *p, struct err *err)
{
	struct bytes last = { (const uint8_t *)p->last.text, p->last.len };
	struct bytes hidden = bytes_tail(last, sizeof(MARK) - 1);
	int notes = check_folder(p, err);

	if (notes != 0 || !is_marked(last))
		return notes;
	if (hidden.len == 0 || bytes_eq(hidden, BYTES_LIT(".")) ||
	    bytes_eq(hidden, BYTES_LIT("..")))
		return err_set(err, ERR_INVALID, 0, "a whiteout of no name");
	if (bytes_starts(last, BYTES_LIT(NOTE)) && !bytes_eq(last, BYTES_LIT(OPAQUE)))
		return 1;
	return hide(im, p, err) < 0 ? -1 : 1;
}
