/* tree_walk.c - see tree_walk.h. */
#include "agent/filesystem/tree_walk.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

struct tree_level {
	struct buf text; /* a type, a name and a NUL, for each entry */
	char **names;    /* into it, sorted, each past its type */
	size_t n, at;
	size_t path_len; /* of the directory */
};

static void level_done(struct tree_level *l)
{
	free(l->names);
	buf_done(&l->text);
}

static void auto_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

static int compare(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int read_names(struct tree_level *l, DIR *d, struct err *err)
{
	const struct dirent *e;

	while ((errno = 0, e = readdir(d))) {
		uint8_t type = e->d_type;

		if (is_dots(e->d_name))
			continue;
		if (buf_add(&l->text, (struct bytes){ &type, 1 }, err) < 0 ||
		    buf_add(&l->text,
			    (struct bytes){ (const uint8_t *)e->d_name, strlen(e->d_name) + 1 },
			    err) < 0)
			return err_wrap(err, "read a directory");
		l->n++;
	}
	return errno ? err_set(err, ERR_INTERNAL, errno, "read a directory") : 0;
}

static int sort_names(struct tree_level *l, struct err *err)
{
	char *at = (char *)l->text.ptr;

	if (l->n == 0)
		return 0;
	l->names = calloc(l->n, sizeof(*l->names));
	if (!l->names)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read a directory");
	for (size_t i = 0; i < l->n; i++) {
		l->names[i] = at + 1;
		at += 1 + strlen(at + 1) + 1;
	}
	qsort(l->names, l->n, sizeof(*l->names), compare);
	return 0;
}

static int make_room(struct tree_walk *w, struct err *err)
{
	size_t cap = w->cap ? 2 * w->cap : 8;
	struct tree_level *grown;

	if (w->n_levels < w->cap)
		return 0;
	if (w->n_levels == TREE_LEVELS_MAX)
		return err_set(err, ERR_EXHAUSTED, ENAMETOOLONG, "read a directory");
	grown = reallocarray(w->levels, cap, sizeof(*grown));
	if (!grown)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read a directory");
	w->levels = grown;
	w->cap = cap;
	return 0;
}

/* The directory at w->path becomes the level that is read. */
static int push(struct tree_walk *w, struct err *err)
{
	AUTO(auto_closedir) DIR *d = opendir(w->path);
	struct tree_level l = { .text = BUF_MAX(TREE_NAMES_MAX), .path_len = strlen(w->path) };

	if (!d)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, errno,
			       "read a directory");
	if (make_room(w, err) < 0 || read_names(&l, d, err) < 0 || sort_names(&l, err) < 0) {
		level_done(&l);
		return -1;
	}
	if (l.path_len == 1) /* "/" ends in its own slash */
		l.path_len = 0;
	w->levels[w->n_levels++] = l;
	return 0;
}

int tree_walk_open(struct tree_walk *w, const char *root, uint32_t depth, struct err *err)
{
	*w = (struct tree_walk){ .depth = depth };
	snprintf(w->path, sizeof(w->path), "%s", root);
	return push(w, err);
}

void tree_walk_close(struct tree_walk *w)
{
	while (w->n_levels > 0)
		level_done(&w->levels[--w->n_levels]);
	free(w->levels);
	*w = (struct tree_walk){ 0 };
}

void tree_walk_skip(struct tree_walk *w)
{
	w->enter = false;
}

static bool is_dir(const char *path, const char *name)
{
	struct stat st;

	if (name[-1] != DT_UNKNOWN)
		return name[-1] == DT_DIR;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Gone, or made into something else, since it was seen. */
static bool vanished(int sys)
{
	return sys == ENOENT || sys == ENOTDIR || sys == EACCES || sys == ELOOP;
}

int tree_walk_next(struct tree_walk *w, struct tree_entry *ret, struct err *err)
{
	struct tree_level *l;
	const char *name;
	size_t left;

	if (w->enter && push(w, err) < 0 && !vanished(err->sys))
		return -1;
	w->enter = false;
	while (w->n_levels > 0 && w->levels[w->n_levels - 1].at == w->levels[w->n_levels - 1].n)
		level_done(&w->levels[--w->n_levels]);
	if (w->n_levels == 0)
		return 0;
	l = &w->levels[w->n_levels - 1];
	name = l->names[l->at++];
	left = sizeof(w->path) - l->path_len;
	if ((size_t)snprintf(w->path + l->path_len, left, "/%s", name) >= left)
		return err_set(err, ERR_INVALID, ENAMETOOLONG, "read a directory");
	*ret = (struct tree_entry){ w->path, is_dir(w->path, name) };
	w->enter = ret->is_dir && w->n_levels < w->depth;
	return 1;
}
