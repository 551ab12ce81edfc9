/* base_trust.c - whom the guests of the template `base` are made to trust.
 *
 * The injector's authority comes from the injector itself and is kept beside the journal: so a node
 * that starts while there is none knows which template fits.
 */
/* #syscalls: openat openat2 read write fsync rename close fstat */
#include "node/template/base_trust.h"

#include <errno.h>
#include <fcntl.h>

#include "base/log.h"
#include "base/read_all.h"
#include "node/node.h"
#include "vm/trust_ca.h"

#define KEPT_NAME "ca.pem"

/* An empty file is how an installation begins: nobody is named. */
static int read_pem(const char *path, struct buf *ret, struct err *err)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	AUTO(buf_done) struct buf text = BUF_MAX(TRUST_CA_MAX + 4096);

	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_UNAVAILABLE, errno,
			       "open '%s'", path);
	if (read_all(fd, &text, err) < 0)
		return err_wrap(err, "'%s'", path);
	if (text.len > 0 && !trust_ca_ok(buf_view(&text)))
		return err_set(err, ERR_INVALID, 0,
			       "'%s' must have certificates as PEM, no key, and at most %d bytes",
			       path, TRUST_CA_MAX);
	buf_done(ret);
	*ret = text;
	text = (struct buf){ 0 };
	return 0;
}

static int kept_path(const struct node *n, const char *suffix, char ret[TEMPLATE_PATH_MAX],
		     struct err *err)
{
	int k = snprintf(ret, TEMPLATE_PATH_MAX, "%s/" KEPT_NAME "%s", n->set[SET_DATA_DIR].text,
			 suffix);

	return k < 0 || k >= TEMPLATE_PATH_MAX ? err_set(err, ERR_INVALID, 0, "path too long") : 0;
}

static int write_pem(const char *path, struct bytes pem, struct err *err)
{
	AUTO(auto_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "create '%s'", path);
	if (write(fd, pem.ptr, pem.len) != (ssize_t)pem.len || fsync(fd) < 0)
		return err_set(err, ERR_INTERNAL, errno, "write '%s'", path);
	return 0;
}

static int keep(const struct node *n, struct bytes pem, struct err *err)
{
	char path[TEMPLATE_PATH_MAX], fresh[TEMPLATE_PATH_MAX];

	if (kept_path(n, "", path, err) < 0 || kept_path(n, ".new", fresh, err) < 0 ||
	    write_pem(fresh, pem, err) < 0)
		return -1;
	return rename(fresh, path) < 0 ? err_set(err, ERR_INTERNAL, errno, "name '%s'", path) : 0;
}

/* An operator's file that cannot be used is told when the template is asked for. */
static void open_setting(struct node *n, enum node_setting setting, struct buf *ret)
{
	struct base_trust *t = &n->base.trust;

	if (n->set[setting].text[0] && t->why.code == ERR_NONE &&
	    read_pem(n->set[setting].text, ret, &t->why) < 0)
		err_wrap(&t->why, "%s", settings_table[setting].name);
}

void base_trust_open(struct node *n)
{
	struct base_trust *t = &n->base.trust;
	char path[TEMPLATE_PATH_MAX];
	struct err err;

	open_setting(n, SET_EXTRA_CA, &t->extra);
	open_setting(n, SET_GUEST_CA, &t->own);
	if (!t->awaited || t->own.len > 0 || kept_path(n, "", path, &err) < 0)
		return;
	if (read_pem(path, &t->own, &err) < 0 && err.code != ERR_NOT_FOUND)
		log_warn("%s", err.msg);
}

void base_trust_close(struct node *n)
{
	buf_done(&n->base.trust.own);
	buf_done(&n->base.trust.extra);
	buf_done(&n->base.trust.all);
}

void base_trust_learn(struct node *n, struct bytes pem)
{
	struct base_trust *t = &n->base.trust;
	struct err err;

	if (!trust_ca_ok(pem)) {
		log_error("the injector's authority is no certificate");
		return;
	}
	if (bytes_eq(buf_view(&t->own), pem))
		return;
	t->own.len = 0;
	t->own.max = TRUST_CA_MAX;
	if (buf_add(&t->own, pem, &err) < 0 || keep(n, pem, &err) < 0)
		log_warn("keep the injector's authority: %s", err.msg);
	base_look_again(n, "whom its guests must trust has changed");
}

bool base_trust_ready(const struct node *n)
{
	const struct base_trust *t = &n->base.trust;

	return !t->awaited || t->own.len > 0;
}

int base_trust_text(struct node *n, struct bytes *ret, struct err *err)
{
	struct base_trust *t = &n->base.trust;

	if (t->why.code != ERR_NONE) {
		*err = t->why;
		return -1;
	}
	t->all.len = 0;
	t->all.max = TRUST_CA_MAX;
	if (buf_add(&t->all, buf_view(&t->own), err) < 0 ||
	    (t->own.len > 0 && t->extra.len > 0 && buf_add(&t->all, BYTES_LIT("\n"), err) < 0) ||
	    buf_add(&t->all, buf_view(&t->extra), err) < 0)
		return err_wrap(err, "certificates for guests");
	*ret = buf_view(&t->all);
	return 0;
}
