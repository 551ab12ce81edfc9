/* answers.c - one request, one answer. */
#include "answers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

struct asked {
	struct answers *to;
	const struct fuse_in_header *head;
	struct node *node; /* it is about */
	const void *in;    /* the verb's own struct, or a name */
	const char *end;   /* of the request: it ends with a 0 where names are */
};

/* --- answers ------------------------------------------------------------------------------ */

static void give(const struct asked *q, const void *a, size_t n_a, const void *b, size_t n_b)
{
	struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + n_a + n_b),
					.unique = q->head->unique };
	struct iovec parts[] = { { &head, sizeof(head) },
				 { (void *)(uintptr_t)a, n_a },
				 { (void *)(uintptr_t)b, n_b } };

	if (writev(q->to->fuse, parts, 3) < 0 && errno != ENOENT) /* it was interrupted */
		fprintf(stderr, "lossy-fs: answer %u: %s\n", q->head->opcode, strerror(errno));
}

/* 0 or -errno. */
static void give_code(const struct asked *q, int rc)
{
	struct fuse_out_header head = { sizeof(head), rc, q->head->unique };

	if (write(q->to->fuse, &head, sizeof(head)) < 0 && errno != ENOENT)
		fprintf(stderr, "lossy-fs: answer %u: %s\n", q->head->opcode, strerror(errno));
}

static struct fuse_attr attr_of(const struct node *n)
{
	struct stat st;

	node_stat(n, &st);
	return (struct fuse_attr){ .ino = st.st_ino,
				   .size = (uint64_t)st.st_size,
				   .blocks = (uint64_t)st.st_blocks,
				   .atime = (uint64_t)st.st_atim.tv_sec,
				   .mtime = (uint64_t)st.st_mtim.tv_sec,
				   .ctime = (uint64_t)st.st_ctim.tv_sec,
				   .atimensec = (uint32_t)st.st_atim.tv_nsec,
				   .mtimensec = (uint32_t)st.st_mtim.tv_nsec,
				   .ctimensec = (uint32_t)st.st_ctim.tv_nsec,
				   .mode = st.st_mode,
				   .nlink = (uint32_t)st.st_nlink,
				   .uid = st.st_uid,
				   .gid = st.st_gid,
				   .blksize = LOSSY_BLOCK };
}

/* The kernel knows it from now on. */
static struct fuse_entry_out entry_of(struct node *n)
{
	n->lookups++;
	return (struct fuse_entry_out){ .nodeid = n->number, .generation = 1, .attr = attr_of(n) };
}

static void give_entry(const struct asked *q, int rc, struct node *n)
{
	struct fuse_entry_out e;

	if (rc < 0) {
		give_code(q, rc);
		return;
	}
	e = entry_of(n);
	give(q, &e, sizeof(e), NULL, 0);
}

static void give_attr(const struct asked *q)
{
	const struct fuse_attr_out a = { .attr = attr_of(q->node) };

	give(q, &a, sizeof(a), NULL, 0);
}

/* --- names -------------------------------------------------------------------------------- */

static const char *after(const void *in, size_t size)
{
	return (const char *)in + size;
}

static void on_lookup(const struct asked *q)
{
	struct node *n = names_find(q->node, q->in);

	give_entry(q, n ? 0 : -ENOENT, n);
}

static void forget(struct answers *a, uint64_t number, uint64_t count)
{
	struct node *n = store_node(a->store, number);

	if (n) {
		n->lookups -= count < n->lookups ? count : n->lookups;
		node_put(a->store, n);
	}
}

static void on_forget(const struct asked *q)
{
	const struct fuse_forget_in *in = q->in;

	forget(q->to, q->head->nodeid, in->nlookup);
}

static void on_batch_forget(const struct asked *q)
{
	const struct fuse_batch_forget_in *in = q->in;
	const struct fuse_forget_one *all = (const void *)after(in, sizeof(*in));

	for (uint32_t i = 0; i < in->count; i++)
		forget(q->to, all[i].nodeid, all[i].nlookup);
}

static int make(const struct asked *q, const char *name, mode_t mode, struct node **ret)
{
	int rc;

	if (names_find(q->node, name))
		return -EEXIST;
	rc = node_make(q->to->store, mode, q->head->uid, q->head->gid, ret);
	return rc < 0 ? rc : names_add(q->to->store, q->node, name, *ret);
}

