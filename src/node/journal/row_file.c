/* row_file.c - rows written as text, and read back. No file is trusted. */
/* #syscalls: openat openat2 write read fstat fsync renameat renameat2 unlinkat newfstatat close */
#include "node/journal/row_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/folder.h"
#include "node/journal/columns.h"
#include "node/journal/journal_db.h"
#include "node/journal/catalog_db.h"
#include "node/journal/snapshots_db.h"

#define HEAD "hotcell-row"
#define SUM  "crc32c "

enum {
	SUM_LINE = sizeof(SUM) - 1 + 8 + 1, /* the last line: eight digits */
	COLUMNS_MAX = 64,
	NAME_MAX_HERE = 32, /* of a column */
};

/* --- written ------------------------------------------------------------------------------ */

static int put_entry(struct buf *out, const char *name, struct bytes value, struct err *err)
{
	if (buf_printf(out, err, "%s %zu ", name, value.len) < 0 || buf_add(out, value, err) < 0)
		return -1;
	return buf_add(out, BYTES_LIT("\n"), err);
}

static int put_column(struct buf *out, const struct column *c, const char *row, struct err *err)
{
	const char *from = row + c->at;
	char number[24];
	uint64_t n = 0;

	if (c->kind == COL_LONG) {
		memcpy(&from, row + c->at, sizeof(from));
		return from ? put_entry(out, c->name, bytes_str(from), err) : 0;
	}
	if (c->kind == COL_TEXT)
		return put_entry(out, c->name, bytes_str(from), err);
	memcpy(&n, from, c->size); /* the low bytes come first */
	snprintf(number, sizeof(number), "%" PRIu64, n);
	return put_entry(out, c->name, bytes_str(number), err);
}

static int put(const struct row_kind *k, const char *row, struct buf *out, struct err *err)
{
	size_t from = out->len;
	struct bytes all;

	if (buf_printf(out, err, HEAD " %d %s\n", ROW_FILE_VERSION, k->name) < 0)
		return -1;
	for (size_t i = 0; i < k->n; i++)
		if (put_column(out, &k->columns[i], row, err) < 0)
			return -1;
	all = (struct bytes){ out->ptr + from, out->len - from };
	return buf_printf(out, err, SUM "%08" PRIx32 "\n", crc32c(0, all));
}

int row_put(const struct journal_row *row, struct buf *out, struct err *err)
{
	return put(&sandbox_rows, (const char *)row, out, err);
}

int row_put_snapshot(const struct journal_snapshot *row, struct buf *out, struct err *err)
{
	return put(&snapshot_rows, (const char *)row, out, err);
}

/* --- read --------------------------------------------------------------------------------- */

static int bad(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID, 0, "its description is damaged: %s", what);
}

/* What is before the sum. */
static int check_sum(struct bytes in, struct bytes *ret, struct err *err)
{
	char want[SUM_LINE + 1];

	if (in.len > ROW_FILE_MAX)
		return bad(err, "it is too long");
	if (in.len < SUM_LINE)
		return bad(err, "it is cut off");
	*ret = bytes_head(in, in.len - SUM_LINE);
	snprintf(want, sizeof(want), SUM "%08" PRIx32 "\n", crc32c(0, *ret));
	if (!bytes_eq(bytes_tail(in, ret->len), bytes_str(want)))
		return bad(err, "its sum is wrong");
	return 0;
}

static int take_head(struct bytes *in, const char *kind, struct err *err)
{
	struct bytes line, word;
	uint64_t version;

	if (!bytes_cut(in, '\n', &line) || !bytes_cut(&line, ' ', &word) ||
	    !bytes_eq(word, BYTES_LIT(HEAD)) || !bytes_cut(&line, ' ', &word) ||
	    !bytes_to_u64(word, &version))
		return bad(err, "its first line is not one");
	if (version > ROW_FILE_VERSION)
		return err_set(err, ERR_MISMATCH, 0,
			       "its description is of a later version of Hotcell: %" PRIu64
			       ", this one knows %d",
			       version, ROW_FILE_VERSION);
	if (!bytes_eq(line, bytes_str(kind)))
		return err_set(err, ERR_INVALID, 0, "its description is not of a %s", kind);
	return 0;
}

/* NAME LENGTH VALUE and a line's end. */
static bool take_entry(struct bytes *in, struct bytes *ret_name, struct bytes *ret_value)
{
	struct bytes length;
	uint64_t n;

	if (!bytes_cut(in, ' ', ret_name) || !bytes_cut(in, ' ', &length) ||
	    !bytes_to_u64(length, &n) || n > ROW_TEXT_MAX || n >= in->len || in->ptr[n] != '\n')
		return false;
	*ret_value = bytes_head(*in, (size_t)n);
	*in = bytes_tail(*in, (size_t)n + 1);
	return ret_name->len > 0 && ret_name->len < NAME_MAX_HERE;
}

