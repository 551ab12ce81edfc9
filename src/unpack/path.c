/* path.c - one component after the other; a symlink puts its target before what is left. */
#include "unpack/path.h"

#include "unpack/inode.h"

enum { LEFT_MAX = 2 * (UNPACK_PATH_MAX + 1) };

static bool is(struct bytes b, const char *text)
{
	return bytes_eq(b, bytes_str(text));
}

static int add_component(struct path *p, size_t *len, struct bytes c, struct err *err)
{
	if (c.len == 0 || is(c, "."))
		return 0;
	if (is(c, ".."))
		return err_set(err, ERR_INVALID, 0, "a path with ..");
	if (c.len > UNPACK_NAME_MAX)
		return err_set(err, ERR_INVALID, 0, "a name of more than %d bytes",
			       UNPACK_NAME_MAX);
	if (memchr(c.ptr, '\0', c.len))
		return err_set(err, ERR_INVALID, 0, "a name with a NUL");
	p->folder = (struct bytes){ (const uint8_t *)p->text, *len };
	if (*len > 0)
		p->text[(*len)++] = '/';
	memcpy(p->text + *len, c.ptr, c.len);
	p->last = (struct name){ p->text + *len, c.len };
	*len += c.len;
	return 0;
}

int path_read(struct bytes text, struct path *ret, struct err *err)
{
	struct bytes c;
	size_t len = 0;

	ret->folder = (struct bytes){ (const uint8_t *)ret->text, 0 };
	ret->last = (struct name){ ret->text, 0 };
	if (text.len == 0)
		return err_set(err, ERR_INVALID, 0, "an empty path");
	if (text.len > UNPACK_PATH_MAX)
		return err_set(err, ERR_INVALID, 0, "a path of more than %d bytes",
			       UNPACK_PATH_MAX);
	while (bytes_next(&text, '/', &c))
		if (add_component(ret, &len, c, err) < 0)
			return -1;
	return 0;
}

/* Where one is, and what is left of the way. */
struct walk {
	struct tree *tree;
	struct disk *disk;
	enum missing missing;
	struct node *at; /* NULL: there is no such place */
	unsigned links;
	size_t begin; /* of what is left, which ends at LEFT_MAX */
	char left[LEFT_MAX];
};

static int prepend(struct walk *w, struct bytes text, struct err *err)
{
	if (text.len + 1 > w->begin)
		return err_set(err, ERR_INVALID, 0, "symlinks that lead too far");
	w->left[--w->begin] = '/';
	w->begin -= text.len;
	memcpy(w->left + w->begin, text.ptr, text.len);
	return 0;
}

static int make_folder(struct walk *w, struct name name, struct err *err)
{
	const struct attributes a = { .mode = LINUX_S_IFDIR | 0755, .seconds = DISK_TIME };
	struct node *n;

	if (bytes_starts((struct bytes){ (const uint8_t *)name.text, name.len },
			 BYTES_LIT(PATH_WHITEOUT)))
		return err_set(err, ERR_INVALID, 0, "a symlink to a whiteout");
	if (tree_add(w->tree, w->at, name, EXT2_FT_DIR, NULL, &n, err) < 0 ||
	    inode_new(w->disk, &a, &n->ino, err) < 0)
		return -1;
	w->at = n;
	return 0;
}

static int absent(struct walk *w, struct name name, struct err *err)
{
	switch (w->missing) {
	case MISSING_MAKE:
		return make_folder(w, name, err);
	case MISSING_NULL:
		w->at = NULL;
		return 0;
	case MISSING_REFUSE:
	default:
		return err_set(err, ERR_NOT_FOUND, 0, "there is no %.*s", (int)name.len, name.text);
	}
}

static int follow(struct walk *w, const struct node *link, struct err *err)
{
	if (++w->links > UNPACK_LINKS_MAX)
		return err_set(err, ERR_INVALID, 0, "symlinks that go in circles");
	if (link->target[0] == '/')
		w->at = w->tree->root;
	return prepend(w, bytes_str(link->target), err);
}

static int step(struct walk *w, struct bytes c, struct err *err)
{
	const struct name name = { (const char *)c.ptr, c.len };
	struct node *n;

	if (tree_spend(w->tree, 1, err) < 0)
		return -1;
	if (c.len == 0 || is(c, "."))
		return 0;
	if (is(c, "..")) {
		w->at = w->at->parent ? w->at->parent : w->at;
		return 0;
	}
	if (c.len > UNPACK_NAME_MAX)
		return err_set(err, ERR_INVALID, 0, "a name of more than %d bytes",
			       UNPACK_NAME_MAX);
	n = tree_child(w->at, name);
	if (!n)
		return absent(w, name, err);
	if (n->type == EXT2_FT_SYMLINK)
		return follow(w, n, err);
	if (n->type != EXT2_FT_DIR)
		return err_set(err, ERR_INVALID, 0, "%.*s on the way is not a folder",
			       (int)name.len, name.text);
	w->at = n;
	return 0;
}

int path_folder(struct tree *t, struct disk *d, struct bytes text, enum missing missing,
		struct node **ret, struct err *err)
{
	struct walk w = {
		.tree = t, .disk = d, .missing = missing, .at = t->root, .begin = LEFT_MAX
	};

	if (text.len > 0 && prepend(&w, text, err) < 0)
		return -1;
	while (w.begin < LEFT_MAX && w.at) {
		struct bytes left = { (const uint8_t *)w.left + w.begin, LEFT_MAX - w.begin };
		uint8_t name[UNPACK_PATH_MAX + 1];
		struct bytes c;

		/* a symlink may be written over what is left: the component is a copy */
		if (!bytes_cut(&left, '/', &c) || c.len > sizeof(name))
			return err_set(err, ERR_INVALID, 0, "a path that is too long");
		memcpy(name, c.ptr, c.len);
		w.begin += c.len + 1;
		if (step(&w, (struct bytes){ name, c.len }, err) < 0)
			return -1;
	}
	*ret = w.at;
	return 0;
}

/* `text` behind `folder` becomes the path that it means, if it is relative. */
static int next_text(const struct node *folder, const char *target, char *ret, size_t size)
{
	char where[UNPACK_PATH_MAX + 1] = "";
	int n;

	if (target[0] != '/')
		tree_path(folder, where, sizeof(where));
	n = snprintf(ret, size, "%s/%s", where, target);
	return n >= 0 && (size_t)n < size ? 0 : -1;
}

int path_find(struct tree *t, const char *text, struct node **ret, struct err *err)
{
	char now[UNPACK_PATH_MAX + 1];

	*ret = NULL;
	snprintf(now, sizeof(now), "%s", text);
	for (unsigned links = 0; links <= UNPACK_LINKS_MAX; links++) {
		char *last = strrchr(now, '/');
		struct node *folder, *n;
		struct err why = { 0 };

		if (!last)
			return 0;
		*last++ = '\0';
		if (path_folder(t, NULL, bytes_str(now), MISSING_NULL, &folder, &why) < 0) {
			if (why.code == ERR_INVALID || why.code == ERR_NOT_FOUND)
				return 0;
			*err = why;
			return -1;
		}
		n = folder ? tree_child(folder, (struct name){ last, strlen(last) }) : NULL;
		if (!n || n->type != EXT2_FT_SYMLINK) {
			*ret = n;
			return 0;
		}
		if (next_text(folder, n->target, now, sizeof(now)) < 0)
			return 0;
	}
	return 0;
}
