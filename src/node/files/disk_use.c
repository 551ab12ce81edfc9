/* disk_use.c - blocks are counted, by folder. */
/* #syscalls: openat openat2 newfstatat getdents64 close */
#include "node/files/disk_use.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/own.h"

struct counting {
	struct disk_use *use;
	size_t files;
};

static int count_file(int dir, const char *name, void *context, struct err *err)
{
	struct counting *c = context;
	struct stat st;

	(void)err;
	if (++c->files > DISK_USE_FILES_MAX)
		return -1;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	*(st.st_nlink > 1 ? &c->use->shared : &c->use->own) += (uint64_t)st.st_blocks * 512;
	return 0;
}

void disk_use_of(int folder, struct disk_use *ret)
{
	struct counting c = { .use = ret };
	struct err err;

	(void)!folder_each(folder, count_file, &c, &err);
}

/* One that went meanwhile takes nothing. */
static int look_at(int dir, const char *name, void *context, struct err *err)
{
	struct disk_uses *u = context;
	struct disk_use *use = &u->all[u->n];
	AUTO(auto_close) int folder = -1;

	if (!folder_name_ok(name, sizeof(use->id)))
		return 0;
	folder = folder_open(dir, name, O_RDONLY | O_DIRECTORY, 0, err);
	if (folder < 0)
		return 0;
	snprintf(use->id, sizeof(use->id), "%s", name);
	disk_use_of(folder, use);
	return ++u->n < DISK_USE_MAX ? 0 : -1;
}

int disk_use_look(int dir, struct disk_uses *ret, struct err *err)
{
	*ret = (struct disk_uses){ .all = calloc(DISK_USE_MAX, sizeof(*ret->all)) };
	if (!ret->all)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "count blocks");
	if (folder_each(dir, look_at, ret, err) < 0 && ret->n < DISK_USE_MAX)
		return -1;
	return 0;
}

void disk_uses_done(struct disk_uses *u)
{
	free(u->all);
	*u = (struct disk_uses){ 0 };
}
