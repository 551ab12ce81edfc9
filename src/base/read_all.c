/* read_all.c - see read_all.h. It says nothing of system calls: not all who could use it do. */
#include "base/read_all.h"

#include <errno.h>
#include <fcntl.h>

int read_all(int fd, struct buf *ret, struct err *err)
{
	for (;;) {
		bool full = ret->len == ret->max;
		uint8_t more, *room = &more;
		ssize_t n;

		if (!full && buf_reserve(ret, 1, &room, err) < 0)
			return -1;
		n = read(fd, room, full ? 1 : ret->cap - ret->len);
		if (n < 0)
			return err_set(err, ERR_INTERNAL, errno, "read");
		if (n == 0)
			return 0;
		if (full)
			return buf_reserve(ret, 1, &room, err); /* which says how many may be */
		buf_claim(ret, (size_t)n);
	}
}

ssize_t read_text(int dir, const char *path, char *ret, size_t size)
{
	AUTO(auto_close) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

	ret[n > 0 ? n : 0] = '\0';
	return n;
}
