/* furnish.c - by the same entries that a layer has, so that symlinks of the image are followed
 * inside of it: /sbin/init is in /usr/sbin where the image says so. */
/* #syscalls: pread64 fstat */
#include "unpack/furnish.h"

#include <errno.h>
#include <sys/stat.h>

#include "unpack/entry.h"
#include "unpack/inode.h"
#include "unpack/limits.h"
#include "unpack/path.h"

#define AGENT "/usr/lib/hotcell/agent"
#define WHY   "/usr/bin/hotcell-why" /* agent/why.h */

enum { COPY_AT_ONCE = 256 * 1024 };

static const struct {
	const char *path;
	uint16_t mode;
} folders[] = {
	{ "/dev", 0755 }, { "/etc", 0755 },        { "/proc", 0555 }, { "/run", 0755 },
	{ "/sys", 0555 }, { "/tmp", 01777 },       { "/root", 0700 }, { "/var", 0755 },
	{ "/usr", 0755 }, { "/lost+found", 0700 }, /* which e2fsck wants */
};

/* A file that the image lacks; `always` in the place of one that it has: what container runtimes
 * put over it, too. */
static const struct {
	const char *path, *text;
	bool always;
} files[] = {
	{ "/etc/passwd",
	  "root:x:0:0:root:/root:/bin/bash\n"
	  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	  false },
	{ "/etc/group", "root:x:0:\nnogroup:x:65534:\n", false },
	{ "/etc/hostname", "hotcell\n", false },
	{ "/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 hotcell\n::1 localhost\n", false },
	{ "/etc/machine-id", "", false }, /* empty: the agent gives each guest its own */
	{ "/etc/resolv.conf", "nameserver 169.254.77.1\n", true },
};

static const char *const shells[] = { "/usr/bin/bash", "/usr/local/bin/bash" };

static void note(struct furnished *f, const char *path)
{
	assert(f->n_added < FURNISHED_MAX);
	f->added[f->n_added++] = path;
}

static int apply(struct image *im, const struct entry *e, uint32_t *ret_ino, struct err *err)
{
	struct bytes path = bytes_head(e->path, sizeof(im->path) - 1);

	(void)!bytes_to_str(path, im->path, sizeof(im->path));
	return entry_apply(im, e, ret_ino, err);
}

static int add_link(struct image *im, const char *path, const char *to, struct err *err)
{
	const struct entry e = { .kind = ENTRY_SYMLINK,
				 .path = bytes_str(path),
				 .link = bytes_str(to),
				 .attributes = { .seconds = DISK_TIME } };
	uint32_t ino;

	return apply(im, &e, &ino, err);
}

static int add_folder(struct image *im, const char *path, uint16_t mode, struct furnished *f,
		      struct err *err)
{
	const struct entry e = { .kind = ENTRY_FOLDER,
				 .path = bytes_str(path),
				 .attributes = { .mode = mode, .seconds = DISK_TIME } };
	struct node *n;
	uint32_t ino;

	if (path_find(&im->tree, path, &n, err) < 0)
		return -1;
	if (n && n->type == EXT2_FT_DIR)
		return 0;
	note(f, path);
	return apply(im, &e, &ino, err);
}

static int begin_file(struct image *im, const char *path, uint16_t mode, uint64_t size,
		      struct file *ret, struct err *err)
{
	const struct entry e = { .kind = ENTRY_FILE,
				 .path = bytes_str(path),
				 .attributes = { .mode = mode, .seconds = DISK_TIME } };
	uint32_t ino;

	if (apply(im, &e, &ino, err) < 0)
		return -1;
	return file_begin(ret, &im->disk, ino, size, err);
}

static int add_file(struct image *im, size_t i, struct furnished *f, struct err *err)
{
	struct bytes text = bytes_str(files[i].text);
	struct file file;
	struct node *n;

	if (path_find(&im->tree, files[i].path, &n, err) < 0)
		return -1;
	if (n && n->type == EXT2_FT_REG_FILE && !files[i].always)
		return 0;
	note(f, files[i].path);
	if (begin_file(im, files[i].path, 0644, text.len, &file, err) < 0 ||
	    file_write(&file, text, 0, err) < 0)
		return -1;
	return file_end(&file, err);
}