static void on_mknod(const struct asked *q)
{
	const struct fuse_mknod_in *in = q->in;
	struct node *n = NULL;
	int rc = -EPERM;

	if (S_ISREG(in->mode) || S_ISSOCK(in->mode))
		rc = make(q, after(in, sizeof(*in)), in->mode, &n);
	give_entry(q, rc, n);
}

static void on_mkdir(const struct asked *q)
{
	const struct fuse_mkdir_in *in = q->in;
	struct node *n = NULL;
	int rc = make(q, after(in, sizeof(*in)), S_IFDIR | (in->mode & 07777), &n);

	give_entry(q, rc, n);
}

/* Nobody else changes it: what the kernel holds of it stays true. */
static const struct fuse_open_out opened = { .open_flags = FOPEN_KEEP_CACHE };

static void on_create(const struct asked *q)
{
	const struct fuse_create_in *in = q->in;
	struct fuse_entry_out e;
	struct node *n;
	int rc = make(q, after(in, sizeof(*in)), S_IFREG | (in->mode & 07777), &n);

	if (rc < 0) {
		give_code(q, rc);
		return;
	}
	e = entry_of(n);
	give(q, &e, sizeof(e), &opened, sizeof(opened));
}

static void on_unlink(const struct asked *q)
{
	give_code(q, names_remove(q->to->store, q->node, q->in));
}

static void on_rmdir(const struct asked *q)
{
	const struct node *n = names_find(q->node, q->in);

	if (n && n->names)
		give_code(q, -ENOTEMPTY);
	else
		on_unlink(q);
}

static void move(const struct asked *q, uint64_t folder, const char *old, uint32_t flags)
{
	struct node *to = store_node(q->to->store, folder);
	const char *new = old + strlen(old) + 1;

	if (!to || new >= q->end || (flags & ~(uint32_t)RENAME_NOREPLACE))
		give_code(q, -EINVAL);
	else if (flags && names_find(to, new))
		give_code(q, -EEXIST);
	else
		give_code(q, names_move(q->to->store, q->node, old, to, new));
}

static void on_rename(const struct asked *q)
{
	const struct fuse_rename_in *in = q->in;

	move(q, in->newdir, after(in, sizeof(*in)), 0);
}

static void on_rename2(const struct asked *q)
{
	const struct fuse_rename2_in *in = q->in;

	move(q, in->newdir, after(in, sizeof(*in)), in->flags);
}

static void on_link(const struct asked *q)
{
	const struct fuse_link_in *in = q->in;
	struct node *n = store_node(q->to->store, in->oldnodeid);
	int rc = n ? names_add(q->to->store, q->node, after(in, sizeof(*in)), n) : -ESTALE;

	give_entry(q, rc, n);
}

static void on_readdir(const struct asked *q)
{
	static _Alignas(8) char page[ANSWERS_WRITE_MAX];
	const struct fuse_read_in *in = q->in;
	size_t used = 0, size = in->size < sizeof(page) ? in->size : sizeof(page);

	for (const struct name *e = q->node->names; e; e = e->next) {
		size_t n = strlen(e->text), whole = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + n);
		struct fuse_dirent d = { .ino = e->to->number,
					 .off = e->place,
					 .namelen = (uint32_t)n,
					 .type = (e->to->st.st_mode & S_IFMT) >> 12 };

		if (e->place <= in->offset)
			continue;
		if (used + whole > size)
			break;
		memset(page + used, 0, whole);
		memcpy(page + used, &d, FUSE_NAME_OFFSET);
		memcpy(page + used + FUSE_NAME_OFFSET, e->text, n);
		used += whole;
	}
	give(q, page, used, NULL, 0);
}

/* --- attributes --------------------------------------------------------------------------- */

static void on_getattr(const struct asked *q)
{
	give_attr(q);
}

static void on_setattr(const struct asked *q)
{
	const struct fuse_setattr_in *in = q->in;
	struct stat *st = &q->node->st;
	int rc = 0;

	if (in->valid & FATTR_MODE)
		st->st_mode = (st->st_mode & S_IFMT) | (in->mode & 07777);
	if (in->valid & FATTR_UID)
		st->st_uid = in->uid;
	if (in->valid & FATTR_GID)
		st->st_gid = in->gid;
	if (in->valid & FATTR_SIZE)
		rc = content_truncate(q->to->store, q->node, (int64_t)in->size);
	if (rc < 0)
		give_code(q, rc);
	else
		give_attr(q);
}

