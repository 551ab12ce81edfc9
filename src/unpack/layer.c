/* layer.c - libarchive reads the tar file; what it says of an entry is checked before it counts. */
/* #syscalls: read lseek fstat newfstatat */
#include "unpack/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <time.h>

#include "unpack/entry.h"
#include "unpack/inode.h"
#include "unpack/limits.h"
#include "unpack/result.h"

enum {
	READ_AT_ONCE = 256 * 1024,
	FILTERS_MAX = 2, /* one compression, and none: what libarchive calls the file itself */
	HEADER = 512,
};

/* What was read of a layer, padding and headers included. */
#define STREAM_MAX (UNPACK_BYTES_MAX + UNPACK_ENTRIES_MAX * 4ull * HEADER)

static void free_archive(struct archive **a)
{
	if (*a)
		archive_read_free(*a);
}

/* What libarchive says is ours to read, but may repeat what the layer says: log_line() and result.c
 * take care of characters. */
static int bad_archive(struct archive *a, struct err *err)
{
	const char *why = archive_error_string(a);

	if (archive_errno(a) == ENOMEM)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read the archive");
	return err_set(err, ERR_INVALID, 0, "not a sound tar archive: %s", why ? why : "unknown");
}

/* Nothing but tar, plain or compressed once with gzip or zstd. */
static int open_archive(int fd, struct archive **ret, struct err *err)
{
	AUTO(free_archive) struct archive *a = archive_read_new();

	if (!a)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read the archive");
	if (archive_read_support_filter_gzip(a) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(a) != ARCHIVE_OK ||
	    archive_read_support_format_tar(a) != ARCHIVE_OK)
		return err_set(err, ERR_INTERNAL, 0, "libarchive lacks tar, gzip or zstd");
	if (archive_read_open_fd(a, fd, READ_AT_ONCE) != ARCHIVE_OK)
		return bad_archive(a, err);
	*ret = TAKE(a);
	return 0;
}

static int check_filters(struct archive *a, struct err *err)
{
	if (archive_filter_count(a) > FILTERS_MAX)
		return err_set(err, ERR_INVALID, 0, "compressed more than once");
	return 0;
}

/* Seconds of a processor are the bound of whatever has no bound of its own. */
static int check_effort(struct archive *a, struct err *err)
{
	struct timespec t;

	if (archive_filter_bytes(a, 0) > (int64_t)STREAM_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "the archive is too long");
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0 && t.tv_sec >= UNPACK_CPU_SECONDS)
		return err_set(err, ERR_EXHAUSTED, 0, "the image takes more than %d seconds",
			       UNPACK_CPU_SECONDS);
	return 0;
}

static bool kind_of(struct archive_entry *e, enum entry_kind *ret)
{
	mode_t type = archive_entry_filetype(e);

	*ret = ENTRY_DEVICE;
	if (archive_entry_hardlink(e))
		*ret = ENTRY_HARD_LINK;
	else if (type == AE_IFREG)
		*ret = ENTRY_FILE;
	else if (type == AE_IFDIR)
		*ret = ENTRY_FOLDER;
	else if (type == AE_IFLNK)
		*ret = ENTRY_SYMLINK;
	else if (type == AE_IFIFO)
		*ret = ENTRY_FIFO;
	else
		return type == AE_IFCHR || type == AE_IFBLK || type == AE_IFSOCK;
	return true;
}

static int read_attributes(struct archive_entry *e, struct attributes *ret, struct err *err)
{
	int64_t uid = archive_entry_uid(e), gid = archive_entry_gid(e);
	long nanoseconds = archive_entry_mtime_nsec(e);

	/* the last number means "nobody in particular" to the kernel */
	if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX)
		return err_set(err, ERR_INVALID, 0, "an owner that is no number of a user");
	*ret = (struct attributes){
		.mode = (uint16_t)(archive_entry_perm(e) & 07777),
		.uid = (uint32_t)uid,
		.gid = (uint32_t)gid,
		.seconds = archive_entry_mtime(e),
		.nanoseconds =
			nanoseconds >= 0 && nanoseconds < 1000000000 ? (uint32_t)nanoseconds : 0,
	};
	return 0;
}

static bool is_capability(const char *name, size_t len)
{
	/* the three versions there are */
	return strcmp(name, "security.capability") == 0 && (len == 12 || len == 20 || len == 24);
}

static bool is_user(const char *name)
{
	static const char prefix[] = "user.";
	size_t n = strlen(name);

	return strncmp(name, prefix, sizeof(prefix) - 1) == 0 && n >= sizeof(prefix) &&
	       n <= UNPACK_NAME_MAX;
}

/* What Linux would let be set there. The rest is left out, and counted. */
static int read_xattrs(struct image *im, struct archive_entry *e, enum entry_kind kind,
		       struct xattr x[UNPACK_XATTRS_MAX], size_t *ret, struct err *err)
{
	const char *name;
	const void *value;
	size_t len;

