/* tree.h - every name of the image, in memory: what is where, and which layer put it there.
 *
 * Folders are written to the disk at the very end, when this is all that is left. Until then names
 * are found in O(log n), whatever they are: children are in a balanced tree, not in a hash table
 * that somebody could fill with collisions.
 */
#pragma once

#include <stdint.h>

#include "unpack/disk.h"

/* Borrowed. The first member of a node, so that both can be looked for. */
struct name {
	const char *text; /* not ended by NUL */
	size_t len;
};

struct node {
	struct name name;
	struct node *parent; /* NULL of the root alone */
	void *children;      /* of a folder: tsearch(3) */
	uint32_t n_children, n_folders;
	uint32_t ino;
	uint16_t layer;   /* the last one that put it there */
	uint16_t cleared; /* the last layer that hid all below from lower layers */
	uint16_t depth;
	uint8_t type; /* EXT2_FT_... */
	char *target; /* of a symlink */
	char text[];
};

struct tree {
	struct node *root;
	uint16_t layer;           /* that is being applied, from 1; 0 before the first */
	uint64_t n_nodes, n_made; /* now, and ever */
	uint64_t bytes;           /* of names and targets */
	uint64_t steps;           /* of work that grows with what the image says */
};

int tree_init(struct tree *t, uint32_t root_ino, struct err *err) NODISCARD;
void tree_done(struct tree *t);

struct node *tree_child(const struct node *folder, struct name name); /* NULL: none */
/* The name must not be there yet. `target` is copied; NULL when it is not a symlink. */
int tree_add(struct tree *t, struct node *folder, struct name name, uint8_t type,
	     const char *target, struct node **ret, struct err *err) NODISCARD;
/* With all below it, and the inodes. Never the root. */
int tree_remove(struct tree *t, struct disk *d, struct node *n, struct err *err) NODISCARD;
/* What is below `n` and was not put there by this layer. Returns whether `n` has to stay,
 * which is up to the caller: 1, 0 or -1. */
int tree_hide(struct tree *t, struct disk *d, struct node *n, struct err *err) NODISCARD;

/* In the order of their names, into memory that the caller frees. NULL without error: none. */
int tree_children(const struct node *folder, struct node ***ret, struct err *err) NODISCARD;

/* Work that somebody may ask for again and again. */
int tree_spend(struct tree *t, uint64_t steps, struct err *err) NODISCARD;

/* The whole path, for people: as much of it as fits. */
void tree_path(const struct node *n, char *ret, size_t size);
