/* tls_files.c - see tls_files.h. */
#include "cli/tls_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/read_all.h"
#include "cli/write_file.h"

#define DEFAULT_OWNER "hotcell-signer"

enum { FOLDER_MODE = 0755, CHAIN_MODE = 0644, KEY_MODE = 0400, DRAFT_SIZE = DOMAIN_SIZE + 8 };

static int find_owner(const char *name, uid_t *ret, struct err *err)
{
	const struct passwd *user;
	uint64_t number;

	if (bytes_to_u64(bytes_str(name), &number) && number < UINT32_MAX) {
		*ret = (uid_t)number;
		return 0;
	}
	user = getpwnam(name);
	if (!user)
		return err_set(err, ERR_NOT_FOUND, 0,
			       "there is no user %.64s, who is to read the keys: deploy/install "
			       "makes it, or name another with --owner",
			       name);
	*ret = user->pw_uid;
	return 0;
}

static int open_to_write(const struct cli *c, struct tls_files *f, struct err *err)
{
	if (find_owner(c->owner ?: DEFAULT_OWNER, &f->owner, err) < 0)
		return -1;
	f->dir = folder_ensure(f->path, FOLDER_MODE, err);
	if (f->dir < 0)
		return -1;
	if (flock(f->dir, LOCK_EX) < 0)
		return err_set(err, ERR_INTERNAL, errno, "lock %s", f->path);
	return 0;
}

int tls_files_open(const struct cli *c, bool writes, struct tls_files *ret, struct err *err)
{
	*ret = (struct tls_files){ .path = c->tls_dir, .dir = -1 };
	if (c->tls_dir[0] != '/')
		return err_set(err, ERR_INVALID, 0, "--tls-dir wants a path that begins with /");
	if (writes)
		return open_to_write(c, ret, err);
	ret->dir = open(c->tls_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->dir < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open %.200s", c->tls_dir);
	return 0;
}

void tls_files_close(struct tls_files *f)
{
	auto_close(&f->dir);
	f->dir = -1;
}

int tls_files_read(const struct tls_files *f, const char *path, struct buf *ret, struct err *err)
{
	AUTO(auto_close) int fd = folder_open(f->dir, path, O_RDONLY | O_NONBLOCK, 0, err);

	if (fd < 0 || read_all(fd, ret, err) < 0)
		return err_wrap(err, "%s", f->path);
	return 0;
}

static int write_chain(int dir, const char *name, const struct tls_pair *p, struct err *err)
{
	return write_new(dir, name, p->chain,
			 &(struct write_how){ CHAIN_MODE, geteuid(), (gid_t)-1, false }, err);
}

static int write_key(int dir, const char *name, const struct tls_pair *p, struct err *err)
{
	return write_new(dir, name, p->key,
			 &(struct write_how){ KEY_MODE, p->key_owner, (gid_t)-1, false }, err);
}

static void draft_of(const char *name, char ret[static DRAFT_SIZE])
{
	snprintf(ret, DRAFT_SIZE, ".%.*s.new", DOMAIN_MAX, name);
}

static int put_folder(const struct tls_files *f, const char *name, const struct tls_pair *p,
		      struct err *err)
{
	AUTO(auto_close) int dir = -1;
	char draft[DRAFT_SIZE];

	draft_of(name, draft);
	if (folder_remove(f->dir, draft, err) < 0)
		return -1;
	dir = folder_make(f->dir, draft, FOLDER_MODE, err);
	if (dir < 0 || write_chain(dir, p->chain_name, p, err) < 0 ||
	    write_key(dir, p->key_name, p, err) < 0)
		return -1;
	if (fsync(dir) < 0 || renameat2(f->dir, draft, f->dir, name, RENAME_NOREPLACE) < 0 ||
	    fsync(f->dir) < 0)
		return err_set(err, ERR_INTERNAL, errno, "put %s in its place", name);
	return 0;
}

/* The key first: who sees the new certificate finds its key. */
static int replace_files(int dir, const struct tls_pair *p, struct err *err)
{
	char chain[DRAFT_SIZE], key[DRAFT_SIZE];

	draft_of(p->chain_name, chain);
	draft_of(p->key_name, key);
	if (write_chain(dir, chain, p, err) < 0 || write_key(dir, key, p, err) < 0)
		return -1;
	if (renameat(dir, key, dir, p->key_name) < 0 || fsync(dir) < 0 ||
	    renameat(dir, chain, dir, p->chain_name) < 0 || fsync(dir) < 0)
		return err_set(err, ERR_INTERNAL, errno, "put %s in its place", p->chain_name);
	return 0;
}

int tls_files_put(const struct tls_files *f, const char *folder, const struct tls_pair *p,
		  struct err *err)
{
	AUTO(auto_close) int dir = folder_open(f->dir, folder, O_RDONLY | O_DIRECTORY, 0, err);
	int rc;

	if (dir >= 0)
		rc = replace_files(dir, p, err);
	else
		rc = err->code == ERR_NOT_FOUND ? put_folder(f, folder, p, err) : -1;
	return rc < 0 ? err_wrap(err, "%s/%.100s", f->path, folder) : 0;
}

int tls_files_put_text(const struct tls_files *f, const char *folder, const char *name,
		       struct bytes text, struct err *err)
{
	AUTO(auto_close) int dir = folder_open(f->dir, folder, O_RDONLY | O_DIRECTORY, 0, err);

	if (dir < 0 ||
	    write_file(dir, name, text,
		       &(struct write_how){ CHAIN_MODE, geteuid(), (gid_t)-1, true }, err) < 0)
		return err_wrap(err, "%s/%.100s", f->path, folder);
	return 0;
}