static void on_statfs(const struct asked *q)
{
	struct fuse_statfs_out out = { 0 };
	struct statvfs v;

	if (fstatvfs(q->to->store->live, &v) < 0) {
		give_code(q, -errno);
		return;
	}
	out.st = (struct fuse_kstatfs){ .blocks = v.f_blocks,
					.bfree = v.f_bfree,
					.bavail = v.f_bavail,
					.files = v.f_files,
					.ffree = v.f_ffree,
					.bsize = (uint32_t)v.f_bsize,
					.namelen = LOSSY_NAME_MAX,
					.frsize = (uint32_t)v.f_frsize };
	give(q, &out, sizeof(out), NULL, 0);
}

/* --- contents ----------------------------------------------------------------------------- */

static void on_open(const struct asked *q)
{
	give(q, &opened, sizeof(opened), NULL, 0);
}

static void on_read(const struct asked *q)
{
	static uint8_t page[ANSWERS_WRITE_MAX];
	const struct fuse_read_in *in = q->in;
	size_t size = in->size < sizeof(page) ? in->size : sizeof(page);
	ssize_t n = pread(q->node->live, page, size, (off_t)in->offset);

	if (n < 0)
		give_code(q, -errno);
	else
		give(q, page, (size_t)n, NULL, 0);
}

static void on_write(const struct asked *q)
{
	const struct fuse_write_in *in = q->in;
	struct fuse_write_out out = { 0 };
	int rc = content_will_change(q->to->store, q->node);
	ssize_t n;

	if (rc < 0) {
		give_code(q, rc);
		return;
	}
	n = pwrite(q->node->live, after(in, sizeof(*in)), in->size, (off_t)in->offset);
	if (n < 0) {
		give_code(q, -errno);
		return;
	}
	content_changed(q->node, in->offset, (uint64_t)n);
	out.size = (uint32_t)n;
	give(q, &out, sizeof(out), NULL, 0);
}

static void on_fallocate(const struct asked *q)
{
	const struct fuse_fallocate_in *in = q->in;
	int rc = content_will_change(q->to->store, q->node);

	if (rc == 0 &&
	    fallocate(q->node->live, (int)in->mode, (off_t)in->offset, (off_t)in->length) < 0)
		rc = -errno;
	if (rc == 0)
		content_changed(q->node, in->offset, in->length);
	give_code(q, rc);
}

static void on_lseek(const struct asked *q)
{
	const struct fuse_lseek_in *in = q->in;
	off_t found = lseek(q->node->live, (off_t)in->offset, (int)in->whence);
	const struct fuse_lseek_out out = { .offset = (uint64_t)found };

	if (found < 0)
		give_code(q, -errno);
	else
		give(q, &out, sizeof(out), NULL, 0);
}

/* NAME or NAME.new: when a file that is being made takes its name is the product's affair. */
static bool is_called(const char *text, const char *name)
{
	size_t n = strlen(name);

	return strncmp(text, name, n) == 0 && (text[n] == '\0' || strcmp(text + n, ".new") == 0);
}

static bool has_name(const struct node *folder, const struct node *n, const char *name)
{
	for (const struct name *e = folder->names; e; e = e->next)
		if (e->to == n && is_called(e->text, name))
			return true;
	return false;
}

/* Does the disk say yes and do nothing? */
static bool is_lie(const struct asked *q)
{
	const struct store *s = q->to->store;

	for (uint64_t i = 1; s->lie[0] && i < s->n_nodes; i++)
		if (s->nodes[i] && has_name(s->nodes[i], q->node, s->lie))
			return true;
	return false;
}

static void on_fsync(const struct asked *q)
{
	give_code(q, is_lie(q) ? 0 : content_sync(q->to->store, q->node));
}

static void on_fsyncdir(const struct asked *q)
{
	give_code(q, is_lie(q) ? 0 : names_sync(q->to->store, q->node));
}

/* --- the rest ----------------------------------------------------------------------------- */

