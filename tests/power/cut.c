/* cut.c - what a power cut leaves, and the tree that the next mount reads. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lossy.h"

enum { LINK_SIZE = 64, BESIDE_MAX = 1024 };

struct chance {
	uint64_t state;
};

/* xorshift64*: the same cut again for the same seed */
static uint64_t roll(struct chance *c, uint64_t sides)
{
	c->state ^= c->state >> 12;
	c->state ^= c->state << 25;
	c->state ^= c->state >> 27;
	return (c->state * 0x2545F4914F6CDD1Du >> 32) % sides;
}

/* --- what is kept of what was not synced -------------------------------------------------- */

static int keep_piece(struct node *n, int64_t at, int64_t length)
{
	uint8_t piece[LOSSY_BLOCK];
	ssize_t got = pread(n->live, piece, (size_t)length, at);

	if (got < 0 || pwrite(n->durable, piece, (size_t)got, at) != got)
		return -errno;
	return 0;
}

/* Blocks of one file: any of them, or the first few of which the last is torn. */
static int keep_blocks(struct node *n, bool some, struct chance *c)
{
	size_t dirty = 0, left;
	int rc = 0;

	for (size_t i = 0; i < n->n_dirty; i++)
		dirty += n->dirty[i];
	left = roll(c, dirty + 1);
	for (size_t i = 0; i < n->n_dirty && rc == 0; i++) {
		int64_t length = LOSSY_BLOCK;

		if (!n->dirty[i] || (some && roll(c, 2)))
			continue;
		if (!some && left-- == 0)
			break;
		if (!some && left == 0)
			length = LOSSY_SECTOR * (int64_t)(1 + roll(c, LOSSY_BLOCK / LOSSY_SECTOR));
		rc = keep_piece(n, (int64_t)i * LOSSY_BLOCK, length);
	}
	return rc;
}

