/* work.c - moving bytes, all of them or none. */
/* #syscalls: pread64 pwrite64 fstat newfstatat poll fdatasync fadvise64 */
#include "copier/work.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/crc32c.h"

int work_memory_bytes(const struct work *w, uint64_t *ret, struct err *err)
{
	struct stat st;

	if (fstat(w->memory, &st) < 0)
		return err_set(err, ERR_INTERNAL, errno, "stat the memory file");
	*ret = (uint64_t)st.st_size;
	return 0;
}

int work_read(int fd, void *to, size_t n, uint64_t at, struct err *err)
{
	uint8_t *next = to;

	while (n > 0) {
		ssize_t got = pread(fd, next, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_set(err, ERR_UNAVAILABLE, got < 0 ? errno : 0,
				       "read %zu bytes at %lu", n, at);
		next += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

int work_write(int fd, const void *from, size_t n, uint64_t at, struct err *err)
{
	const uint8_t *next = from;

	while (n > 0) {
		ssize_t put = pwrite(fd, next, n, (off_t)at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return err_set(err, errno == ENOSPC ? ERR_EXHAUSTED : ERR_UNAVAILABLE,
				       put < 0 ? errno : 0, "write %zu bytes at %lu", n, at);
		next += put;
		at += (uint64_t)put;
		n -= (size_t)put;
	}
	return 0;
}

int work_go_on(const struct work *w, struct err *err)
{
	struct pollfd p = { .fd = w->control, .events = POLLRDHUP };

	if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR)))
		return err_set(err, ERR_UNAVAILABLE, 0, "nobody waits for the copy any more");
	return 0;
}

/* The checksum is linear but for its beginning: with as many zeros in b's place, and without a. */
uint32_t work_crc_join(uint32_t a, uint32_t b, uint64_t n)
{
	return crc32c_zeros(a, n) ^ crc32c_zeros(0, n) ^ b;
}

/* On the disk, then read from there. */
static int check_file(const struct work *w, int fd, uint64_t bytes, uint32_t crc, const char *what,
		      struct err *err)
{
	uint32_t found = 0;
	struct stat st;

	if (fdatasync(fd) < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "sync the %s", what);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	for (uint64_t at = 0; at < bytes; at += WORK_PIECE) {
		size_t n = bytes - at < WORK_PIECE ? (size_t)(bytes - at) : WORK_PIECE;

		if (work_go_on(w, err) < 0 || work_read(fd, w->piece, n, at, err) < 0)
			return err_wrap(err, "read the %s again", what);
		found = crc32c(found, (struct bytes){ w->piece, n });
	}
	if ((uint64_t)st.st_size != bytes || found != crc)
		return err_set(err, ERR_INTERNAL, 0, "the %s is not what was written", what);
	return 0;
}

int work_sync(struct work *w, struct copier_reply *ret, struct err *err)
{
	const struct copier_reply *d = &w->done;

	if (d->pages_bytes == 0)
		return err_set(err, ERR_INVALID, 0, "nothing was copied");
	if (check_file(w, w->pages, d->pages_bytes, d->pages_crc, "pages", err) < 0 ||
	    check_file(w, w->state, d->state_bytes, d->state_crc, "device state", err) < 0)
		return -1;
	*ret = *d;
	return 0;
}