static int copy(int fd, uint64_t size, struct file *to, struct err *err)
{
	AUTO(auto_free) uint8_t *piece = malloc(COPY_AT_ONCE);

	if (!piece)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "copy the agent");
	for (uint64_t at = 0; at < size;) {
		ssize_t n = pread(fd, piece, COPY_AT_ONCE, (off_t)at);

		if (n <= 0)
			return err_set(err, ERR_INTERNAL, n < 0 ? errno : EIO, "read the agent");
		if (file_write(to, bytes_head((struct bytes){ piece, (size_t)n }, size - at), at,
			       err) < 0)
			return -1;
		at += (uint64_t)n;
	}
	return file_end(to, err);
}

static int add_agent(struct image *im, int fd, struct furnished *f, struct err *err)
{
	struct file file;
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > UNPACK_AGENT_MAX)
		return err_set(err, ERR_INTERNAL, 0, "the agent is not what it should be");
	if (begin_file(im, AGENT, 0755, (uint64_t)st.st_size, &file, err) < 0 ||
	    copy(fd, (uint64_t)st.st_size, &file, err) < 0)
		return -1;
	note(f, AGENT);
	note(f, "/sbin/init");
	note(f, WHY);
	if (add_link(im, "/sbin/init", AGENT, err) < 0)
		return -1;
	return add_link(im, WHY, AGENT, err);
}

/* A regular file that somebody may run. */
static int find_program(struct image *im, const char *path, struct node **ret, struct err *err)
{
	uint16_t mode;

	if (path_find(&im->tree, path, ret, err) < 0)
		return -1;
	if (!*ret || (*ret)->type != EXT2_FT_REG_FILE) {
		*ret = NULL;
		return 0;
	}
	if (inode_mode(&im->disk, (*ret)->ino, &mode, err) < 0)
		return -1;
	if (!(mode & 0111))
		*ret = NULL;
	return 0;
}

/* /bin/bash is what clients and the agent call: where an image has it elsewhere, a link is made. */
static int find_bash(struct image *im, struct furnished *f, struct node **ret, struct err *err)
{
	if (find_program(im, "/bin/bash", ret, err) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(shells) && !*ret; i++) {
		if (find_program(im, shells[i], ret, err) < 0)
			return -1;
		if (!*ret)
			continue;
		note(f, "/bin/bash");
		if (add_link(im, "/bin/bash", shells[i], err) < 0)
			return -1;
	}
	if (!*ret)
		return err_set(err, ERR_NOT_FOUND, 0,
			       "the image has no bash (/bin/bash), which commands are run by: "
			       "install it in the image");
	return 0;
}

static int check_bash(struct image *im, struct furnished *f, struct err *err)
{
	AUTO(auto_free) uint8_t *head = malloc(PROGRAM_HEAD);
	struct node *bash, *loader;
	size_t len;

	if (!head)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "look at bash");
	if (find_bash(im, f, &bash, err) < 0 ||
	    inode_read(&im->disk, bash->ino, head, PROGRAM_HEAD, &len, err) < 0)
		return -1;
	if (program_loader((struct bytes){ head, len }, f->loader, err) < 0)
		return err_wrap(err, "the bash of the image is");
	if (!f->loader[0])
		return 0;
	if (find_program(im, f->loader, &loader, err) < 0)
		return -1;
	if (!loader)
		return err_set(err, ERR_NOT_FOUND, 0,
			       "the bash of the image wants the loader %s, which the image lacks",
			       f->loader);
	return 0;
}

int furnish(struct image *im, int agent, struct furnished *ret, struct err *err)
{
	const struct counts before = im->counts;

	*ret = (struct furnished){ 0 };
	im->tree.layer = (uint16_t)(im->n_layers + 1);
	im->path[0] = '\0';
	if (check_bash(im, ret, err) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(folders); i++)
		if (add_folder(im, folders[i].path, folders[i].mode, ret, err) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(files); i++)
		if (add_file(im, i, ret, err) < 0)
			return -1;
	if (add_agent(im, agent, ret, err) < 0)
		return -1;
	im->path[0] = '\0';
	im->counts = before; /* what is ours is listed, not counted */
	return 0;
}
