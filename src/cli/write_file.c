/* write_file.c - see write_file.h. */
#include "cli/write_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/folder.h"

enum { DRAFT_MODE = 0600, DRAFT_NAME_SIZE = 256 };

static int write_whole(int fd, struct bytes text)
{
	while (text.len > 0) {
		ssize_t n = write(fd, text.ptr, text.len);

		if (n < 0 && errno != EINTR)
			return -1;
		text = bytes_tail(text, n > 0 ? (size_t)n : 0);
	}
	return 0;
}

int write_new(int dir, const char *name, struct bytes text, const struct write_how *how,
	      struct err *err)
{
	AUTO(auto_close) int fd = -1;

	if (folder_remove(dir, name, err) < 0)
		return -1;
	fd = folder_open(dir, name, O_WRONLY | O_CREAT | O_EXCL, DRAFT_MODE, err);
	if (fd < 0)
		return -1;
	if (fchown(fd, how->owner, how->group) < 0)
		return err_set(err, ERR_DENIED, errno, "give %s to user %u", name, how->owner);
	if (fchmod(fd, how->mode) < 0 || write_whole(fd, text) < 0 || fsync(fd) < 0)
		return err_set(err, errno == ENOSPC ? ERR_NO_SPACE : ERR_INTERNAL, errno,
			       "write %s", name);
	return 0;
}

int write_file(int dir, const char *name, struct bytes text, const struct write_how *how,
	       struct err *err)
{
	char draft[DRAFT_NAME_SIZE];
	struct err ignored;
	int n = snprintf(draft, sizeof(draft), ".%s.new", name);

	if (n < 0 || (size_t)n >= sizeof(draft))
		return err_set(err, ERR_INVALID, 0, "%.64s...: the name is too long", name);
	if (write_new(dir, draft, text, how, err) < 0)
		return -1;
	if (renameat2(dir, draft, dir, name, how->replace ? 0 : RENAME_NOREPLACE) < 0) {
		err_set(err, errno == EEXIST ? ERR_EXISTS : ERR_INTERNAL, errno,
			"put %s in its place", name);
		(void)!folder_remove(dir, draft, &ignored);
		return -1;
	}
	return fsync(dir) < 0 ? err_set(err, ERR_INTERNAL, errno, "write the folder of %s", name)
			      : 0;
}
