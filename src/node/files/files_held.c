/* files_held.c - descriptors that can do nothing but be closed. */
/* #syscalls: openat openat2 getdents64 close */
#include "node/files/files_held.h"

#include <fcntl.h>

#include "base/folder.h"

static int hold_one(int dir, const char *name, void *context, struct err *err)
{
	struct files_held *h = context;
	int fd = h->n < FILES_HELD_MAX ? folder_open(dir, name, O_PATH, 0, err) : -1;

	if (fd >= 0)
		h->fds[h->n++] = fd;
	return 0; /* one that is not held is waited for, no worse */
}

void files_hold(struct files_held *h, int dir, const char *name)
{
	struct err ignored;
	AUTO(auto_close)
	int folder = folder_open(dir, name, O_RDONLY | O_DIRECTORY, 0, &ignored);

	if (folder >= 0)
		(void)!folder_each(folder, hold_one, h, &ignored);
}

void files_let_go(struct files_held *h)
{
	while (h->n > 0)
		close(h->fds[--h->n]);
}
