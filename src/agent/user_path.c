/* user_path.c - by the letters alone: symbolic links are the kernel's business. */
#include "agent/user_path.h"

#include <errno.h>

struct cleaner {
	char *ret;
	size_t len;
};

static bool append(struct cleaner *c, struct bytes segment)
{
	if (c->len + 1 + segment.len >= USER_PATH_MAX)
		return false;
	c->ret[c->len++] = '/';
	memcpy(c->ret + c->len, segment.ptr, segment.len);
	c->len += segment.len;
	return true;
}

static void go_up(struct cleaner *c)
{
	while (c->len > 0 && c->ret[--c->len] != '/')
		;
}

/* False when the result is too long. */
static bool clean(struct cleaner *c, struct bytes path)
{
	struct bytes segment;

	while (bytes_next(&path, '/', &segment)) {
		if (bytes_eq(segment, BYTES_LIT("..")))
			go_up(c);
		else if (segment.len > 0 && !bytes_eq(segment, BYTES_LIT(".")) &&
			 !append(c, segment))
			return false;
	}
	return true;
}

static int below_home(const struct account *who, struct bytes path, char *ret, struct err *err)
{
	struct cleaner c = { ret, 0 };

	if (!clean(&c, bytes_str(who->home)) || !clean(&c, path))
		return err_set(err, ERR_INVALID, ENAMETOOLONG, "path");
	if (c.len == 0)
		c.ret[c.len++] = '/';
	c.ret[c.len] = '\0';
	return 0;
}

int user_path(struct bytes path, const struct account *who, const char *workdir,
	      char ret[static USER_PATH_MAX], struct err *err)
{
	if (path.len == 0)
		path = bytes_str(workdir);
	if (path.len > 0 && memchr(path.ptr, '\0', path.len))
		return err_set(err, ERR_INVALID, 0, "a NUL in the path");
	if (path.len > 0 && path.ptr[0] == '/') {
		if (!bytes_to_str(path, ret, USER_PATH_MAX))
			return err_set(err, ERR_INVALID, ENAMETOOLONG, "path");
		return 0;
	}
	if (path.len > 0 && path.ptr[0] == '~') {
		if (path.len > 1 && path.ptr[1] != '/')
			return err_set(err, ERR_INVALID, 0, "cannot expand user-specific home dir");
		path = bytes_tail(path, 1);
	}
	return below_home(who, path, ret, err);
}

const char *path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] != '\0' ? slash + 1 : path;
}

void path_tidy(char *path)
{
	size_t n = 0;

	for (size_t at = 0; path[at] != '\0';) {
		size_t len = 1 + strcspn(path + at + 1, "/");
		bool nothing = len == 1 || (len == 2 && path[at + 1] == '.');

		if (!nothing) {
			memmove(path + n, path + at, len);
			n += len;
		}
		at += len;
	}
	if (n == 0)
		path[n++] = '/';
	path[n] = '\0';
}