static int keep_some_of_file(struct store *s, struct node *n, bool some, struct chance *c)
{
	struct stat st;
	int rc;

	if (!n->changed || n->live < 0)
		return 0;
	rc = content_will_change(s, n);
	if (rc < 0)
		return rc;
	if (n->durable < 0) { /* never synced */
		char name[LINK_SIZE];

		snprintf(name, sizeof(name), "%" PRIu64, n->number);
		n->durable = openat(s->durable, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (n->durable < 0)
			return -errno;
	}
	if (n->shrunk_to >= 0 && roll(c, 2) && ftruncate(n->durable, n->shrunk_to) < 0)
		return -errno;
	rc = keep_blocks(n, some, c);
	if (rc == 0 && roll(c, 3) == 0 && /* its length alone, too */
	    (fstat(n->live, &st) < 0 || ftruncate(n->durable, st.st_size) < 0))
		rc = -errno;
	return rc;
}

static int keep_some(struct store *s, bool some, struct chance *c)
{
	uint64_t n_changes = 0, first;
	int rc = 0;

	for (struct change *e = s->changes; e; e = e->next)
		n_changes++;
	first = roll(c, n_changes + 1);
	for (uint64_t i = 1; i < s->n_nodes && rc == 0; i++)
		if (s->nodes[i])
			rc = keep_some_of_file(s, s->nodes[i], some, c);
	for (struct change *e = s->changes; e; e = e->next)
		if (some ? roll(c, 2) : first-- > 0)
			names_apply(s, e, NULL);
		else if (!some)
			break;
	return rc;
}

/* --- the tree ----------------------------------------------------------------------------- */

static int write_file(const struct store *s, const struct node *n, int into, const char *name)
{
	char number[LINK_SIZE];
	int fd;

	snprintf(number, sizeof(number), "%" PRIu64, n->number);
	if (n->same || n->durable >= 0) {
		if (linkat(n->same ? s->live : s->durable, number, into, name, 0) < 0)
			return -errno;
	} else {
		fd = openat(into, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			return -errno;
		close(fd);
	}
	if (fchownat(into, name, n->st.st_uid, n->st.st_gid, 0) < 0 ||
	    fchmodat(into, name, n->st.st_mode & 07777, 0) < 0)
		return -errno;
	return 0;
}

static int write_folder(const struct store *s, const struct node *folder, int into)
{
	int rc = 0;

	for (const struct name *e = folder->durable_names; e && rc == 0; e = e->next) {
		mode_t mode = e->to->st.st_mode;
		int fd;

		if (S_ISREG(mode))
			rc = write_file(s, e->to, into, e->text);
		if (!S_ISDIR(mode))
			continue;
		if (mkdirat(into, e->text, 0700) < 0)
			return -errno;
		fd = openat(into, e->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		rc = write_folder(s, e->to, fd);
		if (fchown(fd, e->to->st.st_uid, e->to->st.st_gid) < 0 ||
		    fchmod(fd, mode & 07777) < 0)
			rc = -errno;
		close(fd);
	}
	return rc;
}

int cut(struct store *s, const char *how, uint64_t seed)
{
	struct chance c = { seed * 0x9E3779B97F4A7C15u + 1 };
	int rc = 0;

	if (strcmp(how, "none") != 0)
		rc = keep_some(s, strcmp(how, "some") == 0, &c);
	if (rc == 0)
		rc = write_folder(s, s->nodes[1], s->tree);
	if (rc == 0 && (fchown(s->tree, s->nodes[1]->st.st_uid, s->nodes[1]->st.st_gid) < 0 ||
			fchmod(s->tree, s->nodes[1]->st.st_mode & 07777) < 0))
		rc = -errno;
	return rc;
}

/* --- read --------------------------------------------------------------------------------- */

struct beside { /* a file that was met under another name */
	ino_t inode;
	struct node *node;
};

struct reading {
	struct store *store;
	struct beside known[BESIDE_MAX];
	size_t n_known;
};

static int read_file(struct reading *r, int at, const char *name, const struct stat *st,
		     struct node **ret)
{
	char number[LINK_SIZE];
	int rc;

	for (size_t i = 0; i < r->n_known; i++)
		if (r->known[i].inode == st->st_ino) {
			*ret = r->known[i].node;
			return 0;
		}
	rc = node_make(r->store, st->st_mode, st->st_uid, st->st_gid, ret);
	if (rc < 0)
		return rc;
	snprintf(number, sizeof(number), "%" PRIu64, (*ret)->number);
	close((*ret)->live);
	if (unlinkat(r->store->live, number, 0) < 0 ||
	    linkat(at, name, r->store->live, number, 0) < 0)
		return -errno;
	(*ret)->live = openat(r->store->live, number, O_RDWR | O_CLOEXEC);
	(*ret)->same = true;
	(*ret)->changed = false;
	if (st->st_nlink > 1 && r->n_known < BESIDE_MAX)
		r->known[r->n_known++] = (struct beside){ st->st_ino, *ret };
	return (*ret)->live < 0 ? -errno : 0;
}

/* Moves it all into the store: the folder is empty afterwards. */
static int read_folder(struct reading *r, struct node *folder, int at)
{
	DIR *d = fdopendir(dup(at));
	struct dirent *e;
	int rc = 0;

	if (!d)
		return -errno;
	while (rc == 0 && (e = readdir(d))) {
		bool is_folder;
		struct node *n;
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (fstatat(at, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			rc = -errno;
			break;
		}
		is_folder = S_ISDIR(st.st_mode);
		rc = is_folder ? node_make(r->store, st.st_mode, st.st_uid, st.st_gid, &n)
			       : read_file(r, at, e->d_name, &st, &n);
		if (rc == 0)
			rc = names_found(r->store, folder, e->d_name, n);
		if (rc == 0 && is_folder) {
			int below = openat(at, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			rc = below < 0 ? -errno : read_folder(r, n, below);
			close(below);
		}
		if (rc == 0 && unlinkat(at, e->d_name, is_folder ? AT_REMOVEDIR : 0) < 0)
			rc = -errno;
	}
	closedir(d);
	return rc;
}

int tree_read(struct store *s)
{
	static struct reading r;

	r = (struct reading){ .store = s };
	if (fstat(s->tree, &s->nodes[1]->st) < 0)
		return -errno;
	return read_folder(&r, s->nodes[1], s->tree);
}
