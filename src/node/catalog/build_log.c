/* build_log.c - the log of a build: lines, and where each of them is. */
/* #syscalls: openat openat2 mkdirat unlinkat write pread64 fstat newfstatat close */
#include "node/catalog/build_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/log.h"
#include "wire/json.h"
#include "wire/rfc3339.h"

struct build_line { /* on disk */
	uint64_t at_ms;
	uint32_t offset;
	uint16_t len, level;
};
static_assert(sizeof(struct build_line) == 16, "as it is on disk");

enum {
	LINE_MAX_BYTES = UINT16_MAX,
	FOLDER_MODE = 0700,
	FILE_MODE = 0600,
};

static const char *const level_names[BUILD_LEVELS] = { "debug", "info", "warn", "error" };

bool build_level_named(struct bytes name, enum build_level *ret)
{
	for (size_t i = 0; i < COUNT(level_names); i++)
		if (bytes_eq(name, bytes_str(level_names[i]))) {
			*ret = (enum build_level)i;
			return true;
		}
	return false;
}

/* --- write ---------------------------------------------------------------------------------- */

void build_log_close(struct build_log *l)
{
	auto_close(&l->text);
	auto_close(&l->index);
	*l = BUILD_LOG_NONE;
}

static int open_files(struct build_log *l, int at, struct err *err)
{
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;

	l->text = folder_open(at, "log", flags, FILE_MODE, err);
	l->index = l->text < 0 ? -1 : folder_open(at, "index", flags, FILE_MODE, err);
	if (l->index >= 0)
		return 0;
	build_log_close(l);
	return -1;
}

int build_log_open(struct build_log *l, int dir, const char *build_id, struct err *err)
{
	AUTO(auto_close) int at = -1;

	build_log_close(l);
	if (folder_remove(dir, build_id, err) < 0)
		return -1;
	at = folder_make(dir, build_id, FOLDER_MODE, err);
	return at < 0 ? -1 : open_files(l, at, err);
}

/* What was broken off at the end of a file belongs to no line. */
static int measure(struct build_log *l, struct err *err)
{
	struct stat text, index;

	if (fstat(l->text, &text) < 0 || fstat(l->index, &index) < 0)
		return err_set(err, ERR_INTERNAL, errno, "look at a log");
	if (text.st_size > BUILD_LOG_BYTES_MAX + LINE_MAX_BYTES ||
	    index.st_size % (off_t)sizeof(struct build_line) != 0)
		return err_set(err, ERR_INVALID, 0,
			       "the log is longer than it can be, or broken off");
	l->bytes = (uint32_t)text.st_size;
	l->lines = (uint32_t)(index.st_size / (off_t)sizeof(struct build_line));
	return 0;
}

int build_log_reopen(struct build_log *l, int dir, const char *build_id, struct err *err)
{
	AUTO(auto_close) int at = folder_open(dir, build_id, O_RDONLY | O_DIRECTORY, 0, err);

	build_log_close(l);
	if (at < 0 || open_files(l, at, err) < 0)
		return -1;
	if (measure(l, err) == 0)
		return 0;
	build_log_close(l);
	return -1;
}

static bool write_all(int fd, const void *data, size_t n)
{
	return write(fd, data, n) == (ssize_t)n;
}

/* Whole characters, without the end of the line. */
static struct bytes cut(struct bytes message)
{
	while (message.len > 0 &&
	       (message.ptr[message.len - 1] == '\n' || message.ptr[message.len - 1] == '\r'))
		message.len--;
	if (message.len <= BUILD_MESSAGE_MAX)
		return message;
	message.len = BUILD_MESSAGE_MAX;
	while (message.len > 0 && (message.ptr[message.len] & 0xc0) == 0x80)
		message.len--;
	return message;
}

static int line_text(uint64_t now, enum build_level level, const char *step, struct bytes message,
		     struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	char at[RFC3339_SIZE];

	rfc3339_put(now, 6, at);
	v = json_pack("{s:s, s:s, s:o}", "timestamp", at, "level", level_names[level], "message",
		      json_text(cut(message)));
	if (v && step && step[0] && json_object_set_new(v, "step", json_string(step)) < 0)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a line of a log");
	if (json_encode(v, out, err) < 0)
		return -1;
	return buf_add(out, BYTES_LIT("\n"), err);
}

static int add(struct build_log *l, enum build_level level, const char *step, struct bytes message,
	       struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(LINE_MAX_BYTES);
	uint64_t now = clock_wall_ns();
	struct build_line line = { now / NSEC_PER_MSEC, l->bytes, 0, (uint16_t)level };

	if (line_text(now, level, step, message, &out, err) < 0)
		return -1;
	line.len = (uint16_t)out.len;
	/* the text first: what the index says is there */
	if (!write_all(l->text, out.ptr, out.len) || !write_all(l->index, &line, sizeof(line)))
		return err_set(err, ERR_NO_SPACE, errno, "write");
	l->bytes += line.len;
	l->lines++;
	return 0;
}

static bool has_room(struct build_log *l)
{
	return l->lines < BUILD_LINES_MAX - 1 && l->bytes < BUILD_LOG_BYTES_MAX - LINE_MAX_BYTES;
}

void build_log_add(struct build_log *l, enum build_level level, const char *step,
		   struct bytes message)
{
	struct bytes text = message;
	struct err err;

