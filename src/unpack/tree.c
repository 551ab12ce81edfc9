/* tree.c - nodes, in one balanced tree of tsearch(3) for each folder. */
#include "unpack/tree.h"

#include <errno.h>
#include <search.h>

#include "unpack/inode.h"
#include "unpack/limits.h"

static int compare(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	size_t n = x->len < y->len ? x->len : y->len;
	int order = memcmp(x->text, y->text, n);

	return order != 0 ? order : x->len < y->len ? -1 : x->len > y->len;
}

int tree_spend(struct tree *t, uint64_t steps, struct err *err)
{
	t->steps += steps;
	if (t->steps > UNPACK_STEPS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "the image is too much work");
	return 0;
}

static struct node *new_node(struct name name, const char *target)
{
	struct node *n = calloc(1, sizeof(*n) + name.len);

	if (!n)
		return NULL;
	memcpy(n->text, name.text, name.len);
	n->name = (struct name){ n->text, name.len };
	if (target && !(n->target = strdup(target))) {
		free(n);
		return NULL;
	}
	return n;
}

static void free_node(struct node *n)
{
	free(n->target);
	free(n);
}

int tree_init(struct tree *t, uint32_t root_ino, struct err *err)
{
	*t = (struct tree){ .root = new_node((struct name){ "", 0 }, NULL) };
	if (!t->root)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "make a tree");
	t->root->type = EXT2_FT_DIR;
	t->root->ino = root_ino;
	t->n_nodes = t->n_made = 1;
	return 0;
}

/* Depth is bounded: UNPACK_DEPTH_MAX. */
static void free_all(void *p)
{
	struct node *n = p;

	tdestroy(n->children, free_all);
	free_node(n);
}

void tree_done(struct tree *t)
{
	if (t->root)
		free_all(t->root);
	t->root = NULL;
}

struct node *tree_child(const struct node *folder, struct name name)
{
	struct node *const *found = tfind(&name, &folder->children, compare);

	return found ? *found : NULL;
}

static int may_add(const struct tree *t, const struct node *folder, size_t bytes, struct err *err)
{
	if (t->n_made >= UNPACK_ENTRIES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d entries", UNPACK_ENTRIES_MAX);
	if (t->bytes + bytes > UNPACK_NAMES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %llu MiB of names",
			       UNPACK_NAMES_MAX >> 20);
	if (folder->depth >= UNPACK_DEPTH_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d folders in each other",
			       UNPACK_DEPTH_MAX);
	return 0;
}

int tree_add(struct tree *t, struct node *folder, struct name name, uint8_t type,
	     const char *target, struct node **ret, struct err *err)
{
	size_t bytes = name.len + (target ? strlen(target) : 0);
	struct node *n;

	if (may_add(t, folder, bytes, err) < 0)
		return -1;
	n = new_node(name, target);
	if (!n || !tsearch(n, &folder->children, compare)) {
		if (n)
			free_node(n);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "keep a name");
	}
	n->parent = folder;
	n->type = type;
	n->layer = t->layer;
	n->depth = (uint16_t)(folder->depth + 1);
	folder->n_children++;
	folder->n_folders += type == EXT2_FT_DIR;
	t->n_nodes++;
	t->n_made++;
	t->bytes += bytes;
	*ret = n;
	return 0;
}

struct listing {
	struct node **at;
};

static void note_child(const void *tree_node, VISIT visit, void *into)
{
	struct listing *l = into;

	if (visit == postorder || visit == leaf)
		*l->at++ = *(struct node *const *)tree_node;
}

int tree_children(const struct node *folder, struct node ***ret, struct err *err)
{
	struct listing l;

	*ret = NULL;
	if (folder->n_children == 0)
		return 0;
	*ret = l.at = calloc(folder->n_children, sizeof(*l.at));
	if (!l.at)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "list a folder");
	twalk_r(folder->children, note_child, &l);
	assert(l.at == *ret + folder->n_children);
	return 0;
}

/* A node without children, or whose children are gone. */
static int drop(struct tree *t, struct disk *d, struct node *n, struct err *err)
{
	struct node *folder = n->parent;

	assert(folder && n->n_children == 0);
	tdelete(n, &folder->children, compare);
	folder->n_children--;
	folder->n_folders -= n->type == EXT2_FT_DIR;
	t->n_nodes--;
	t->bytes -= n->name.len + (n->target ? strlen(n->target) : 0);
	if (n->ino && inode_unlink(d, n->ino, err) < 0) {
		free_node(n);
		return -1;
	}
	free_node(n);
	return 0;
}

int tree_remove(struct tree *t, struct disk *d, struct node *n, struct err *err)
{
	AUTO(auto_free) struct node **children = NULL;
	uint32_t count = n->n_children;

	if (tree_children(n, &children, err) < 0)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		if (tree_remove(t, d, children[i], err) < 0)
			return -1;
	return drop(t, d, n, err);
}

int tree_hide(struct tree *t, struct disk *d, struct node *n, struct err *err)
{
	AUTO(auto_free) struct node **children = NULL;
	uint32_t count = n->n_children;

	if (tree_spend(t, 1 + count, err) < 0)
		return -1;
	/* hidden once, only this layer can have put something there since */
	if (n->cleared != t->layer) {
		if (tree_children(n, &children, err) < 0)
			return -1;
		for (uint32_t i = 0; i < count; i++) {
			int stays = tree_hide(t, d, children[i], err);

			if (stays < 0 || (stays == 0 && drop(t, d, children[i], err) < 0))
				return -1;
		}
		n->cleared = t->layer;
	}
	return n->layer == t->layer || n->n_children > 0;
}

void tree_path(const struct node *n, char *ret, size_t size)
{
	size_t at = size - 1;

	ret[at] = '\0';
	for (; n->parent && at > 0; n = n->parent) {
		size_t take = n->name.len < at - 1 ? n->name.len : at - 1;

		at -= take;
		memcpy(ret + at, n->name.text + (n->name.len - take), take);
		ret[--at] = '/';
	}
	memmove(ret, ret + at, size - at);
}
