/* descriptors.c - first all of them out of the way, then each to its number. */
#include "jail/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

enum { HIGH_FD = 64 };

static_assert((int)HIGH_FD >= (int)DESCRIPTORS_MAX, "copies are out of the way");

int descriptors_arrange(const int *fds, size_t n, int *also, struct err *err)
{
	int high[DESCRIPTORS_MAX];
	bool whole;

	assert(n <= DESCRIPTORS_MAX);
	*also = fcntl(*also, F_DUPFD_CLOEXEC, HIGH_FD);
	whole = *also >= 0;
	for (size_t i = 0; i < n; i++) {
		high[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
		whole &= fds[i] < 0 || high[i] >= 0;
	}
	if (!whole || close_range(0, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return err_set(err, ERR_INTERNAL, errno, "arrange descriptors");
	for (int i = 0; i < (int)n; i++)
		if (high[i] >= 0 ? dup2(high[i], i) < 0 : close(i) < 0 && errno != EBADF)
			return err_set(err, ERR_INTERNAL, errno, "arrange descriptor %d", i);
	return 0;
}

int descriptors_check(int fd, mode_t type, int access, const char *what, struct err *err)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_INVALID, errno, "%s: not a descriptor of use", what);
	if ((st.st_mode & S_IFMT) != type)
		return err_set(err, ERR_INVALID, 0, "%s: not a %s", what,
			       type == S_IFREG ? "regular file" : "socket");
	if ((flags & (O_ACCMODE | O_PATH | O_APPEND)) != access)
		return err_set(err, ERR_INVALID, 0, "%s: not opened for %s", what,
			       access == O_RDONLY ? "reading alone" : "reading and writing");
	return 0;
}
