/* dirs.c - see dirs.h. */
#include "agent/files/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

enum { NEW_DIR_MODE = 0755 };

int dirs_step(int dir, const char *name, const struct account *who)
{
	int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (mkdirat(dir, name, NEW_DIR_MODE) < 0)
		return errno == EEXIST ? openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fchownat(dir, name, who->uid, who->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	return openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int walk(struct bytes path, const struct account *who)
{
	AUTO(auto_close) int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];
	struct bytes segment;

	while (dir >= 0 && bytes_next(&path, '/', &segment)) {
		int next;

		if (segment.len == 0)
			continue;
		if (!bytes_to_str(segment, name, sizeof(name))) {
			errno = ENAMETOOLONG;
			return -1;
		}
		next = dirs_step(dir, name, who);
		close(dir);
		dir = next;
	}
	return dir < 0 ? -1 : 0;
}

int dirs_make(const char *path, const struct account *who)
{
	return walk(bytes_str(path), who);
}

int dirs_make_parents(const char *path, const struct account *who)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;

	return walk(bytes_head(bytes_str(path), n), who);
}
