/* cert_dir.c - see cert_dir.h. */
/* Who looks names the system calls: openat openat2 getdents64 fcntl fstat newfstatat read close
 * lseek. */
#include "tls/cert_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/read_all.h"

enum { PATH_SIZE = CERT_NAME_MAX + 32 };

struct look {
	const char *file;
	struct cert_files *ret;
};

static int64_t ns_of(struct timespec t)
{
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* In the order of names. */
static struct cert_file *make_room(struct cert_files *f, const char *name)
{
	size_t at = f->n++;

	for (; at > 0 && strcmp(f->file[at - 1].name, name) > 0; at--)
		f->file[at] = f->file[at - 1];
	return &f->file[at];
}

static int each(int dir, const char *name, void *context, struct err *err)
{
	const struct look *l = context;
	struct cert_file *f;
	char path[PATH_SIZE];
	struct stat st;

	(void)err;
	if (name[0] == '.')
		return 0;
	if (strlen(name) > CERT_NAME_MAX || l->ret->n == CERT_DIR_MAX) {
		l->ret->left_out++;
		return 0;
	}
	snprintf(path, sizeof(path), "%s/%s", name, l->file);
	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	f = make_room(l->ret, name);
	*f = (struct cert_file){ .stamp = { st.st_ino, (uint64_t)st.st_size, ns_of(st.st_ctim),
					    ns_of(st.st_mtim) },
				 .mode = st.st_mode };
	memcpy(f->name, name, strlen(name));
	return 0;
}

int cert_dir_look(int dir, const char *file, struct cert_files *ret, struct err *err)
{
	struct look l = { file, ret };

	ret->n = ret->left_out = 0;
	return folder_each(dir, each, &l, err);
}

bool cert_stamp_eq(const struct cert_stamp *a, const struct cert_stamp *b)
{
	return a->ino == b->ino && a->size == b->size && a->changed_ns == b->changed_ns &&
	       a->written_ns == b->written_ns;
}

int cert_dir_read(int dir, const char *name, const char *file, struct buf *ret, struct err *err)
{
	AUTO(auto_close) int fd = -1;
	char path[PATH_SIZE];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", name, file);
	fd = folder_open(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, err);
	if (fd < 0 && err->sys == ELOOP)
		return err_set(err, ERR_INVALID, ELOOP, "%s is a link: copy the file", path);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, 0, "%s is not a file", path);
	return read_all(fd, ret, err) < 0 ? err_wrap(err, "%s", path) : 0;
}
