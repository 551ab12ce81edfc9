/* entry.c - see entry.h. */
#include "agent/filesystem/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <time.h>

#include "agent/files/file_metadata.h"
#include "agent/user_path.h"

enum { NUMBER_MAX = 24, LINK_TEXT_MAX = 64 };

void entry_permissions(mode_t mode, char ret[static ENTRY_PERMISSIONS_MAX])
{
	static const struct {
		mode_t mask, is;
		char letter;
	} kinds[] = {
		{ S_IFMT, S_IFDIR, 'd' },  { S_IFMT, S_IFLNK, 'L' },  { S_IFMT, S_IFBLK, 'D' },
		{ S_IFMT, S_IFCHR, 'D' },  { S_IFMT, S_IFIFO, 'p' },  { S_IFMT, S_IFSOCK, 'S' },
		{ S_ISUID, S_ISUID, 'u' }, { S_ISGID, S_ISGID, 'g' }, { S_IFMT, S_IFCHR, 'c' },
		{ S_ISVTX, S_ISVTX, 't' },
	};
	static const char letters[] = "rwxrwxrwx";
	size_t n = 0;

	for (size_t i = 0; i < COUNT(kinds); i++)
		if ((mode & kinds[i].mask) == kinds[i].is)
			ret[n++] = kinds[i].letter;
	if (n == 0)
		ret[n++] = '-';
	for (unsigned int i = 0; i < 9; i++)
		ret[n++] = mode & (0400u >> i) ? letters[i] : '-';
	ret[n] = '\0';
}

static void put_fraction(long ns, char *ret, size_t size)
{
	if (ns == 0)
		snprintf(ret, size, "Z");
	else if (ns % 1000000 == 0)
		snprintf(ret, size, ".%03ldZ", ns / 1000000);
	else if (ns % 1000 == 0)
		snprintf(ret, size, ".%06ldZ", ns / 1000);
	else
		snprintf(ret, size, ".%09ldZ", ns);
}

bool entry_time(const struct timespec *t, char ret[static ENTRY_TIME_MAX])
{
	char fraction[NUMBER_MAX];
	struct tm tm;

	if (!gmtime_r(&t->tv_sec, &tm) || tm.tm_year < 1 - 1900 || tm.tm_year > 9999 - 1900)
		return false;
	put_fraction(t->tv_nsec, fraction, sizeof(fraction));
	snprintf(ret, ENTRY_TIME_MAX, "%04d-%02d-%02dT%02d:%02d:%02d%s", tm.tm_year + 1900,
		 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, fraction);
	return true;
}

static const char *type_of(mode_t mode)
{
	if (S_ISREG(mode))
		return "FILE_TYPE_FILE";
	return S_ISDIR(mode) ? "FILE_TYPE_DIRECTORY" : NULL;
}

/* Where a link leads in the end. One that leads nowhere is reported under its own name. */
static void follow(const char *path, struct stat *target, char real[static USER_PATH_MAX])
{
	AUTO(auto_close) int fd = open(path, O_PATH | O_CLOEXEC);
	char link[LINK_TEXT_MAX];
	ssize_t n;

	snprintf(real, USER_PATH_MAX, "%s", path);
	target->st_mode = 0777; /* of no type */
	if (fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, real, USER_PATH_MAX - 1);
	if (n <= 0 || fstat(fd, target) < 0) {
		snprintf(real, USER_PATH_MAX, "%s", path);
		return;
	}
	real[n] = '\0';
}

static void set(json_t *v, const char *name, json_t *value)
{
	/* without memory json_encode() will fail, on `value` or on what follows */
	(void)json_object_set_new(v, name, value);
}

static void set_text(json_t *v, const char *name, const char *text)
{
	set(v, name, json_text(bytes_str(text)));
}

static void describe(json_t *v, const char *path, const struct stat *st,
		     struct account_names *names)
{
	char permissions[ENTRY_PERMISSIONS_MAX], size[NUMBER_MAX], modified[ENTRY_TIME_MAX];

	set_text(v, "name", path_name(path));
	set_text(v, "path", path);
	entry_permissions(st->st_mode, permissions);
	set_text(v, "permissions", permissions);
	set_text(v, "owner", account_names_user(names, st->st_uid));
	set_text(v, "group", account_names_group(names, st->st_gid));
	if (entry_time(&st->st_mtim, modified))
		set_text(v, "modifiedTime", modified);
	if (st->st_size > 0) {
		snprintf(size, sizeof(size), "%" PRId64, (int64_t)st->st_size);
		set_text(v, "size", size);
	}
}

/* What a link has of its target, and everything else of itself. */
static void describe_target(json_t *v, const char *path, const struct stat *st)
{
	char real[USER_PATH_MAX];
	struct stat target = *st;
	json_t *metadata;

	if (S_ISLNK(st->st_mode)) {
		follow(path, &target, real);
		set_text(v, "symlinkTarget", real);
	}
	if (type_of(target.st_mode))
		set_text(v, "type", type_of(target.st_mode));
	if (target.st_mode & 0777)
		set(v, "mode", json_integer(target.st_mode & 0777));
	metadata = type_of(target.st_mode) ? metadata_read(path) : NULL;
	if (metadata)
		set(v, "metadata", metadata);
}

int entry_put(struct buf *out, const char *path, struct account_names *names, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	struct stat st;

	if (lstat(path, &st) < 0)
		return err_set(err,
			       errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : ERR_INTERNAL,
			       errno, "stat");
	v = json_object();
	if (!v)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "describe a file");
	describe(v, path, &st, names);
	describe_target(v, path, &st);
	return json_encode(v, out, err);
}
