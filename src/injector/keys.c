/* keys.c - see keys.h. */
#include "injector/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/random.h"
#include "base/read_all.h"
#include "base/wipe.h"
#include "wire/json.h"

enum { LABEL_RANDOM = 4, OWN_MODE = 0600 };

/* --- files ---------------------------------------------------------------------------------- */

static int read_file(int dir, const char *name, struct buf *ret, struct err *err)
{
	AUTO(auto_close) int fd = folder_open(dir, name, O_RDONLY, 0, err);

	if (fd < 0)
		return -1;
	return read_all(fd, ret, err) < 0 ? err_wrap(err, "%s", name) : 0;
}

/* Whole or not at all, also after a power cut. */
static int write_file(int dir, const char *name, struct bytes text, struct err *err)
{
	AUTO(auto_close) int fd = -1;
	char draft[64];

	snprintf(draft, sizeof(draft), "%s.new", name);
	if (folder_remove(dir, draft, err) < 0)
		return -1;
	fd = folder_open(dir, draft, O_WRONLY | O_CREAT | O_EXCL, OWN_MODE, err);
	if (fd < 0)
		return -1;
	if (write(fd, text.ptr, text.len) != (ssize_t)text.len || fsync(fd) < 0 ||
	    renameat(dir, draft, dir, name) < 0 || fsync(dir) < 0)
		return err_set(err, ERR_INTERNAL, errno, "write %s", name);
	return 0;
}

static bool exists(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- the root ------------------------------------------------------------------------------- */

static int make_root(int dir, struct err *err)
{
	AUTO(buf_done) struct buf key = BUF_SECRET(AUTHORITY_TEXT_MAX);
	AUTO(buf_done) struct buf cert = BUF_MAX(AUTHORITY_TEXT_MAX);
	char label[AUTHORITY_LABEL_MAX + 1], number[2 * LABEL_RANDOM + 1];
	struct authority *root = NULL;
	int rc;

	random_hex(number, LABEL_RANDOM);
	snprintf(label, sizeof(label), "Hotcell %s", number);
	if (authority_new(label, &root, err) < 0)
		return -1;
	rc = authority_key_text(root, &key, err) < 0 || authority_cert_text(root, &cert, err) < 0 ||
			     write_file(dir, "root.key", buf_view(&key), err) < 0 ||
			     write_file(dir, "root.crt", buf_view(&cert), err) < 0
		     ? -1
		     : 0;
	authority_free(root);
	if (rc == 0)
		log_info("a new root for certificates: %s", label);
	return rc;
}

static int open_root(int dir, struct keys *k, struct err *err)
{
	AUTO(buf_done) struct buf key = BUF_SECRET(AUTHORITY_TEXT_MAX);
	AUTO(buf_done) struct buf cert = BUF_MAX(AUTHORITY_TEXT_MAX);

	if (!exists(dir, "root.crt") && make_root(dir, err) < 0)
		return -1;
	if (read_file(dir, "root.key", &key, err) < 0 || read_file(dir, "root.crt", &cert, err) < 0)
		return -1;
	return authority_load(buf_view(&cert), buf_view(&key), &k->root, err);
}

/* --- the key for secrets -------------------------------------------------------------------- */

static int make_seal_key(int dir, struct err *err)
{
	char text[SEAL_KEY_TEXT + 1];
	struct seal_key *key = NULL;
	int rc;

	if (seal_key_new(&key, err) < 0)
		return -1;
	rc = seal_key_text(key, text, err);
	seal_key_free(key);
	if (rc == 0)
		rc = write_file(dir, "seal.key", bytes_str(text), err);
	wipe(text, sizeof(text));
	if (rc == 0)
		log_info("a new key for secrets");
	return rc;
}

static int open_seal_key(int dir, struct keys *k, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(AUTHORITY_TEXT_MAX);

	if (!exists(dir, "seal.key") && make_seal_key(dir, err) < 0)
		return -1;
	if (read_file(dir, "seal.key", &text, err) < 0)
		return -1;
	return seal_key_load(buf_view(&text), &k->seal, err);
}

/* --- for others ----------------------------------------------------------------------------- */

int keys_open(const char *folder, struct keys *ret, struct err *err)
{
	AUTO(auto_close) int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*ret = (struct keys){ 0 };
	if (dir < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open %s", folder);
	if (open_root(dir, ret, err) < 0 || open_seal_key(dir, ret, err) < 0) {
		keys_done(ret);
		return err_wrap(err, "the keys in %s", folder);
	}
	return 0;
}

void keys_done(struct keys *k)
{
	authority_free(k->root);
	seal_key_free(k->seal);
	*k = (struct keys){ 0 };
}

int keys_facts(const struct keys *k, struct buf *out, struct err *err)
{
	AUTO(buf_done) struct buf cert = BUF_MAX(AUTHORITY_TEXT_MAX);
	AUTO(json_decrefp) json_t *v = NULL;
	char seal_key[SEAL_KEY_TEXT + 1];

	if (authority_cert_text(k->root, &cert, err) < 0 ||
	    seal_key_public(k->seal, seal_key, err) < 0)
		return -1;
	v = json_pack("{s:s%,s:s}", "ca", cert.ptr, cert.len, "sealKey", seal_key);
	if (!v)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "what everybody may know");
	return json_encode(v, out, err);
}