/* Without FUSE_WRITEBACK_CACHE: a write is seen here when it is made. */
static void on_init(const struct asked *q)
{
	const struct fuse_init_in *in = q->in;
	const uint32_t wanted = FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_ASYNC_READ;
	const struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
					   .minor = FUSE_KERNEL_MINOR_VERSION,
					   .max_readahead = in->max_readahead,
					   .flags = in->flags & wanted,
					   .max_background = 16,
					   .congestion_threshold = 12,
					   .max_write = ANSWERS_WRITE_MAX,
					   .time_gran = 1,
					   .max_pages = ANSWERS_WRITE_MAX / LOSSY_BLOCK };

	give(q, &out, sizeof(out), NULL, 0);
}

static void on_nothing(const struct asked *q)
{
	give_code(q, 0);
}

static void on_silence(const struct asked *q)
{
	(void)q;
}

static const struct verb {
	void (*on)(const struct asked *q);
	size_t size;    /* of its struct, at least */
	bool of_nobody; /* its node may be unknown */
} verbs[] = {
	[FUSE_INIT] = { on_init, 2 * sizeof(uint64_t), true },
	[FUSE_DESTROY] = { on_nothing, 0, true },
	[FUSE_INTERRUPT] = { on_silence, 0, true },
	[FUSE_LOOKUP] = { on_lookup, 1, false },
	[FUSE_FORGET] = { on_forget, sizeof(struct fuse_forget_in), true },
	[FUSE_BATCH_FORGET] = { on_batch_forget, sizeof(struct fuse_batch_forget_in), true },
	[FUSE_MKNOD] = { on_mknod, sizeof(struct fuse_mknod_in) + 1, false },
	[FUSE_MKDIR] = { on_mkdir, sizeof(struct fuse_mkdir_in) + 1, false },
	[FUSE_CREATE] = { on_create, sizeof(struct fuse_create_in) + 1, false },
	[FUSE_UNLINK] = { on_unlink, 1, false },
	[FUSE_RMDIR] = { on_rmdir, 1, false },
	[FUSE_RENAME] = { on_rename, sizeof(struct fuse_rename_in) + 2, false },
	[FUSE_RENAME2] = { on_rename2, sizeof(struct fuse_rename2_in) + 2, false },
	[FUSE_LINK] = { on_link, sizeof(struct fuse_link_in) + 1, false },
	[FUSE_GETATTR] = { on_getattr, 0, false },
	[FUSE_SETATTR] = { on_setattr, sizeof(struct fuse_setattr_in), false },
	[FUSE_STATFS] = { on_statfs, 0, true },
	[FUSE_OPEN] = { on_open, 0, false },
	[FUSE_OPENDIR] = { on_open, 0, false },
	[FUSE_READ] = { on_read, sizeof(struct fuse_read_in), false },
	[FUSE_READDIR] = { on_readdir, sizeof(struct fuse_read_in), false },
	[FUSE_WRITE] = { on_write, sizeof(struct fuse_write_in), false },
	[FUSE_FALLOCATE] = { on_fallocate, sizeof(struct fuse_fallocate_in), false },
	[FUSE_LSEEK] = { on_lseek, sizeof(struct fuse_lseek_in), false },
	[FUSE_FSYNC] = { on_fsync, 0, false },
	[FUSE_FSYNCDIR] = { on_fsyncdir, 0, false },
	[FUSE_FLUSH] = { on_nothing, 0, true },
	[FUSE_RELEASE] = { on_nothing, 0, true },
	[FUSE_RELEASEDIR] = { on_nothing, 0, true },
};

void answers_give(struct answers *a, const uint8_t *request, size_t length)
{
	const struct fuse_in_header *h = (const void *)request;
	struct asked q = { .to = a, .head = h, .in = h + 1, .end = (const char *)request + length };
	const struct verb *v;

	if (length < sizeof(*h))
		return;
	q.node = store_node(a->store, h->nodeid);
	v = h->opcode < sizeof(verbs) / sizeof(verbs[0]) ? &verbs[h->opcode] : NULL;
	if (!v || !v->on)
		give_code(&q, -ENOSYS);
	else if (length - sizeof(*h) < v->size)
		give_code(&q, -EINVAL);
	else if (!q.node && !v->of_nobody)
		give_code(&q, -ESTALE);
	else
		v->on(&q);
}