	*ret = 0;
	archive_entry_xattr_reset(e);
	while (archive_entry_xattr_next(e, &name, &value, &len) == ARCHIVE_OK) {
		bool wanted = name && value &&
			      ((kind == ENTRY_FILE && is_capability(name, len)) ||
			       ((kind == ENTRY_FILE || kind == ENTRY_FOLDER) && is_user(name)));

		if (!wanted) {
			im->counts.xattrs++;
			continue;
		}
		if (*ret == UNPACK_XATTRS_MAX)
			return err_set(err, ERR_EXHAUSTED, 0, "more than %d attributes of one file",
				       UNPACK_XATTRS_MAX);
		x[(*ret)++] = (struct xattr){ name, { value, len } };
	}
	return 0;
}

/* Names that libarchive could not read come with this character in them, and a warning. */
static bool is_garbled(const char *name)
{
	return !name || strstr(name, "\xef\xbf\xbd");
}

static int read_names(struct archive_entry *e, int rc, struct entry *ret, struct err *err)
{
	const char *path = archive_entry_pathname(e), *link = NULL;

	if (ret->kind == ENTRY_SYMLINK)
		link = archive_entry_symlink(e);
	else if (ret->kind == ENTRY_HARD_LINK)
		link = archive_entry_hardlink(e);
	if (!path)
		return err_set(err, ERR_INVALID, 0, "an entry without a name");
	if (rc == ARCHIVE_WARN && (is_garbled(path) || (link && is_garbled(link))))
		return err_set(err, ERR_INVALID, 0, "a name that is not UTF-8");
	ret->path = bytes_str(path);
	ret->link = link ? bytes_str(link) : (struct bytes){ 0 };
	return 0;
}

/* The size is refused before a byte of it is read. Of a sparse file it is the length with holes. */
static int check_size(struct image *im, struct archive_entry *e, struct err *err)
{
	int64_t size = archive_entry_size(e);

	if (size < 0 || (uint64_t)size > UNPACK_FILE_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "a file of more than %llu GiB",
			       UNPACK_FILE_MAX >> 30);
	if (archive_entry_sparse_count(e) > 0)
		return 0;
	return image_spend(im, (uint64_t)size, err);
}

static int write_data(struct image *im, struct archive *a, bool sparse, struct file *f,
		      struct err *err)
{
	const void *data;
	size_t len;
	int64_t offset;
	int rc;

	while ((rc = archive_read_data_block(a, &data, &len, &offset)) == ARCHIVE_OK) {
		if (check_effort(a, err) < 0)
			return -1;
		/* each piece is a block, however short */
		if (sparse && image_spend(im, len + DISK_BLOCK, err) < 0)
			return -1;
		if (offset < 0)
			return err_set(err, ERR_INVALID, 0, "data before the beginning of a file");
		if (file_write(f, (struct bytes){ data, len }, (uint64_t)offset, err) < 0)
			return -1;
		im->counts.bytes += len;
		if (result_progress(im, err) < 0)
			return -1;
	}
	return rc == ARCHIVE_EOF ? 0 : bad_archive(a, err);
}

static int read_contents(struct image *im, struct archive *a, struct archive_entry *e, uint32_t ino,
			 struct err *err)
{
	bool sparse = archive_entry_sparse_count(e) > 0;
	uint64_t size = (uint64_t)archive_entry_size(e);
	struct file f;

	if (file_begin(&f, &im->disk, ino, size, err) < 0 ||
	    write_data(im, a, sparse, &f, err) < 0 || file_end(&f, err) < 0)
		return -1;
	if (!sparse && f.stored != size)
		return err_set(err, ERR_INVALID, 0, "a file that is shorter than its header says");
	return 0;
}

static void note_path(struct image *im, const char *path)
{
	snprintf(im->path, sizeof(im->path), "%s", path ? path : "");
}

static int apply(struct image *im, struct archive *a, struct archive_entry *e, int rc,
		 struct err *err)
{
	struct xattr xattrs[UNPACK_XATTRS_MAX];
	struct entry entry = { .xattrs = xattrs };
	uint32_t ino;

	note_path(im, archive_entry_pathname(e));
	if (++im->n_entries > UNPACK_ENTRIES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d entries", UNPACK_ENTRIES_MAX);
	if (!kind_of(e, &entry.kind))
		return err_set(err, ERR_INVALID, 0, "an entry of no known kind");
	if (read_names(e, rc, &entry, err) < 0 || check_size(im, e, err) < 0 ||
	    read_attributes(e, &entry.attributes, err) < 0 ||
	    read_xattrs(im, e, entry.kind, xattrs, &entry.n_xattrs, err) < 0 ||
	    entry_apply(im, &entry, &ino, err) < 0)
		return -1;
	return ino ? read_contents(im, a, e, ino, err) : 0;
}

int layer_apply(struct image *im, int fd, struct err *err)
{
	AUTO(free_archive) struct archive *a = NULL;
	struct archive_entry *e;

	note_path(im, NULL);
	if (open_archive(fd, &a, err) < 0)
		return -1;
	for (;;) {
		int rc = archive_read_next_header(a, &e);

		if (rc == ARCHIVE_EOF)
			return check_filters(a, err);
		if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
			return bad_archive(a, err);
		if (check_filters(a, err) < 0 || check_effort(a, err) < 0 ||
		    apply(im, a, e, rc, err) < 0)
			return -1;
	}
}
