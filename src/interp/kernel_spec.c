/* kernel_spec.c - see kernel_spec.h. */
#include "interp/kernel_spec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/read_all.h"

enum { FILE_MAX = 64 * 1024, FILE_DEPTH = 8 };

static bool name_ok(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > KERNEL_NAME_MAX || name[0] == '.' || name[0] == '-')
		return false;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = byte_lower((uint8_t)name[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !strchr("._+-", c))
			return false;
	}
	return true;
}

static bool all_strings(const json_t *v)
{
	const char *name;
	json_t *each;
	size_t i;

	if (json_is_array(v)) {
		json_array_foreach(v, i, each)
		{
			if (!json_is_string(each))
				return false;
		}
		return json_array_size(v) > 0 && json_array_size(v) < KERNEL_ARGS_MAX;
	}
	/* jansson's macro wants one that it could change */
	json_object_foreach((json_t *)(uintptr_t)v, name, each)
	{
		if (!json_is_string(each))
			return false;
	}
	return true;
}

static bool says(const json_t *object, const char *name, const char *word)
{
	const json_t *v = json_object_get(object, name);

	return json_is_string(v) && strcmp(json_string_value(v), word) == 0;
}

static int take(json_t *file, const char *path, struct kernel_spec *ret, struct err *err)
{
	*ret = (struct kernel_spec){
		.file = file,
		.dir = strndup(path, (size_t)(strrchr(path, '/') - path)),
		.argv = json_object_get(file, "argv"),
		.env = json_object_get(file, "env"),
		.interrupt_message = says(file, "interrupt_mode", "message"),
		.ipc = says(json_object_get(file, "metadata"), "transport", "ipc"),
	};
	if (ret->dir && json_is_array(ret->argv) && all_strings(ret->argv) &&
	    (!ret->env || (json_is_object(ret->env) && all_strings(ret->env))))
		return 0;
	kernel_spec_done(ret);
	return err_set(err, ERR_INVALID, 0, "%s: argv or env is not what it should be", path);
}

static int load(const char *path, struct kernel_spec *ret, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(FILE_MAX);
	/* of a pipe nobody would come to the other end, and all contexts would wait for it */
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	json_t *file;

	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, errno, "%s",
			       path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, 0, "%s is not a file", path);
	if (read_all(fd, &text, err) < 0 ||
	    json_decode(buf_view(&text), FILE_MAX, FILE_DEPTH, &file, err) < 0)
		return err_wrap(err, "%s", path);
	return take(file, path, ret, err);
}

int kernel_spec_find(const struct kernel_dirs *dirs, const char *name, struct kernel_spec *ret,
		     struct err *err)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < dirs->n && name_ok(name); i++) {
		if (snprintf(path, sizeof(path), "%s/%s/kernel.json", dirs->at[i], name) >=
		    (int)sizeof(path))
			continue;
		if (load(path, ret, err) == 0)
			return 0;
		if (err->code != ERR_NOT_FOUND)
			return -1;
	}
	return err_set(err, ERR_NOT_FOUND, 0, "no such kernel: %s", name);
}

void kernel_spec_done(struct kernel_spec *s)
{
	json_decref(s->file);
	free(s->dir);
	*s = (struct kernel_spec){ 0 };
}
