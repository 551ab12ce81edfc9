/* store.c - nodes, and the two contents of a file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lossy.h"

enum { COPY_SIZE = 1 << 20, NUMBER_SIZE = 24 };

static void number_name(const struct node *n, char ret[static NUMBER_SIZE])
{
	snprintf(ret, NUMBER_SIZE, "%" PRIu64, n->number);
}

static int make_folder(int above, const char *name)
{
	if (mkdirat(above, name, 0755) < 0 && errno != EEXIST)
		return -1;
	return openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* What an earlier mount left; what the tree needs of it has a name there. */
static int make_empty(int above, const char *name)
{
	int fd = make_folder(above, name);
	DIR *d = fd < 0 ? NULL : fdopendir(dup(fd));
	struct dirent *e;

	if (!d)
		return -1;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && unlinkat(fd, e->d_name, 0) < 0)
			return -1;
	closedir(d);
	return fd;
}

int store_open(struct store *s, const char *folder)
{
	int top = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct node *root;

	*s = (struct store){ .changes_end = &s->changes };
	if (top < 0)
		return -errno;
	s->live = make_empty(top, "live");
	s->durable = make_empty(top, "durable");
	s->tree = make_folder(top, "tree");
	close(top);
	if (s->live < 0 || s->durable < 0 || s->tree < 0)
		return -errno;
	s->nodes = calloc(LOSSY_NODES_MAX, sizeof(*s->nodes));
	if (!s->nodes)
		return -ENOMEM;
	s->n_nodes = 1; /* 0 is nobody's number */
	return node_make(s, S_IFDIR | 0755, 0, 0, &root);
}

struct node *store_node(struct store *s, uint64_t number)
{
	return number < s->n_nodes ? s->nodes[number] : NULL;
}

static int open_content(int folder, const struct node *n)
{
	char name[NUMBER_SIZE];

	number_name(n, name);
	return openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

int node_make(struct store *s, mode_t mode, uid_t uid, gid_t gid, struct node **ret)
{
	struct node *n = s->n_nodes < LOSSY_NODES_MAX ? calloc(1, sizeof(*n)) : NULL;

	if (!n)
		return -ENOSPC;
	*n = (struct node){ .number = s->n_nodes, .live = -1, .durable = -1, .shrunk_to = -1 };
	n->st.st_mode = mode;
	n->st.st_uid = uid;
	n->st.st_gid = gid;
	clock_gettime(CLOCK_REALTIME, &n->st.st_mtim);
	n->st.st_atim = n->st.st_ctim = n->st.st_mtim;
	if (S_ISREG(mode)) {
		n->live = open_content(s->live, n);
		n->changed = true;
		if (n->live < 0) {
			free(n);
			return -errno;
		}
	}
	s->nodes[s->n_nodes++] = n;
	*ret = n;
	return 0;
}

void node_put(struct store *s, struct node *n)
{
	char name[NUMBER_SIZE];

	if (n->lookups > 0 || n->holds > 0 || n->number == 1 || n->names || n->durable_names)
		return;
	number_name(n, name);
	if (n->live >= 0) {
		close(n->live);
		unlinkat(s->live, name, 0);
	}
	if (n->durable >= 0) {
		close(n->durable);
		unlinkat(s->durable, name, 0);
	}
	s->nodes[n->number] = NULL;
	free(n->dirty);
	free(n);
}

void node_stat(const struct node *n, struct stat *ret)
{
	struct stat content = { 0 };

	*ret = n->st;
	if (n->live >= 0)
		fstat(n->live, &content);
	ret->st_ino = n->number;
	ret->st_size = content.st_size;
	ret->st_blocks = content.st_blocks;
	ret->st_blksize = LOSSY_BLOCK;
	ret->st_nlink = S_ISDIR(n->st.st_mode) ? 2 : 1;
}

/* --- contents ----------------------------------------------------------------------------- */

static bool is_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* From live to durable. Zeroes are left out where there is nothing below them. */
static int copy_range(struct node *n, int64_t at, int64_t end)
{
	static uint8_t piece[COPY_SIZE];
	struct stat st;

	if (fstat(n->durable, &st) < 0)
		return -errno;
	while (at < end) {
		size_t want = end - at < COPY_SIZE ? (size_t)(end - at) : COPY_SIZE;
		ssize_t got = pread(n->live, piece, want, at);

		if (got <= 0)
			return got < 0 ? -errno : 0;
		if (at < st.st_size || !is_zero(piece, (size_t)got))
			if (pwrite(n->durable, piece, (size_t)got, at) != got)
				return errno ? -errno : -EIO;
		at += got;
	}
	return 0;
}

/* A durable content of its own; that of a new file is empty. */
static int own_durable(struct store *s, struct node *n)
{
	struct stat st;
	int64_t data = 0, hole = 0;
	int rc = 0;

	if (n->durable >= 0)
		return 0;
	n->durable = open_content(s->durable, n);
	if (n->durable < 0 || fstat(n->live, &st) < 0)
		return -errno;
	if (!n->same)
		return 0;
	n->same = false;
	while (rc == 0 && (data = lseek(n->live, hole, SEEK_DATA)) >= 0) {
		hole = lseek(n->live, data, SEEK_HOLE);
		rc = hole < 0 ? -errno : copy_range(n, data, hole);
	}
	return rc < 0 ? rc : ftruncate(n->durable, st.st_size) < 0 ? -errno : 0;
}

int content_will_change(struct store *s, struct node *n)
{
	return n->same ? own_durable(s, n) : 0;
}

void content_changed(struct node *n, uint64_t at, uint64_t length)
{
	uint64_t first = at / LOSSY_BLOCK, last = length ? (at + length - 1) / LOSSY_BLOCK : first;

	n->changed = true;
	clock_gettime(CLOCK_REALTIME, &n->st.st_mtim);
	if (last >= n->n_dirty) {
		size_t want = (last + 1) * 2;
		uint8_t *grown = realloc(n->dirty, want);

		if (!grown)
			abort(); /* a test's program: better none than a wrong one */
		memset(grown + n->n_dirty, 0, want - n->n_dirty);
		n->dirty = grown;
		n->n_dirty = want;
	}
	memset(n->dirty + first, 1, last - first + 1);
}

int content_truncate(struct store *s, struct node *n, int64_t size)
{
	struct stat st;
	int rc = content_will_change(s, n);

	if (rc < 0)
		return rc;
	if (fstat(n->live, &st) < 0 || ftruncate(n->live, size) < 0)
		return -errno;
	if (size < st.st_size && (n->shrunk_to < 0 || size < n->shrunk_to))
		n->shrunk_to = size;
	content_changed(n, (uint64_t)size, 0);
	return 0;
}

int content_sync(struct store *s, struct node *n)
{
	struct stat st;
	int rc;

	if (!n->changed)
		return 0;
	rc = own_durable(s, n);
	if (rc < 0)
		return rc;
	if (fstat(n->live, &st) < 0 ||
	    (n->shrunk_to >= 0 && ftruncate(n->durable, n->shrunk_to) < 0))
		return -errno;
	for (size_t i = 0; i < n->n_dirty; i++) {
		size_t end = i;

		while (end < n->n_dirty && n->dirty[end])
			end++;
		if (end == i)
			continue;
		rc = copy_range(n, (int64_t)i * LOSSY_BLOCK, (int64_t)end * LOSSY_BLOCK);
		if (rc < 0)
			return rc;
		memset(n->dirty + i, 0, end - i);
		i = end;
	}
	if (ftruncate(n->durable, st.st_size) < 0)
		return -errno;
	n->shrunk_to = -1;
	n->changed = false;
	return 0;
}
