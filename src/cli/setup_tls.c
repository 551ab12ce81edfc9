/* setup_tls.c - a certificate for the domain, whom clients trust, and whether names lead here. */
#include <fcntl.h>

#include "base/read_all.h"
#include "cli/program.h"
#include "cli/setup.h"
#include "cli/tls.h"
#include "tls/cert_dir.h"

#define SYSTEM_BUNDLE "/etc/ssl/certs/ca-certificates.crt"

enum { BUNDLE_MAX = 4 * 1024 * 1024, GETENT_MS = 10 * 1000 };

/* --- certificates that are there ------------------------------------------------------------ */

/* Is this one for the domain and what is right below it? */
static bool covers(const struct pair_facts *facts, const char *name)
{
	char below[DOMAIN_SIZE + 2];

	snprintf(below, sizeof(below), "*.%s", name);
	for (size_t i = 0; i < facts->n_names; i++)
		if (strcmp(facts->names[i], below) == 0)
			return true;
	return false;
}

struct covered {
	bool there, ours;
};

static void look_at_pair(const struct setup *s, int dir, const char *folder, struct bytes ca,
			 struct covered *ret)
{
	AUTO(buf_done) struct buf chain = BUF_MAX(PAIR_TEXT_MAX);
	struct pair_facts facts;
	struct err err;

	if (cert_dir_read(dir, folder, CERT_CHAIN_FILE, &chain, &err) < 0 ||
	    pair_read(buf_view(&chain), &facts, &err) < 0 || !covers(&facts, s->name))
		return;
	ret->there = true;
	ret->ours |= ca.len > 0 && pair_signed_by(buf_view(&chain), ca);
}

static struct covered look_for_certificate(const struct setup *s)
{
	static struct cert_files files; /* large */
	AUTO(auto_close) int dir = open(s->tls_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(buf_done) struct buf ca = BUF_MAX(PAIR_TEXT_MAX);
	struct covered ret = { 0 };
	struct err err;

	if (dir < 0 || cert_dir_look(dir, CERT_CHAIN_FILE, &files, &err) < 0)
		return ret;
	if (cert_dir_read(dir, TLS_AUTHORITY, "ca.pem", &ca, &err) < 0)
		buf_clear(&ca);
	for (size_t i = 0; i < files.n; i++)
		look_at_pair(s, dir, files.file[i].name, buf_view(&ca), &ret);
	return ret;
}

/* --- whom clients trust --------------------------------------------------------------------- */

/* The system's authorities and ours in one file: SDKs take one list in place of their own. */
static int trusted_text(const struct tls_files *f, struct buf *ret, struct err *err)
{
	AUTO(auto_close) int fd = open(SYSTEM_BUNDLE, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read_all(fd, ret, err) < 0)
		return -1;
	return tls_files_read(f, TLS_AUTHORITY "/ca.pem", ret, err);
}

static int put_trusted(const struct tls_files *f, bool *ret_changed, struct err *err)
{
	AUTO(buf_done) struct buf want = BUF_MAX(BUNDLE_MAX), have = BUF_MAX(BUNDLE_MAX);

	if (trusted_text(f, &want, err) < 0)
		return -1;
	if (tls_files_read(f, TLS_AUTHORITY "/" SETUP_TRUSTED, &have, err) == 0 &&
	    bytes_eq(buf_view(&have), buf_view(&want)))
		return 0;
	*ret_changed = true;
	return tls_files_put_text(f, TLS_AUTHORITY, SETUP_TRUSTED, buf_view(&want), err);
}

/* --- the step ------------------------------------------------------------------------------- */

static int make(struct setup *s, struct setup_said *ret, struct err *err)
{
	struct tls_files files;
	struct tls_made made = { 0 };
	bool changed = false;
	int rc = tls_files_open(&s->cli, true, &files, err);

	setup_fix(s, "as root, on a disk that has room, with the user of signer.conf");
	if (rc == 0) {
		rc = tls_make(&files, s->domain, &made, err);
		setup_fix(s, "%s", made.fix);
	}
	setup_at(s, "certificate.made");
	if (rc == 0)
		rc = put_trusted(&files, &changed, err);
	tls_files_close(&files);
	if (rc < 0)
		return -1;
	changed |= made.made_authority || made.made_certificate;
	setup_said(ret, changed ? SETUP_DONE : SETUP_KEPT,
		   "%s for %s and what is below it, in %.200s",
		   made.made_authority     ? "an authority and a certificate"
		   : made.made_certificate ? "a certificate"
					   : "there is a certificate",
		   s->name, s->tls_dir);
	return 0;
}

int setup_certificate(struct setup *s, struct setup_said *ret, struct err *err)
{
	struct covered found = look_for_certificate(s);

	s->own_authority = !s->proxied && (found.ours || !found.there);
	if (s->proxied)
		setup_said(ret, SETUP_SKIPPED,
			   "a proxy speaks TLS for the gateway (proxies of gateway.conf)");
	else if (found.there && !found.ours)
		setup_said(ret, SETUP_KEPT, "there is one for %s, of your own", s->name);
	else if (s->cli.dry_run)
		setup_said(ret, found.there ? SETUP_KEPT : SETUP_WOULD,
			   found.there ? "there is one for %s"
				       : "make an authority and a certificate for %s",
			   s->name);
	else
		return make(s, ret, err);
	return 0;
}

/* --- names ---------------------------------------------------------------------------------- */

/* Where a resolver is asked before the host itself (Debian 12), it may name anybody. */
static bool is_elsewhere(const struct setup *s, const char *address)
{
	return tls_is_local(s->name) && strncmp(address, "127.", 4) != 0 &&
	       strcmp(address, "::1") != 0;
}

/* Do programs of this host find the gateway? That is asked as they ask. */
int setup_names(struct setup *s, struct setup_said *ret, struct err *err)
{
	char host[DOMAIN_SIZE + 8];
	const char *const argv[] = { "getent", "ahosts", host, NULL };
	struct program p;

	snprintf(host, sizeof(host), "api.%s", s->name);
	if (program_run(argv, GETENT_MS, &p, err) == 0 && p.status == 0) {
		p.said[strcspn(p.said, " \n")] = '\0';
		setup_said(ret, SETUP_KEPT, "%s is %.64s", host, p.said);
		if (is_elsewhere(s, p.said)) {
			ret->state = SETUP_WARN;
			ret->fix = "in /etc/nsswitch.conf, in the line `hosts`, put myhostname "
				   "before dns: a name below localhost is this machine";
		}
		return 0;
	}
	*err = (struct err){ 0 };
	setup_said(ret, SETUP_WARN, "programs of this host do not find %s", host);
	ret->fix = tls_is_local(s->name)
			   ? "sudo apt-get install -y libnss-myhostname"
			   : "records A and AAAA for the domain and *.DOMAIN: docs/tls.md";
	return 0;
}
