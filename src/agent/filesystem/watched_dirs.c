/* watched_dirs.c - a sorted array: the kernel numbers watches upwards. */
#include "agent/filesystem/watched_dirs.h"

#include <errno.h>
#include <stdio.h>

/* The first place whose number is not below wd. */
static size_t place(const struct watched_dirs *d, int wd)
{
	size_t low = 0, high = d->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (d->v[mid].wd < wd)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int make_room(struct watched_dirs *d, struct err *err)
{
	size_t cap = d->cap ? 2 * d->cap : 16;
	struct watched_dir *grown;

	if (d->n == WATCHED_DIRS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d directories to watch",
			       WATCHED_DIRS_MAX);
	if (d->n < d->cap)
		return 0;
	grown = reallocarray(d->v, cap, sizeof(*grown));
	if (!grown)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "watch a directory");
	d->v = grown;
	d->cap = cap;
	return 0;
}

int watched_dirs_set(struct watched_dirs *d, int wd, const char *path, struct err *err)
{
	size_t at = place(d, wd);
	char *copy = strdup(path);

	if (!copy)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "watch a directory");
	if (at < d->n && d->v[at].wd == wd) {
		free(d->v[at].path);
		d->v[at].path = copy;
		return 0;
	}
	if (make_room(d, err) < 0) {
		free(copy);
		return -1;
	}
	memmove(&d->v[at + 1], &d->v[at], (d->n - at) * sizeof(*d->v));
	d->v[at] = (struct watched_dir){ wd, copy };
	d->n++;
	return 0;
}

const char *watched_dirs_find(const struct watched_dirs *d, int wd)
{
	size_t at = place(d, wd);

	return at < d->n && d->v[at].wd == wd ? d->v[at].path : NULL;
}

void watched_dirs_drop(struct watched_dirs *d, int wd)
{
	size_t at = place(d, wd);

	if (at == d->n || d->v[at].wd != wd)
		return;
	free(d->v[at].path);
	memmove(&d->v[at], &d->v[at + 1], (d->n - at - 1) * sizeof(*d->v));
	d->n--;
}

static bool is_below(const char *path, const char *top, size_t len)
{
	return strncmp(path, top, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

bool watched_dirs_rename(struct watched_dirs *d, const char *top, const char *to)
{
	size_t len = strlen(top);

	for (size_t i = 0; i < d->n; i++) {
		char *fresh;

		if (!is_below(d->v[i].path, top, len))
			continue;
		if (asprintf(&fresh, "%s%s", to, d->v[i].path + len) < 0)
			return false;
		free(d->v[i].path);
		d->v[i].path = fresh;
	}
	return true;
}

void watched_dirs_forget(struct watched_dirs *d, const char *top, void (*gone)(void *ctx, int wd),
			 void *ctx)
{
	size_t len = strlen(top), kept = 0;

	for (size_t i = 0; i < d->n; i++) {
		struct watched_dir one = d->v[i];

		if (!is_below(one.path, top, len)) {
			d->v[kept++] = one;
			continue;
		}
		free(one.path);
		gone(ctx, one.wd);
	}
	d->n = kept;
}

void watched_dirs_done(struct watched_dirs *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->v[i].path);
	free(d->v);
	*d = (struct watched_dirs){ 0 };
}
