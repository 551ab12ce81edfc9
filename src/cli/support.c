/* support.c - versions, status, checks, settings, tables and the end of the logs in one text, out
 * of which everything that could be a secret is taken (redact.h).
 */
#include "cli/support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/own.h"
#include "base/read_all.h"
#include "cli/doctor.h"
#include "cli/program.h"
#include "cli/redact.h"
#include "cli/say.h"

enum {
	BUNDLE_MAX = 32 * 1024 * 1024,
	PART_MAX = 2 * 1024 * 1024, /* of one program or file: what is longer is cut */
	WORDS_MAX = 12,
	NAME_SIZE = 64,
};

#define SELF "/proc/self/exe"

/* What is asked of this very program and of others, each within ten seconds. */
static const char *const programs[][WORDS_MAX] = {
	{ SELF, "--version" },
	{ "/usr/bin/uname", "-a" },
	{ "/usr/bin/cat", "/etc/os-release" },
	{ "/usr/bin/qemu-system-x86_64", "--version" },
	{ "/usr/bin/free", "-m" },
	{ "/usr/bin/df", "-hT" },
	{ SELF, "doctor", "--json" },
	{ SELF, "status", "--json" },
	{ SELF, "ps", "--all" },
	{ SELF, "ps", "--usage" },
	{ SELF, "ended" },
	{ SELF, "templates" },
	{ SELF, "snapshots" },
	{ SELF, "lost" },
	{ "/usr/bin/systemctl", "list-units", "--all", "--no-pager", "--plain", "hotcell*" },
	{ "/usr/bin/journalctl", "--no-pager", "--lines=2000", "--output=short-iso",
	  "--unit=hotcell*" },
};

struct bundle {
	const struct cli *c;
	struct buf text;
	struct err *err;
};

static int add_title(struct bundle *b, const char *title)
{
	return buf_printf(&b->text, b->err, "\n==== %s\n\n", title);
}

static int add_text(struct bundle *b, struct bytes text)
{
	return redact_text(text, &b->text, b->err);
}

/* Ours are told where the gateway is. */
static int add_program(struct bundle *b, const char *const *words)
{
	AUTO(auto_free) char *said = malloc(PART_MAX);
	AUTO(buf_done) struct buf title = BUF_MAX(1024);
	bool own = strcmp(words[0], SELF) == 0;
	const char *argv[WORDS_MAX + 3] = { 0 };
	int n = 0;

	for (; words[n] && n < WORDS_MAX; n++) {
		argv[n] = words[n];
		if (buf_printf(&title, b->err, "%s%s", n ? " " : "",
			       n == 0 && own ? "hotcell" : words[n]) < 0)
			return -1;
	}
	if (own) {
		argv[n++] = "--socket";
		argv[n] = b->c->socket;
	}
	if (!said || buf_add(&title, (struct bytes){ (const uint8_t *)"", 1 }, b->err) < 0 ||
	    add_title(b, (const char *)title.ptr) < 0)
		return -1;
	if (access(words[0], X_OK) < 0 || !program_output(argv, said, PART_MAX))
		return buf_printf(&b->text, b->err, "(nothing)\n");
	return add_text(b, bytes_str(said));
}

static int add_file(int dir, const char *name, void *context, struct err *err)
{
	struct bundle *b = context;
	AUTO(buf_done) struct buf text = BUF_MAX(PART_MAX);
	const char *dot = strrchr(name, '.');
	AUTO(auto_close) int fd = -1;
	struct err ignored;

	if (!dot || strcmp(dot, ".conf") != 0)
		return 0;
	fd = folder_open(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, &ignored);
	if (add_title(b, name) < 0)
		return -1;
	if (fd < 0 || read_all(fd, &text, &ignored) < 0)
		return buf_printf(&b->text, err, "(it cannot be read)\n");
	return add_text(b, buf_view(&text));
}

static int add_settings(struct bundle *b)
{
	AUTO(auto_close)
	int dir = open(b->c->conf_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return buf_printf(&b->text, b->err, "\n==== %s\n\n(%s)\n", b->c->conf_dir,
				  strerror(errno));
	return folder_each(dir, add_file, b, b->err);
}

static int gather(struct bundle *b)
{
	if (buf_printf(&b->text, b->err,
		       "A support bundle of Hotcell. What could be a secret was taken out: "
		       "[redacted]. Names of teams, sandboxes, templates and hosts are in it: look "
		       "at it before you send it.\n") < 0)
		return -1;
	for (size_t i = 0; i < COUNT(programs); i++) {
		if (!b->c->json && isatty(STDERR_FILENO))
			fprintf(stderr, "\rhotcell: %zu of %zu", i + 1, COUNT(programs));
		if (add_program(b, programs[i]) < 0)
			return -1;
	}
	if (!b->c->json && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	return add_settings(b);
}

static int write_all(int fd, struct bytes text, struct err *err)
{
	while (text.len > 0) {
		ssize_t n = write(fd, text.ptr, text.len);

		if (n < 0 && errno != EINTR)
			return err_set(err, ERR_NO_SPACE, errno, "write it");
		text = bytes_tail(text, n > 0 ? (size_t)n : 0);
	}
	return 0;
}

/* Never over a file that is there: it may be somebody's. */
static int put(const char *path, struct bytes text, struct err *err)
{
	AUTO(auto_close) int fd = -1;

	if (strcmp(path, "-") == 0)
		return write_all(STDOUT_FILENO, text, err);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(err, errno == EEXIST ? ERR_EXISTS : ERR_INVALID, errno, "%.200s",
			       path);
	return write_all(fd, text, err);
}

static void default_name(char ret[static NAME_SIZE])
{
	time_t now = time(NULL);
	struct tm tm;

	if (!gmtime_r(&now, &tm) ||
	    strftime(ret, NAME_SIZE, "hotcell-support-%Y%m%dT%H%M%SZ.txt", &tm) == 0)
		snprintf(ret, NAME_SIZE, "hotcell-support.txt");
}

int support_run(struct cli *c)
{
	struct err err = { 0 };
	struct bundle b = { c, BUF_MAX(BUNDLE_MAX), &err };
	const char *path = c->n_words ? c->words[0] : NULL;
	char name[NAME_SIZE];
	int status = CLI_FINE;

	if (!path) {
		default_name(name);
		path = name;
	}
	if (gather(&b) < 0 || put(path, buf_view(&b.text), &err) < 0) {
		err_wrap(&err, "support");
		status = err.sys == EPIPE ? (int)CLI_CLOSED
					  : cli_fail_fix(c, &err,
							 "name a file that is not there: hotcell "
							 "support FILE; -: standard output");
	} else if (strcmp(path, "-") != 0) {
		printf("%s\n", path);
	}
	buf_done(&b.text);
	return status;
}