static bool take_long(struct bytes value, char *to)
{
	char *text = memchr(value.ptr, '\0', value.len) ? NULL : calloc(1, value.len + 1);

	if (!text)
		return false;
	memcpy(text, value.ptr, value.len);
	memcpy(to, &text, sizeof(text));
	return true;
}

static bool take_value(const struct column *c, struct bytes value, char *row)
{
	uint64_t n;

	if (c->kind == COL_LONG)
		return take_long(value, row + c->at);
	if (c->kind == COL_TEXT)
		return bytes_to_str(value, row + c->at, c->size);
	if (!bytes_to_u64(value, &n) || (c->kind == COL_U32 && n > UINT32_MAX))
		return false;
	memcpy(row + c->at, &n, c->size);
	return true;
}

/* Each at most once. */
static bool take_one(const struct row_kind *k, struct bytes name, struct bytes value, char *row,
		     bool *seen)
{
	for (size_t i = 0; i < k->n; i++)
		if (bytes_eq(name, bytes_str(k->columns[i].name)))
			return !seen[i] && (seen[i] = true) &&
			       take_value(&k->columns[i], value, row);
	return true; /* of another version */
}

static void done(const struct row_kind *k, char *row)
{
	for (size_t i = 0; i < k->n; i++) {
		char *text;

		if (k->columns[i].kind != COL_LONG)
			continue;
		memcpy(&text, row + k->columns[i].at, sizeof(text));
		if (text)
			explicit_bzero(text, strlen(text));
		free(text);
	}
	explicit_bzero(row, k->size);
}

static int get(const struct row_kind *k, struct bytes in, char *row, struct err *err)
{
	bool seen[COLUMNS_MAX] = { 0 };

	assert(k->n <= COLUMNS_MAX);
	memset(row, 0, k->size);
	if (check_sum(in, &in, err) < 0 || take_head(&in, k->name, err) < 0)
		return -1;
	while (in.len > 0) {
		struct bytes name, value;

		if (!take_entry(&in, &name, &value) || !take_one(k, name, value, row, seen)) {
			done(k, row);
			return bad(err, "an entry makes no sense");
		}
	}
	return 0;
}

int row_get(struct bytes in, struct journal_row *ret, struct err *err)
{
	if (get(&sandbox_rows, in, (char *)ret, err) < 0)
		return -1;
	if (folder_name_ok(ret->sandbox.id, sizeof(ret->sandbox.id)) &&
	    ret->state < JOURNAL_STATES && ret->sandbox.reason < NODE_REASONS)
		return 0;
	row_done(ret);
	return bad(err, "a value is not possible");
}

int row_get_snapshot(struct bytes in, struct journal_snapshot *ret, struct err *err)
{
	if (get(&snapshot_rows, in, (char *)ret, err) < 0)
		return -1;
	if (folder_name_ok(ret->id, sizeof(ret->id)) && ret->hidden <= 1 &&
	    ret->kind < JOURNAL_KINDS)
		return 0;
	row_done_snapshot(ret);
	return bad(err, "a value is not possible");
}

int row_get_template(struct bytes in, struct journal_template *ret, struct err *err)
{
	if (get(&template_rows, in, (char *)ret, err) < 0)
		return -1;
	if (folder_name_ok(ret->id, sizeof(ret->id)) && ret->public <= 1)
		return 0;
	row_done_template(ret);
	return bad(err, "a value is not possible");
}

int row_get_build(struct bytes in, struct journal_build *ret, struct err *err)
{
	if (get(&build_rows, in, (char *)ret, err) < 0)
		return -1;
	if (folder_name_ok(ret->id, sizeof(ret->id)) && ret->status < BUILD_STATUSES)
		return 0;
	row_done_build(ret);
	return bad(err, "a value is not possible");
}

void row_done_template(struct journal_template *row)
{
	done(&template_rows, (char *)row);
}

void row_done_build(struct journal_build *row)
{
	done(&build_rows, (char *)row);
}

void row_done(struct journal_row *row)
{
	done(&sandbox_rows, (char *)row);
}

void row_done_snapshot(struct journal_snapshot *row)
{
	done(&snapshot_rows, (char *)row);
}

/* --- on disk ------------------------------------------------------------------------------ */

static int write_all(int fd, struct bytes text, struct err *err)
{
	while (text.len > 0) {
		ssize_t n = write(fd, text.ptr, text.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, ERR_INTERNAL, errno, "write its description");
		text = bytes_tail(text, (size_t)n);
	}
	return fsync(fd) < 0 ? err_set(err, ERR_INTERNAL, errno, "sync its description") : 0;
}

static int sync_folder(int folder, struct err *err)
{
	return fsync(folder) < 0 ? err_set(err, ERR_INTERNAL, errno, "sync its folder") : 0;
}

/* *ret_was: it was there. */
static int drop(int folder, const char *name, bool *ret_was, struct err *err)
{
	if (unlinkat(folder, name, 0) == 0)
		*ret_was = true;
	else if (errno != ENOENT)
		return err_set(err, ERR_INTERNAL, errno, "remove %s", name);
	return 0;
}

