/* conf.c - see conf.h. */
#include "cli/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/read_all.h"
#include "cli/write_file.h"

void conf_read(struct conf *ret, const char *path)
{
	ret->there = read_text(AT_FDCWD, path, ret->text, sizeof(ret->text)) >= 0;
}

void conf_read_daemon(struct conf *ret, const char *folder, const char *daemon)
{
	char path[CONF_VALUE_MAX];

	snprintf(path, sizeof(path), "%s/%s.conf", folder, daemon);
	conf_read(ret, path);
}

bool conf_value(const struct conf *c, const char *name, char ret[static CONF_VALUE_MAX])
{
	struct bytes rest = bytes_str(c->text), line, key;
	bool there = false;

	ret[0] = '\0';
	while (bytes_next(&rest, '\n', &line)) {
		if (!bytes_next(&line, '=', &key) || !bytes_eq(bytes_trim(key), bytes_str(name)))
			continue;
		(void)bytes_to_str(bytes_trim(line), ret, CONF_VALUE_MAX);
		there = true;
	}
	return there;
}

void conf_text(const struct conf *c, const char *name, const char *otherwise,
	       char ret[static CONF_VALUE_MAX])
{
	conf_value(c, name, ret);
	if (!ret[0])
		snprintf(ret, CONF_VALUE_MAX, "%s", otherwise);
}

uint64_t conf_number(const struct conf *c, const char *name, uint64_t otherwise)
{
	char text[CONF_VALUE_MAX];
	uint64_t n;

	conf_value(c, name, text);
	return bytes_to_u64(bytes_str(text), &n) ? n : otherwise;
}

bool conf_says(const struct conf *c, const char *name, const char *value)
{
	char text[CONF_VALUE_MAX];

	conf_value(c, name, text);
	return strcmp(text, value) == 0;
}

bool conf_user(const char *user, uid_t *ret_uid, gid_t *ret_gid)
{
	uint64_t n = UINT32_MAX;
	bool is_number = bytes_to_u64(bytes_str(user), &n) && n < UINT32_MAX;
	const struct passwd *who = is_number ? getpwuid((uid_t)n) : getpwnam(user);

	*ret_uid = who ? who->pw_uid : (uid_t)n;
	*ret_gid = who ? who->pw_gid : (gid_t)n;
	return who || is_number;
}

/* --- a setting is changed -------------------------------------------------------------------- */

/* What stands before the `=` of a line, "#domain" for one that shows a default; "": nothing does.
 */
static struct bytes key_of(struct bytes line)
{
	struct bytes key = { 0 };

	return bytes_cut(&line, '=', &key) ? bytes_trim(key) : (struct bytes){ 0 };
}

/* Behind which byte of the text the new line comes, and how many it takes the place of. */
struct conf_spot {
	size_t at, instead;
	bool found, in_force;
};

static struct conf_spot find_spot(struct bytes text, const char *name)
{
	struct conf_spot spot = { .at = text.len };
	struct bytes rest = text, line;

	while (bytes_next(&rest, '\n', &line)) {
		size_t begin = (size_t)(line.ptr - text.ptr);
		struct bytes key = key_of(line);

		if (bytes_eq(key, bytes_str(name)))
			spot = (struct conf_spot){ begin, line.len, true, true };
		else if (!spot.in_force && key.len > 1 && key.ptr[0] == '#' &&
			 bytes_eq(bytes_trim(bytes_tail(key, 1)), bytes_str(name)))
			spot = (struct conf_spot){ begin + line.len, 0, true, false };
	}
	return spot;
}

int conf_with(struct bytes text, const char *name, const char *value, struct buf *ret,
	      struct err *err)
{
	struct conf_spot spot = find_spot(text, name);
	const char *before = "", *behind = "";

	if (spot.found && !spot.in_force)
		before = "\n";
	if (!spot.found) {
		before = text.len > 0 && text.ptr[text.len - 1] != '\n' ? "\n" : "";
		behind = "\n";
	}
	if (buf_add(ret, bytes_head(text, spot.at), err) < 0 ||
	    buf_printf(ret, err, "%s%s = %s%s", before, name, value, behind) < 0)
		return -1;
	return buf_add(ret, bytes_tail(text, spot.at + spot.instead), err);
}

int conf_put(const char *folder, const char *daemon, const char *name, const char *value,
	     struct err *err)
{
	AUTO(auto_close) int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	AUTO(buf_done) struct buf was = BUF_MAX(CONF_TEXT_MAX), now = BUF_MAX(CONF_TEXT_MAX);
	char file[CONF_NAME_MAX];
	struct stat st;

	if (dir < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "%.200s", folder);
	snprintf(file, sizeof(file), "%s.conf", daemon);
	fd = folder_open(dir, file, O_RDONLY, 0, err);
	if (fd < 0 || read_all(fd, &was, err) < 0 ||
	    conf_with(buf_view(&was), name, value, &now, err) < 0)
		return err_wrap(err, "%s", folder);
	if (fstat(fd, &st) < 0)
		return err_set(err, ERR_INTERNAL, errno, "%s/%s", folder, file);
	return write_file(dir, file, buf_view(&now),
			  &(struct write_how){ st.st_mode & 07777, st.st_uid, st.st_gid, true },
			  err);
}
