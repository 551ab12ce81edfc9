/* work.c - see work.h. */
/* #syscalls: pread64 pwrite64 fstat newfstatat poll fdatasync */
#include "copier/work.h"

#include <errno.h>
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

/* --- durable -------------------------------------------------------------------------------- */

/* One file: on the disk, and as anybody who reads it after this sees it. */
struct saved_file {
	int fd;
	uint64_t bytes;
	uint32_t crc;
	const char *what;
	uint8_t *piece;
};

enum { SYNC_PAGES, CHECK_PAGES, SYNC_STATE, CHECK_STATE, SYNC_UNITS };

struct syncing {
	struct crew_task task;
	const struct work *w;
	struct saved_file files[2];
};

static int sync_file(const struct saved_file *f, struct err *err)
{
	if (fdatasync(f->fd) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "sync the %s", f->what);
	return 0;
}

static int check_file(const struct work *w, const struct saved_file *f, struct err *err)
{
	uint32_t found = 0;
	struct stat st;

	if (fstat(f->fd, &st) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "look at the %s", f->what);
	for (uint64_t at = 0; at < f->bytes; at += WORK_PIECE) {
		size_t n = f->bytes - at < WORK_PIECE ? (size_t)(f->bytes - at) : WORK_PIECE;

		if (work_go_on(w, err) < 0 || work_read(f->fd, f->piece, n, at, err) < 0)
			return err_wrap(err, "read the %s again", f->what);
		found = crc32c(found, (struct bytes){ f->piece, n });
	}
	if ((uint64_t)st.st_size != f->bytes || found != f->crc)
		return err_set(err, ERR_INTERNAL, 0, "the %s is not what was written", f->what);
	return 0;
}

/* Reading again beside the disk's writing: it is the kernel's copy of the file that is read, and
 * that same copy is what the disk gets. */
static int sync_unit(struct crew_task *t, unsigned int member, uint64_t unit, struct err *err)
{
	struct syncing *s = CONTAINER_OF(t, struct syncing, task);
	const struct saved_file *f = &s->files[unit >= SYNC_STATE];

	(void)member;
	return unit == SYNC_PAGES || unit == SYNC_STATE ? sync_file(f, err)
							: check_file(s->w, f, err);
}

int work_sync(struct work *w, struct copier_reply *ret, struct err *err)
{
	const struct copier_reply *d = &w->done;
	struct syncing s = {
		{ sync_unit },
		w,
		{ { w->pages, d->pages_bytes, d->pages_crc, "pages", w->piece },
		  { w->state, d->state_bytes, d->state_crc, "device state", w->other } },
	};

	if (d->pages_bytes == 0 || d->state_bytes == 0)
		return err_set(err, ERR_INVALID, 0, "nothing was copied");
	if (crew_run(w->crew, &s.task, SYNC_UNITS, err) < 0)
		return -1;
	*ret = *d;
	return 0;
}
