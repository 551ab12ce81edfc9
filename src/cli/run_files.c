/* run_files.c - see run_files.h. */
#include "cli/run_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/base64.h"
#include "wire/json_skim.h"

enum {
	PIECE = 64 * 1024,
	GROUP = 4, /* characters of base64 that are whole bytes */
	NAME_SIZE = RUN_STEM_MAX + 32,
	TRIES_MAX = 100 * 1000, /* numbers that are taken already */
};

static const struct kind {
	enum run_member member;
	const char *ending;
	enum { AS_BASE64, AS_TEXT, AS_JSON } as;
} kinds[] = {
	{ RUN_PNG, "png", AS_BASE64 }, { RUN_JPEG, "jpeg", AS_BASE64 },
	{ RUN_PDF, "pdf", AS_BASE64 }, { RUN_SVG, "svg", AS_TEXT },
	{ RUN_HTML, "html", AS_TEXT }, { RUN_CHART, "chart.json", AS_JSON },
};

/* --- the folder ----------------------------------------------------------------------------- */

/* The name of a file without folders and ending; "result" if nothing is left. */
static void take_stem(char ret[static RUN_STEM_MAX + 1], const char *source)
{
	const char *slash = source ? strrchr(source, '/') : NULL;
	const char *name = slash ? slash + 1 : source ? source : "";
	const char *dot = strrchr(name, '.');
	size_t len = dot && dot > name ? (size_t)(dot - name) : strlen(name);

	snprintf(ret, RUN_STEM_MAX + 1, "%.*s", (int)(len < RUN_STEM_MAX ? len : RUN_STEM_MAX),
		 name);
	if (!*ret || strcmp(name, "-") == 0)
		snprintf(ret, RUN_STEM_MAX + 1, "result");
}

int run_files_open(struct run_files *f, const char *path, const char *source, struct err *err)
{
	const char *folder = path ? path : ".";

	f->path = path;
	take_stem(f->stem, source);
	if (path && mkdir(path, 0777) < 0 && errno != EEXIST)
		return err_set(err, ERR_INVALID, errno, "make the folder %s", path);
	f->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dir < 0)
		return err_set(err, ERR_INVALID, errno, "open the folder %s", folder);
	return 0;
}

void run_files_close(struct run_files *f)
{
	auto_close(&f->dir);
	f->dir = -1;
}

/* --- one file ------------------------------------------------------------------------------- */

struct target {
	struct run_files *files;
	int fd;
	struct err *err;
	/* of base64: characters that are no whole group yet, and whether its end was seen */
	uint8_t left[GROUP];
	size_t n_left;
	bool ended;
};

static int put(struct target *t, struct bytes piece)
{
	t->files->bytes += piece.len;
	if (t->files->bytes > RUN_FILES_BYTES_MAX)
		return err_set(t->err, ERR_EXHAUSTED, 0, "results of more than %llu MiB",
			       RUN_FILES_BYTES_MAX / (1024 * 1024));
	while (piece.len > 0) {
		ssize_t n = write(t->fd, piece.ptr, piece.len);

		if (n < 0 && errno != EINTR)
			return err_set(t->err, errno == ENOSPC ? ERR_NO_SPACE : ERR_INTERNAL, errno,
				       "write a result");
		piece = bytes_tail(piece, n > 0 ? (size_t)n : 0);
	}
	return 0;
}

static bool is_blank(uint8_t c)
{
	return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

/* Whole groups, of which only the last of all may be padded. */
static int put_groups(struct target *t, struct bytes groups)
{
	AUTO(buf_done) struct buf plain = BUF_MAX(PIECE);

	if (groups.len == 0)
		return 0;
	if (t->ended)
		return err_set(t->err, ERR_INVALID, 0, "base64 behind its end");
	t->ended = groups.ptr[groups.len - 1] == '=';
	if (base64_decode(groups, &plain, t->err) < 0)
		return -1;
	return put(t, buf_view(&plain));
}

/* `piece` has room for what was left of the one before, and loses its blanks. */
static int put_base64(struct target *t, uint8_t *piece, size_t len)
{
	size_t n = 0, whole;

	for (size_t i = 0; i < len; i++) {
		uint8_t c = piece[GROUP + i];

		if (c == '-' || c == '_')
			return err_set(t->err, ERR_INVALID, 0, "base64 of another alphabet");
		if (!is_blank(c))
			piece[GROUP + n++] = c;
	}
	memcpy(piece + GROUP - t->n_left, t->left, t->n_left);
	piece += GROUP - t->n_left;
	n += t->n_left;
	whole = n / GROUP * GROUP;
	t->n_left = n - whole;
	memcpy(t->left, piece + whole, t->n_left);
	return put_groups(t, (struct bytes){ piece, whole });
}

static int put_string(struct target *t, struct bytes text, bool base64)
{
	AUTO(auto_free) uint8_t *piece = malloc(GROUP + PIECE);
	size_t n;

	if (!piece)
		return err_set(t->err, ERR_EXHAUSTED, 0, "out of memory");
	while ((n = json_skim_take(&text, piece + GROUP, PIECE)) > 0)
		if ((base64 ? put_base64(t, piece, n)
			    : put(t, (struct bytes){ piece + GROUP, n })) < 0)
			return -1;
	return put_groups(t, (struct bytes){ t->left, t->n_left });
}

static int write_kind(struct target *t, const struct kind *k, struct bytes value)
{
	if (k->as != AS_JSON)
		return put_string(t, value, k->as == AS_BASE64);
	return put(t, value) < 0 ? -1 : put(t, BYTES_LIT("\n"));
}

/* The first number that is free, from this one on. */
static int create(const struct run_files *f, const char *ending, unsigned int *number,
		  char name[static NAME_SIZE], struct err *err)
{
	for (unsigned int i = 0; i < TRIES_MAX; i++, (*number)++) {
		int fd;

		snprintf(name, NAME_SIZE, "%s-%u.%s", f->stem, *number, ending);
		fd = openat(f->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return err_set(err, errno == ENOSPC ? ERR_NO_SPACE : ERR_INVALID, errno,
				       "make the file %s", name);
	}
	return err_set(err, ERR_EXHAUSTED, 0, "%s-1.%s to %s-%u.%s are there already", f->stem,
		       ending, f->stem, *number, ending);
}

/* What is not whole does not stay. */
static int add_file(struct run_files *f, const struct kind *k, struct bytes value, struct err *err)
{
	struct target t = { .files = f, .err = err };
	char name[NAME_SIZE];

	if (f->n == RUN_FILES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d files of one execution",
			       RUN_FILES_MAX);
	t.fd = create(f, k->ending, &f->number, name, err);
	if (t.fd < 0)
		return -1;
	if (write_kind(&t, k, value) < 0) {
		(void)unlinkat(f->dir, name, 0);
		close(t.fd);
		return err_wrap(err, "%s", name);
	}
	if (close(t.fd) < 0)
		return err_set(err, ERR_INTERNAL, errno, "%s", name);
	f->n++;
	f->on_file(f, name);
	return 0;
}

int run_files_add(struct run_files *f, const struct run_event *e, struct err *err)
{
	int n = 0;

	for (size_t i = 0; i < COUNT(kinds); i++) {
		if (!run_event_has(e, kinds[i].member))
			continue;
		f->number += n == 0; /* all files of a result have one number, if it is free */
		if (add_file(f, &kinds[i], e->member[kinds[i].member], err) < 0)
			return -1;
		n++;
	}
	return n;
}
