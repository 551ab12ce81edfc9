/* snapshot_join.c - reads a file of pages into a copy of the memory it was compared with.
 *
 * It was written by a copier under the guest's influence: it is read as any other input, and what
 * it does not describe completely is refused.
 */
/* #syscalls: openat2 fstat newfstatat pread64 pwrite64 unlinkat ftruncate fallocate lseek
 *	copy_file_range ioctl mmap munmap close */
#include "node/files/snapshot_join.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/folder.h"
#include "copier/pages.h"

enum { PIECE = 1024 * 1024 };

struct join {
	int pages, memory;
	struct pages_head head;
	struct pages_run *runs; /* owned */
	uint8_t *piece;         /* owned */
	uint64_t at;            /* in the file of pages */
	uint32_t crc;
};

static void join_done(struct join *j)
{
	free(j->runs);
	free(j->piece);
	auto_close(&j->pages);
	auto_close(&j->memory);
}

static int read_all(int fd, void *to, size_t n, uint64_t at, struct err *err)
{
	uint8_t *p = to;

	while (n > 0) {
		ssize_t k = pread(fd, p, n, (off_t)at);

		if (k <= 0)
			return err_set(err, ERR_INTERNAL, k < 0 ? errno : 0,
				       "read the copied pages");
		p += k;
		at += (uint64_t)k;
		n -= (size_t)k;
	}
	return 0;
}

static int write_all(int fd, const uint8_t *p, size_t n, uint64_t at, struct err *err)
{
	while (n > 0) {
		ssize_t k = pwrite(fd, p, n, (off_t)at);

		if (k < 0)
			return err_set(err, ERR_INTERNAL, errno, "write the memory");
		p += k;
		at += (uint64_t)k;
		n -= (size_t)k;
	}
	return 0;
}

static int read_table(struct join *j, struct err *err)
{
	struct stat pages, memory;
	size_t bytes;

	if (fstat(j->pages, &pages) < 0 || fstat(j->memory, &memory) < 0)
		return err_set(err, ERR_INTERNAL, errno, "look at the copied pages");
	if (read_all(j->pages, &j->head, sizeof(j->head), 0, err) < 0 ||
	    pages_head_check(&j->head, (uint64_t)pages.st_size, (uint64_t)memory.st_size, err) < 0)
		return -1;
	bytes = j->head.runs * sizeof(struct pages_run);
	j->runs = malloc(bytes ? bytes : 1);
	j->piece = calloc(1, PIECE);
	if (!j->runs || !j->piece)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "the table of pages");
	if (read_all(j->pages, j->runs, bytes, pages_table_at(&j->head), err) < 0)
		return -1;
	if (crc32c(0, (struct bytes){ (const uint8_t *)j->runs, bytes }) != j->head.runs_crc)
		return err_set(err, ERR_INVALID, 0, "the table of pages is damaged");
	if (pages_runs_check(&j->head, j->runs, err) < 0)
		return -1;
	pages_runs_sort(j->runs, j->head.runs);
	return 0;
}

static int write_zeros(struct join *j, uint64_t at, uint64_t bytes, struct err *err)
{
	if (fallocate(j->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
		      (off_t)bytes) == 0)
		return 0;
	memset(j->piece, 0, PIECE);
	for (uint64_t done = 0; done < bytes;) {
		size_t n = bytes - done < PIECE ? (size_t)(bytes - done) : PIECE;

		if (write_all(j->memory, j->piece, n, at + done, err) < 0)
			return -1;
		done += n;
	}
	return 0;
}

/* Over copies that nobody uses, which count for the checksum only. */
static int skip_to(struct join *j, uint64_t to, struct err *err)
{
	if (to < j->at)
		return err_set(err, ERR_INVALID, 0, "two pages have one copy");
	while (j->at < to) {
		size_t n = to - j->at < PIECE ? (size_t)(to - j->at) : PIECE;

		if (read_all(j->pages, j->piece, n, j->at, err) < 0)
			return -1;
		j->crc = crc32c(j->crc, (struct bytes){ j->piece, n });
		j->at += n;
	}
	return 0;
}

static int write_run(struct join *j, const struct pages_run *r, struct err *err)
{
	uint64_t at = r->first * PAGES_BYTES, bytes = (uint64_t)r->count * PAGES_BYTES;

	if (r->flags & PAGES_ZERO)
		return write_zeros(j, at, bytes, err);
	if (skip_to(j, PAGES_DATA_AT + r->copy * PAGES_BYTES, err) < 0)
		return -1;
	for (uint64_t done = 0; done < bytes;) {
		size_t n = bytes - done < PIECE ? (size_t)(bytes - done) : PIECE;

		if (read_all(j->pages, j->piece, n, j->at, err) < 0 ||
		    write_all(j->memory, j->piece, n, at + done, err) < 0)
			return -1;
		j->crc = crc32c(j->crc, (struct bytes){ j->piece, n });
		j->at += n;
		done += n;
	}
	return 0;
}

static int write_runs(struct join *j, struct err *err)
{
	j->at = PAGES_DATA_AT;
	for (uint64_t i = 0; i < j->head.runs; i++)
		if (write_run(j, &j->runs[i], err) < 0)
			return -1;
	if (skip_to(j, pages_table_at(&j->head), err) < 0)
		return -1;
	if (j->crc != j->head.data_crc)
		return err_set(err, ERR_INVALID, 0, "the copied pages are damaged");
	return 0;
}

static int join_open(struct join *j, int folder, struct err *err)
{
	j->memory = folder_open(folder, "memory", O_RDWR | O_CREAT | O_EXCL, 0600, err);
	if (j->memory < 0)
		return -1;
	j->pages = folder_open(folder, "pages", O_RDONLY, 0, err);
	return j->pages < 0 ? -1 : 0;
}

static int join_all(struct join *j, uint32_t base_crc, int folder, struct err *err)
{
	if (read_table(j, err) < 0 || pages_base_check(&j->head, base_crc, err) < 0 ||
	    write_runs(j, err) < 0)
		return -1;
	if (unlinkat(folder, "pages", 0) < 0)
		return err_set(err, ERR_INTERNAL, errno, "remove the copied pages");
	return 0;
}

int snapshot_join(int below, uint32_t base_crc, int folder, struct err *err)
{
	AUTO(join_done) struct join j = { .pages = -1, .memory = -1 };

	if (join_open(&j, folder, err) < 0 || folder_copy(below, j.memory, err) < 0)
		return -1;
	return join_all(&j, base_crc, folder, err);
}

int snapshot_join_blank(uint64_t bytes, int folder, struct err *err)
{
	AUTO(join_done) struct join j = { .pages = -1, .memory = -1 };

	if (join_open(&j, folder, err) < 0)
		return -1;
	if (ftruncate(j.memory, (off_t)bytes) < 0)
		return err_set(err, ERR_INTERNAL, errno, "size the memory");
	return join_all(&j, 0, folder, err);
}