int row_file_write(int root, const char *id, struct bytes text, struct err *err)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC;
	AUTO(auto_close) int folder = folder_open(root, id, O_RDONLY | O_DIRECTORY, 0, err);
	AUTO(auto_close) int fd = -1;
	bool was;

	if (folder < 0)
		return err->sys == ENOENT ? 0 : err_wrap(err, "its folder");
	fd = folder_open(folder, ROW_FILE ".new", flags, 0600, err);
	if (fd < 0 || write_all(fd, text, err) < 0)
		return -1;
	if (renameat(folder, ROW_FILE ".new", folder, ROW_FILE) < 0)
		return err_set(err, ERR_INTERNAL, errno, "rename its description");
	return drop(folder, ROW_DELETED, &was, err) < 0 ? -1 : sync_folder(folder, err);
}

static int mark_deleted(int folder, struct err *err)
{
	AUTO(auto_close) int fd = folder_open(folder, ROW_DELETED, O_WRONLY | O_CREAT, 0600, err);

	return fd < 0 ? -1 : 0;
}

int row_file_drop(int root, const char *id, bool deleted, struct err *err)
{
	AUTO(auto_close) int folder = folder_open(root, id, O_RDONLY | O_DIRECTORY, 0, err);
	bool was = deleted;

	if (folder < 0)
		return err->sys == ENOENT ? 0 : -1;
	if ((deleted && mark_deleted(folder, err) < 0) || drop(folder, ROW_FILE, &was, err) < 0)
		return -1;
	return was ? sync_folder(folder, err) : 0;
}

int row_file_read(int folder, struct buf *ret, struct err *err)
{
	AUTO(auto_close) int fd = folder_open(folder, ROW_FILE, O_RDONLY | O_NONBLOCK, 0, err);
	struct stat st;
	uint8_t *to;
	ssize_t n;

	if (fd < 0)
		return err_wrap(err, "its description");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > ROW_FILE_MAX)
		return bad(err, "it is no file of ours");
	if (buf_reserve(ret, (size_t)st.st_size + 1, &to, err) < 0)
		return -1;
	n = read(fd, to, (size_t)st.st_size + 1);
	if (n < 0)
		return err_set(err, ERR_INTERNAL, errno, "read its description");
	if (n != st.st_size)
		return bad(err, "it was not read in one piece");
	buf_claim(ret, (size_t)n);
	return 0;
}

bool row_file_is_deleted(int folder)
{
	struct stat st;

	return fstatat(folder, ROW_DELETED, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int row_has_file(int folder, const char *name, uint64_t *ret_size, struct err *err)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_set(err, ERR_INTERNAL, errno, "look at %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, 0, "%s is no file", name);
	if (ret_size)
		*ret_size = (uint64_t)st.st_size;
	return 1;
}

/* --- with the journal --------------------------------------------------------------------- */

bool row_end_was_wished(enum node_reason why)
{
	return why == NODE_KILLED || why == NODE_EVICTED;
}

/* A journal of before knows an earlier pause: what is described is newer than its row. */
static bool is_newer(int root, const struct journal_row *row)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(ROW_FILE_MAX + 1);
	struct err ignored;
	AUTO(auto_close)
	int folder = folder_open(root, row->sandbox.id, O_RDONLY | O_DIRECTORY, 0, &ignored);
	struct journal_row there;
	bool ret;

	if (folder < 0 || row_file_read(folder, &text, &ignored) < 0 ||
	    row_get(buf_view(&text), &there, &ignored) < 0)
		return false;
	ret = there.sandbox.generation > row->sandbox.generation &&
	      strcmp(there.sandbox.id, row->sandbox.id) == 0;
	row_done(&there);
	return ret;
}

int row_file_keep(int root, const struct journal_row *row, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(ROW_FILE_MAX);

	if (row->state != JOURNAL_PAUSED) {
		bool ends = row->state == JOURNAL_KILLING;

		if (ends && !row_end_was_wished((enum node_reason)row->sandbox.reason))
			return 0;
		return row_file_drop(root, row->sandbox.id, ends, err);
	}
	if (is_newer(root, row))
		return 0;
	if (row_put(row, &text, err) < 0)
		return -1;
	return row_file_write(root, row->sandbox.id, buf_view(&text), err);
}

int row_file_keep_snapshot(int root, const struct journal_snapshot *row, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(ROW_FILE_MAX);

	if (row_put_snapshot(row, &text, err) < 0)
		return -1;
	return row_file_write(root, row->id, buf_view(&text), err);
}

int row_file_keep_template(int root, const struct journal_template *row, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ROW_FILE_MAX);

	if (put(&template_rows, (const char *)row, &text, err) < 0)
		return -1;
	return row_file_write(root, row->id, buf_view(&text), err);
}

int row_file_keep_build(int root, const struct journal_build *row, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ROW_FILE_MAX);

	if (row->status != BUILD_READY)
		return 0;
	if (put(&build_rows, (const char *)row, &text, err) < 0)
		return -1;
	return row_file_write(root, row->id, buf_view(&text), err);
}
