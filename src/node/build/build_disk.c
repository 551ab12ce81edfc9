/* build_disk.c - see build_disk.h. */
#include "node/build/build_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/own.h"
#include "node/node.h"

enum { PATH_SIZE = 64 };

static const char *path_of(const char *build_id, const char *name, char ret[static PATH_SIZE])
{
	snprintf(ret, PATH_SIZE, "%s/%s", build_id, name);
	return ret;
}

int build_disk_make(struct node *n, const char *build_id, const char *name, int *ret_out,
		    int *ret_in, struct err *err)
{
	char path[PATH_SIZE];
	int dir = n->catalog.builds_dir, rc;
	AUTO(auto_close) int in = -1;
	AUTO(auto_close)
	int out = folder_open(dir, path_of(build_id, name, path), O_CREAT | O_EXCL | O_RDWR, 0600,
			      err);

	if (out < 0)
		return -1;
	in = folder_open(dir, path, O_RDONLY, 0, err);
	rc = unlinkat(dir, path, 0);
	if (in < 0 || rc < 0)
		return in < 0 ? -1 : err_set(err, ERR_INTERNAL, errno, "unlink %s", path);
	*ret_out = take_fd(&out);
	*ret_in = take_fd(&in);
	return 0;
}

void build_disk_sweep(struct node *n, const char *build_id)
{
	static const char *const names[] = { BUILD_DISK, BUILD_ARCHIVE };
	char path[PATH_SIZE];

	for (size_t i = 0; i < COUNT(names); i++)
		if (unlinkat(n->catalog.builds_dir, path_of(build_id, names[i], path), 0) < 0 &&
		    errno != ENOENT)
			log_warn("builds/%s: %s", path, strerror(errno));
}
