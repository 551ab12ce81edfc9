/* file_metadata.c - see file_metadata.h. */
#include "agent/files/file_metadata.h"

#include <errno.h>
#include <sys/xattr.h>

#define PREFIX "user.e2b."
enum {
	PREFIX_LEN = sizeof(PREFIX) - 1,
	NAME_MAX_LEN = PREFIX_LEN + METADATA_KEY_MAX,
	VALUE_MAX = 64 * 1024, /* of an attribute: the kernel's limit */
	NAMES_AT_ONCE = 4 * 1024,
};

/* --- from the fields of a request ----------------------------------------------------------- */

static bool is_printable(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++)
		if (b.ptr[i] < ' ' || b.ptr[i] > '~')
			return false;
	return true;
}

static int take(json_t *all, struct bytes key, struct bytes value, size_t *total, struct err *err)
{
	char name[METADATA_KEY_MAX + 1];

	if (key.len == 0)
		return err_set(err, ERR_INVALID, 0, "metadata key must not be empty");
	if (!bytes_to_str(key, name, sizeof(name)))
		return err_set(err, ERR_INVALID, 0, "metadata key is longer than %d bytes",
			       METADATA_KEY_MAX);
	if (!is_printable(key) || !is_printable(value))
		return err_set(err, ERR_INVALID, 0, "metadata must be printable ASCII");
	for (size_t i = 0; i < key.len; i++)
		if (name[i] >= 'A' && name[i] <= 'Z')
			name[i] = (char)(name[i] - 'A' + 'a');
	if (json_object_get(all, name)) /* the first one counts */
		return 0;
	*total += PREFIX_LEN + key.len + value.len;
	if (*total > METADATA_TOTAL_MAX)
		return err_set(err, ERR_INVALID, 0, "metadata is larger than %d bytes",
			       METADATA_TOTAL_MAX);
	if (json_object_set_new(all, name, json_text(value)) < 0)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "metadata");
	return 0;
}

int metadata_parse(const struct http1_head *h, json_t **ret, struct err *err)
{
	static const struct bytes prefix = BYTES_LIT("x-metadata-");
	AUTO(json_decrefp) json_t *all = json_object();
	size_t total = 0;

	if (!all)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "metadata");
	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http1_field *f = &h->fields[i];

		if (!bytes_eq_nocase(bytes_head(f->name, prefix.len), prefix))
			continue;
		if (take(all, bytes_tail(f->name, prefix.len), f->value, &total, err) < 0)
			return -1;
	}
	*ret = TAKE(all);
	return 0;
}

/* --- of a file ------------------------------------------------------------------------------ */

static bool is_ours(const char *name)
{
	return strncmp(name, PREFIX, PREFIX_LEN) == 0 && name[PREFIX_LEN] != '\0';
}

/* What was noted before; nothing on a new file. */
static void clear(int fd)
{
	char names[NAMES_AT_ONCE];
	ssize_t n = flistxattr(fd, names, sizeof(names));

	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1)
		if (is_ours(names + at))
			(void)fremovexattr(fd, names + at);
}

int metadata_set(int fd, json_t *metadata)
{
	char name[NAME_MAX_LEN + 1];
	const char *key;
	json_t *value;

	clear(fd);
	json_object_foreach(metadata, key, value)
	{
		snprintf(name, sizeof(name), PREFIX "%s", key);
		if (fsetxattr(fd, name, json_string_value(value), json_string_length(value), 0) < 0)
			return -1;
	}
	return 0;
}

static void read_one(const char *path, const char *name, json_t *into)
{
	AUTO(buf_done) struct buf value = BUF_MAX(VALUE_MAX + 1);
	ssize_t n = getxattr(path, name, NULL, 0);
	uint8_t *room;
	struct err err;

	if (n < 0 || n > VALUE_MAX || buf_reserve(&value, (size_t)n + 1, &room, &err) < 0)
		return;
	n = getxattr(path, name, room, (size_t)n + 1);
	if (n < 0 || memchr(room, 0, (size_t)n))
		return;
	/* fails, and does nothing, for what is not UTF-8 */
	(void)json_object_set_new(into, name + PREFIX_LEN, json_stringn((char *)room, (size_t)n));
}

static json_t *read_names(const char *path, const char *names, ssize_t n)
{
	json_t *all = NULL;

	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		if (!is_ours(names + at))
			continue;
		if (!all)
			all = json_object();
		if (all)
			read_one(path, names + at, all);
	}
	if (all && json_object_size(all) == 0) {
		json_decref(all);
		return NULL;
	}
	return all;
}

json_t *metadata_read(const char *path)
{
	AUTO(auto_free) char *names = NULL;
	char few[256];
	ssize_t n = listxattr(path, few, sizeof(few));

	if (n >= 0)
		return read_names(path, few, n);
	if (errno != ERANGE || !(names = malloc(METADATA_LIST_MAX)))
		return NULL;
	n = listxattr(path, names, METADATA_LIST_MAX);
	return read_names(path, names, n);
}
