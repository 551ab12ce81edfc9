/* keys.c - see keys.h. */
#include "images/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/read_all.h"
#include "base/wipe.h"

enum { KEY_FILE_MAX = 256, OWN_MODE = 0600 };

static const char file[] = "seal.key", draft[] = "seal.key.new";

/* Whole or not at all, also after a power cut. */
static int write_key(int dir, struct bytes text, struct err *err)
{
	AUTO(auto_close) int fd = -1;

	if (folder_remove(dir, draft, err) < 0)
		return -1;
	fd = folder_open(dir, draft, O_WRONLY | O_CREAT | O_EXCL, OWN_MODE, err);
	if (fd < 0)
		return -1;
	if (write(fd, text.ptr, text.len) != (ssize_t)text.len || fsync(fd) < 0 ||
	    renameat(dir, draft, dir, file) < 0 || fsync(dir) < 0)
		return err_set(err, ERR_INTERNAL, errno, "write %s", file);
	log_info("a new key for credentials");
	return 0;
}

static int make_key(int dir, struct err *err)
{
	char text[SEAL_KEY_TEXT + 1];
	struct seal_key *key = NULL;
	int rc;

	if (seal_key_new(&key, err) < 0)
		return -1;
	rc = seal_key_text(key, text, err);
	seal_key_free(key);
	if (rc == 0)
		rc = write_key(dir, bytes_str(text), err);
	wipe(text, sizeof(text));
	return rc;
}

static int load(int dir, struct seal_key **ret, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(KEY_FILE_MAX);
	AUTO(auto_close) int fd = -1;

	if (faccessat(dir, file, F_OK, AT_EACCESS) < 0 && make_key(dir, err) < 0)
		return -1;
	fd = folder_open(dir, file, O_RDONLY, 0, err);
	if (fd < 0 || read_all(fd, &text, err) < 0)
		return -1;
	return seal_key_load(buf_view(&text), ret, err);
}

int keys_open(const char *folder, struct seal_key **ret, struct err *err)
{
	AUTO(auto_close) int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open %s", folder);
	return load(dir, ret, err) < 0 ? err_wrap(err, "the key in %s", folder) : 0;
}

int keys_facts(const struct seal_key *k, const char *agent, struct buf *out, struct err *err)
{
	char text[SEAL_KEY_TEXT + 1];

	if (seal_key_public(k, text, err) < 0)
		return -1;
	return buf_printf(out, err, "{\"sealKey\":\"%s\",\"agent\":\"%s\"}", text, agent);
}
