/* places.c - see places.h. */
#include "images/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/folder.h"
#include "base/read_all.h"
#include "images/registries.h"
#include "jail/confine.h"

enum { CA_MAX = 1024 * 1024, READ_BY_ALL = 0644 };

static int make(const struct config_value *set, const char *below, char ret[static PLACE_MAX],
		struct err *err)
{
	int n = snprintf(ret, PLACE_MAX, "%s/%s", set[SET_DATA_DIR].text, below);

	if (n < 0 || n >= PLACE_MAX)
		return err_set(err, ERR_INVALID, 0, "data_dir is too long");
	return confine_folder(ret, set[SET_USER].text, err);
}

static int write_text(const char *folder, const char *name, struct bytes text, struct err *err)
{
	AUTO(auto_close) int dir = folder_ensure(folder, 0755, err);
	AUTO(auto_close) int fd = -1;

	if (dir < 0 || folder_remove(dir, name, err) < 0)
		return -1;
	fd = folder_open(dir, name, O_WRONLY | O_CREAT | O_EXCL, READ_BY_ALL, err);
	if (fd < 0)
		return -1;
	if (write(fd, text.ptr, text.len) != (ssize_t)text.len)
		return err_set(err, ERR_NO_SPACE, errno, "write %s", name);
	return 0;
}

/* One that is empty says nothing, as the installed one does. */
static int copy_ca(const struct config_value *set, const char *certs, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(CA_MAX);
	AUTO(auto_close) int fd = -1;

	if (set[SET_EXTRA_CA].text[0]) {
		fd = open(set[SET_EXTRA_CA].text, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT) /* none yet is none, as for node */
			return err_set(err, ERR_NOT_FOUND, errno, "open extra_ca = %s",
				       set[SET_EXTRA_CA].text);
		if (fd >= 0 && read_all(fd, &text, err) < 0)
			return err_wrap(err, "extra_ca");
	}
	return write_text(certs, "extra.crt", buf_view(&text), err);
}

/* They are root's when it is root who starts: no child can change them. */
static int write_etc(const struct config_value *set, const struct places *p, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(REGISTRIES_TEXT_MAX);
	AUTO(auto_close) int none = -1;
	char path[PLACE_MAX + 16];

	if (registries_conf(set, &text, err) < 0 ||
	    write_text(p->etc, "registries.conf", buf_view(&text), err) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/registries.d", p->etc);
	none = folder_ensure(path, 0755, err);
	snprintf(path, sizeof(path), "%s/certs", p->etc);
	return none < 0 ? -1 : copy_ca(set, path, err);
}

int places_make(const struct config_value *set, struct places *ret, struct err *err)
{
	char blobs[PLACE_MAX], given[PLACE_MAX], top[PLACE_MAX];

	if (make(set, "", top, err) < 0 || make(set, "etc", ret->etc, err) < 0 ||
	    make(set, "store", ret->store, err) < 0 || make(set, "store/blobs", blobs, err) < 0 ||
	    make(set, "store/given", given, err) < 0 ||
	    make(set, "store/jobs", ret->jobs, err) < 0 || make(set, "auth", ret->auth, err) < 0 ||
	    make(set, "keys", ret->keys, err) < 0 || make(set, "root", ret->root, err) < 0)
		return -1;
	return write_etc(set, ret, err);
}

static int remove_one(int dir, const char *name, void *context, struct err *err)
{
	(void)context;
	return folder_remove(dir, name, err);
}

static int empty(const char *path, struct err *err)
{
	AUTO(auto_close) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open %s", path);
	return folder_each(dir, remove_one, NULL, err);
}

int places_sweep(const struct places *p, struct err *err)
{
	return empty(p->jobs, err) < 0 ? -1 : empty(p->auth, err);
}
