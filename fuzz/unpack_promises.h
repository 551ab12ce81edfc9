/* unpack_promises.h - what must be true of an image in memory, whatever its layers were. */
#pragma once

#include <sys/mman.h>

#include "fuzz/must.h"
#include "unpack/image.h"
#include "unpack/limits.h"
#include "unpack/path.h"

enum { PROMISES_DISK_MIB = 32 };

static inline void must_be_a_name(struct name n)
{
	MUST(n.len > 0 && n.len <= UNPACK_NAME_MAX);
	MUST(!memchr(n.text, '/', n.len) && !memchr(n.text, '\0', n.len));
	MUST(!(n.len == 1 && n.text[0] == '.'));
	MUST(!(n.len == 2 && memcmp(n.text, "..", 2) == 0));
	MUST(n.len < 4 || memcmp(n.text, ".wh.", 4) != 0);
}

/* Of a node and all below: each is found by its name, and is where it says it is. Returns how many.
 */
static inline uint64_t must_be_sound(const struct image *im, const struct node *n)
{
	AUTO(auto_free) struct node **children = NULL;
	uint64_t nodes = 1;
	uint32_t folders = 0;
	struct err err = { 0 };

	MUST(n->ino != 0 && n->layer <= im->n_layers && n->depth <= UNPACK_DEPTH_MAX);
	MUST((n->type == EXT2_FT_SYMLINK) == (n->target != NULL));
	MUST(n->n_children == 0 || n->type == EXT2_FT_DIR);
	MUST(tree_children(n, &children, &err) == 0);
	for (uint32_t i = 0; i < n->n_children; i++) {
		const struct node *c = children[i];

		MUST(c->parent == n && c->depth == n->depth + 1);
		must_be_a_name(c->name);
		MUST(tree_child(n, c->name) == c);
		folders += c->type == EXT2_FT_DIR;
		nodes += must_be_sound(im, c);
	}
	MUST(folders == n->n_folders);
	return nodes;
}

/* After a layer hid all that is in a folder, each that is left is its own, or leads to its own. */
static inline void must_hide(struct image *im, struct node *n)
{
	AUTO(auto_free) struct node **children = NULL;
	struct err err = { 0 };

	if (tree_hide(&im->tree, &im->disk, n, &err) < 0) {
		must_say_why(&err);
		return;
	}
	MUST(tree_children(n, &children, &err) == 0);
	for (uint32_t i = 0; i < n->n_children; i++)
		MUST(children[i]->layer == im->tree.layer || children[i]->n_children > 0);
}

/* Wherever a path leads to is a folder of the image. */
static inline void must_stay_inside(struct image *im, struct bytes text)
{
	struct node *at;
	struct err err = { 0 };

	if (path_folder(&im->tree, &im->disk, text, MISSING_NULL, &at, &err) < 0) {
		must_say_why(&err);
		return;
	}
	MUST(!at || at->type == EXT2_FT_DIR);
	for (; at && at->parent; at = at->parent)
		;
	MUST(!at || at == im->tree.root);
}

/* After the last layer, which all of it was applied of; then it is written. */
static inline void must_keep_promises(struct image *im, struct bytes path)
{
	struct err err = { 0 };

	MUST(must_be_sound(im, im->tree.root) == im->tree.n_nodes);
	must_stay_inside(im, path);
	must_hide(im, im->tree.root);
	MUST(must_be_sound(im, im->tree.root) == im->tree.n_nodes);
	if (image_finish(im, &err) < 0)
		must_say_why(&err);
}