	if (l->text < 0 || l->full)
		return;
	if (!has_room(l)) {
		l->full = true;
		level = BUILD_WARN;
		text = BYTES_LIT("the log is full: what follows is not kept");
	}
	if (add(l, level, step, text, &err) < 0) {
		log_error("the log of a build ends: %s", err.msg);
		build_log_close(l);
	}
}

/* --- what is there of others ----------------------------------------------------------------- */

enum { PATH_SIZE = 64 };

static const char *path_of(const char *build_id, const char *name, char ret[static PATH_SIZE])
{
	snprintf(ret, PATH_SIZE, "%s/%s", build_id, name);
	return ret;
}

uint64_t build_log_bytes(int dir, const char *build_id)
{
	char path[PATH_SIZE];
	struct stat st;

	if (fstatat(dir, path_of(build_id, "log", path), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (uint64_t)st.st_size;
}

/* The index first: what it says is there. */
void build_log_remove(int dir, const char *build_id)
{
	static const char *const names[] = { "index", "log" };
	char path[PATH_SIZE];

	for (size_t i = 0; i < COUNT(names); i++)
		if (unlinkat(dir, path_of(build_id, names[i], path), 0) < 0 && errno != ENOENT)
			log_warn("builds/%s: %s", path, strerror(errno));
}

/* --- read ----------------------------------------------------------------------------------- */

enum { LINES_AT_ONCE = 256 };

struct reading {
	const struct build_log_query *q;
	int text, index;
	size_t lines, found;
	struct build_line block[LINES_AT_ONCE]; /* of the index, from `first` on */
	size_t first, n;
	uint64_t skipped;
	struct buf *out;
};

/* 1: it fits into the answer, 0: the answer is full. */
static int take(struct reading *r, const struct build_line *line, struct err *err)
{
	uint8_t *at;

	if (line->len == 0 || r->out->len + line->len + 1 > r->out->max)
		return 0;
	if (r->found++ > 0 && buf_add(r->out, BYTES_LIT(","), err) < 0)
		return -1;
	if (buf_reserve(r->out, line->len, &at, err) < 0)
		return -1;
	if (pread(r->text, at, line->len, line->offset) != line->len)
		return err_set(err, ERR_INTERNAL, errno, "read the log of a build");
	buf_claim(r->out, line->len - 1u); /* without the end of the line */
	return 1;
}

static bool fits(struct reading *r, const struct build_line *line)
{
	if (line->level < r->q->least || line->at_ms < r->q->after_ms)
		return false;
	return r->skipped++ >= r->q->offset;
}

/* Line `at`. A whole block is read, for those beside it. NULL: *err. */
static const struct build_line *line_at(struct reading *r, size_t at, struct err *err)
{
	size_t first = at - at % LINES_AT_ONCE;
	ssize_t n;

	if (r->n == 0 || first != r->first) {
		n = pread(r->index, r->block, sizeof(r->block),
			  (off_t)(first * sizeof(struct build_line)));
		r->n = n < 0 ? 0 : (size_t)n / sizeof(struct build_line);
		r->first = first;
	}
	if (at - first < r->n)
		return &r->block[at - first];
	err_set(err, ERR_INTERNAL, errno, "read the index of a log");
	return NULL;
}

static int read_lines(struct reading *r, struct err *err)
{
	const struct build_log_query *q = r->q;
	bool plain = q->least == BUILD_DEBUG && q->after_ms == 0;
	size_t first = plain && q->offset < r->lines ? (size_t)q->offset : plain ? r->lines : 0;
	int more = 1;

	r->skipped = plain ? q->offset : 0;
	for (size_t i = first; i < r->lines && r->found < q->limit && more > 0; i++) {
		const struct build_line *line =
			line_at(r, q->newest_first ? r->lines - 1 - i : i, err);

		if (!line)
			return -1;
		if (fits(r, line))
			more = take(r, line, err);
	}
	return more < 0 ? -1 : 0;
}

static int open_both(struct reading *r, int dir, const char *build_id, struct err *err)
{
	AUTO(auto_close) int at = folder_open(dir, build_id, O_RDONLY | O_DIRECTORY, 0, err);
	struct stat st;

	if (at < 0)
		return -1;
	r->text = folder_open(at, "log", O_RDONLY, 0, err);
	r->index = r->text < 0 ? -1 : folder_open(at, "index", O_RDONLY, 0, err);
	if (r->index < 0)
		return -1;
	if (fstat(r->index, &st) < 0)
		return err_set(err, ERR_INTERNAL, errno, "look at the index of a log");
	r->lines = (size_t)st.st_size / sizeof(struct build_line);
	if (r->lines > BUILD_LINES_MAX)
		r->lines = BUILD_LINES_MAX;
	return 0;
}

int build_log_read(int dir, const char *build_id, const struct build_log_query *q, struct buf *out,
		   struct err *err)
{
	struct reading r = { .q = q, .text = -1, .index = -1, .out = out };
	size_t max = out->max;
	int rc = 0;

	if (buf_add(out, BYTES_LIT("["), err) < 0)
		return -1;
	out->max--; /* for the end */
	if (open_both(&r, dir, build_id, err) == 0)
		rc = read_lines(&r, err);
	else if (err->sys != ENOENT)
		rc = -1;
	auto_close(&r.text);
	auto_close(&r.index);
	out->max = max;
	return rc < 0 ? -1 : buf_add(out, BYTES_LIT("]"), err);
}
