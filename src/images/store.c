/* store.c - see store.h. */
#include "images/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/folder.h"
#include "base/read_all.h"
#include "images/given.h"
#include "tls/digest.h"
#include "wire/sha256.h"

enum { PIECE = 256 * 1024, BLOB_MODE = 0400, MIB = 1024 * 1024 };

static const char draft[] = "text.new";

static const char *hex_of(const char *digest)
{
	return digest + IMAGE_DIGEST - IMAGE_HEX;
}

int store_open(struct store *s, const char *path, struct err *err)
{
	AUTO(auto_close) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	s->blobs = dir < 0 ? -1 : openat(dir, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->given = dir < 0 ? -1 : openat(dir, "given", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->blobs < 0 || s->given < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open %s", path);
	return 0;
}

void store_close(struct store *s)
{
	if (s->blobs >= 0)
		close(take_fd(&s->blobs));
	if (s->given >= 0)
		close(take_fd(&s->given));
}

/* --- hashing ---------------------------------------------------------------------------------- */

static int hash_file(int fd, struct digest *sum, uint64_t *ret_size, struct err *err)
{
	AUTO(auto_free) uint8_t *piece = malloc(PIECE);
	uint64_t at = 0;
	ssize_t n;

	if (!piece)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "hash a layer");
	while ((n = pread(fd, piece, PIECE, (off_t)at)) > 0) {
		if (digest_add(sum, (struct bytes){ piece, (size_t)n }, err) < 0)
			return -1;
		at += (uint64_t)n;
	}
	if (n < 0)
		return err_set(err, ERR_INTERNAL, errno, "read a layer");
	*ret_size = at;
	return 0;
}

void store_digest_text(const uint8_t hash[static SHA256_SIZE], char ret[static IMAGE_DIGEST + 1])
{
	int n = snprintf(ret, IMAGE_DIGEST + 1, "sha256:");

	for (size_t i = 0; i < SHA256_SIZE; i++)
		n += snprintf(ret + n, (size_t)(IMAGE_DIGEST + 1 - n), "%02x", hash[i]);
}

int store_digest(int fd, char ret[static IMAGE_DIGEST + 1], uint64_t *ret_size, struct err *err)
{
	uint8_t hash[SHA256_SIZE];
	AUTO(digest_freep) struct digest *sum = NULL;

	if (digest_new(&sum, err) < 0 || hash_file(fd, sum, ret_size, err) < 0 ||
	    digest_end(sum, hash, err) < 0)
		return -1;
	store_digest_text(hash, ret);
	return 0;
}

/* --- in and out ------------------------------------------------------------------------------- */

/* Whoever wants to remove it has to wait, or has done so already. */
static bool hold(int fd, uint64_t size)
{
	struct stat st;

	return flock(fd, LOCK_SH) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0 &&
	       S_ISREG(st.st_mode) && (size == UINT64_MAX || (uint64_t)st.st_size == size);
}

static int find(const struct store *s, const char *giver, const char *digest, uint64_t size)
{
	AUTO(auto_close) int fd = -1;

	if (!given_by(s->given, hex_of(digest), giver))
		return -1;
	fd = openat(s->blobs, hex_of(digest), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !hold(fd, size)) /* what is fetched instead takes its place */
		return -1;
	(void)futimens(fd, NULL);
	return take_fd(&fd);
}

int store_find(const struct store *s, const char *digest, uint64_t size)
{
	return find(s, s->registry, digest, size);
}

bool store_read(const struct store *s, const char *digest, struct buf *ret)
{
	AUTO(auto_close) int fd = find(s, s->repository, digest, UINT64_MAX);
	struct err err;

	return fd >= 0 && read_all(fd, ret, &err) == 0;
}

static int publish(const struct store *s, int fd, int dir, const char *name, const char *digest,
		   struct err *err)
{
	if (fchmod(fd, BLOB_MODE) < 0 || fsync(fd) < 0 ||
	    renameat(dir, name, s->blobs, hex_of(digest)) < 0 || fsync(s->blobs) < 0)
		return err_set(err, errno == ENOSPC ? ERR_NO_SPACE : ERR_INTERNAL, errno,
			       "keep a layer");
	return 0;
}

int store_keep(const struct store *s, int dir, const char *name, const struct oci_blob *blob,
	       struct err *err)
{
	AUTO(auto_close) int fd = folder_open(dir, name, O_RDONLY, 0, err);
	char digest[IMAGE_DIGEST + 1];
	uint64_t size;

	if (fd < 0)
		return -1;
	/* the disk works while we hash: publish() waits for it */
	(void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	if (store_digest(fd, digest, &size, err) < 0)
		return -1;
	if (size != blob->size || strcmp(digest, blob->digest) != 0)
		return err_set(err, ERR_INVALID, 0, "layer %.19s is not what its digest says",
			       blob->digest);
	if (flock(fd, LOCK_SH) < 0)
		return err_set(err, ERR_INTERNAL, errno, "hold a layer");
	if (publish(s, fd, dir, name, blob->digest, err) < 0)
		return -1;
	given_note(s->given, hex_of(blob->digest), s->registry);
	return take_fd(&fd);
}

int store_add(const struct store *s, int dir, struct bytes text, char ret[static IMAGE_DIGEST + 1],
	      struct err *err)
{
	AUTO(auto_close) int fd = -1;
	uint8_t hash[SHA256_SIZE];

	sha256_of(text, hash);
	store_digest_text(hash, ret);
	if (folder_remove(dir, draft, err) < 0)
		return -1;
	fd = folder_open(dir, draft, O_WRONLY | O_CREAT | O_EXCL, 0600, err);
	if (fd < 0)
		return -1;
	if (write(fd, text.ptr, text.len) != (ssize_t)text.len)
		return err_set(err, ERR_NO_SPACE, errno, "keep a text");
	if (publish(s, fd, dir, draft, ret, err) < 0)
		return -1;
	given_note(s->given, hex_of(ret), s->repository);
	return 0;
}

/* --- room ------------------------------------------------------------------------------------- */

struct old_blob {
	int64_t used_ns;
	uint64_t bytes;
	char name[IMAGE_HEX + 1];
};

struct listing {
	struct old_blob *all;
	size_t n;
	uint64_t bytes;
};

static int list_one(int dir, const char *name, void *context, struct err *err)
{
	struct listing *l = context;
	struct old_blob *b = &l->all[l->n];
	struct stat st;

	(void)err;
	if (l->n == STORE_BLOBS_MAX || strlen(name) != IMAGE_HEX ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	b->used_ns = st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	b->bytes = (uint64_t)st.st_size;
	snprintf(b->name, sizeof(b->name), "%s", name);
	l->bytes += b->bytes;
	l->n++;
	return 0;
}

static int by_age(const void *a, const void *b)
{
	const struct old_blob *x = a, *y = b;

	return (x->used_ns > y->used_ns) - (x->used_ns < y->used_ns);
}

/* False: somebody uses it. */
static bool drop(const struct store *s, const char *name)
{
	AUTO(auto_close) int fd = openat(s->blobs, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || unlinkat(s->blobs, name, 0) < 0)
		return false;
	(void)unlinkat(s->given, name, 0);
	return true;
}

static uint64_t free_bytes(const struct store *s)
{
	struct statvfs fs;

	if (fstatvfs(s->blobs, &fs) < 0)
		return 0;
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

static bool fits(const struct store *s, const struct listing *l, uint64_t bytes)
{
	return bytes <= s->max_bytes && l->bytes <= s->max_bytes - bytes &&
	       free_bytes(s) >= bytes + s->spare_bytes;
}

int store_make_room(const struct store *s, uint64_t bytes, struct err *err)
{
	AUTO(auto_free) struct old_blob *all = calloc(STORE_BLOBS_MAX, sizeof(*all));
	struct listing l = { .all = all };

	if (!all)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "list the store");
	if (folder_each(s->blobs, list_one, &l, err) < 0)
		return -1;
	qsort(all, l.n, sizeof(*all), by_age);
	for (size_t i = 0; i < l.n && !fits(s, &l, bytes); i++)
		if (drop(s, all[i].name))
			l.bytes -= all[i].bytes;
	if (fits(s, &l, bytes))
		return 0;
	return err_set(err, ERR_NO_SPACE, 0,
		       "no room for %lu MiB of layers: the store may have %lu MiB, %lu MiB of the "
		       "disk are free and %lu stay free",
		       bytes / MIB + 1, s->max_bytes / MIB, free_bytes(s) / MIB,
		       s->spare_bytes / MIB);
}
