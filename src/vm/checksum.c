/* checksum.c - walks the data of a file, and steps over its holes. */
/* #syscalls: fstat newfstatat lseek pread64 */
#include "vm/checksum.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/crc32c.h"

struct walk {
	int fd;
	const atomic_bool *stop;
	uint8_t *chunk; /* CHECKSUM_CHUNK bytes */
	uint32_t crc;
};

static int add_data(struct walk *w, off_t at, off_t end, struct err *err)
{
	while (at < end) {
		size_t want = end - at < CHECKSUM_CHUNK ? (size_t)(end - at) : CHECKSUM_CHUNK;
		ssize_t got = pread(w->fd, w->chunk, want, at);

		if (atomic_load_explicit(w->stop, memory_order_relaxed))
			return err_set(err, ERR_UNAVAILABLE, 0, "checksum: told to stop");
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, ERR_INTERNAL, errno, "checksum: read");
		if (got == 0)
			return err_set(err, ERR_UNAVAILABLE, 0, "checksum: the file shrinks");
		w->crc = crc32c(w->crc, (struct bytes){ w->chunk, (size_t)got });
		at += got;
	}
	return 0;
}

struct stretch {
	off_t from, to;
};

/* The next data at or after `at`; both ends are `size` when only a hole is left. */
static int next_data(int fd, off_t at, off_t size, struct stretch *ret, struct err *err)
{
	off_t from = lseek(fd, at, SEEK_DATA), to;

	*ret = (struct stretch){ size, size };
	if (from < 0 && errno == ENXIO)
		return 0;
	to = from < 0 ? -1 : lseek(fd, from, SEEK_HOLE);
	if (to < 0)
		return err_set(err, ERR_INTERNAL, errno, "checksum: find data");
	ret->from = from < size ? from : size;
	ret->to = to < size ? to : size;
	return 0;
}

static int walk_file(struct walk *w, off_t size, struct err *err)
{
	off_t at = 0;

	while (at < size) {
		struct stretch data;

		if (next_data(w->fd, at, size, &data, err) < 0)
			return -1;
		w->crc = crc32c_zeros(w->crc, (uint64_t)(data.from - at));
		if (add_data(w, data.from, data.to, err) < 0)
			return -1;
		at = data.to;
	}
	return 0;
}

int checksum_file(int fd, const atomic_bool *stop, struct checksum *ret, struct err *err)
{
	AUTO(auto_free) uint8_t *chunk = malloc(CHECKSUM_CHUNK);
	struct walk w = { .fd = fd, .stop = stop, .chunk = chunk };
	struct stat st;

	if (!chunk)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "checksum");
	if (fstat(fd, &st) < 0)
		return err_set(err, ERR_INTERNAL, errno, "checksum: stat");
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, 0, "checksum: not a regular file");
	if (walk_file(&w, st.st_size, err) < 0)
		return -1;
	*ret = (struct checksum){ (uint64_t)st.st_size, w.crc };
	return 0;
}
