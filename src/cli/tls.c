/* tls.c - `hotcell tls`: an authority for one domain, and certificates of it that are renewed. */
#include "cli/tls.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/folder.h"
#include "cli/say.h"
#include "cli/tls_files.h"
#include "cli/tls_install.h"
#include "cli/tls_lines.h"
#include "tls/authority.h"

enum {
	CERTIFICATE_DAYS = 90,
	AUTHORITY_WARN_S = 365 * 24 * 3600,
	RENEW_PART = 3, /* when less than a third of its life is left */
};

struct init {
	struct tls_files *files;
	struct authority *authority;
	struct tls_made *made;
};

static const char ca_pem[] = TLS_AUTHORITY "/ca.pem", ca_key[] = TLS_AUTHORITY "/ca.key";

/* --- the authority -------------------------------------------------------------------------- */

static int load_authority(const struct tls_files *f, struct authority **ret, struct err *err)
{
	AUTO(buf_done) struct buf cert = BUF_MAX(AUTHORITY_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_SECRET(AUTHORITY_TEXT_MAX);

	if (tls_files_read(f, ca_pem, &cert, err) < 0)
		return -1;
	if (tls_files_read(f, ca_key, &key, err) < 0) {
		err->code = err->code == ERR_NOT_FOUND ? ERR_NO_FILES : err->code;
		return -1;
	}
	if (authority_load(buf_view(&cert), buf_view(&key), ret, err) < 0)
		return err_wrap(err, "%s/" TLS_AUTHORITY, f->path);
	return 0;
}

static int make_authority(struct init *i, struct err *err)
{
	AUTO(buf_done) struct buf cert = BUF_MAX(AUTHORITY_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_SECRET(AUTHORITY_TEXT_MAX);
	struct tls_pair pair = { "ca.pem", "ca.key", { 0 }, { 0 }, geteuid() };

	if (authority_new_for(i->made->domain, &i->authority, err) < 0 ||
	    authority_cert_text(i->authority, &cert, err) < 0 ||
	    authority_key_text(i->authority, &key, err) < 0)
		return -1;
	pair.chain = buf_view(&cert);
	pair.key = buf_view(&key);
	i->made->made_authority = true;
	authority_domain(i->authority, i->made->authority_domain);
	i->made->fix = "run it as root, on a disk that has room";
	return tls_files_put(i->files, TLS_AUTHORITY, &pair, err);
}

/* The same, or below it. */
static bool is_within(const char *name, const char *domain)
{
	char below[DOMAIN_SIZE + 2];

	snprintf(below, sizeof(below), "*.%s", domain);
	return strcmp(name, domain) == 0 || domain_match(below, name);
}

static int open_authority(struct init *i, struct err *err)
{
	if (load_authority(i->files, &i->authority, err) < 0) {
		i->made->fix =
			"if nobody trusts this authority any more, or its key is lost, remove the "
			"folder authority in tls_dir and run it again; clients then have to trust "
			"the new one";
		return err->code == ERR_NOT_FOUND ? make_authority(i, err) : -1;
	}
	if (!authority_domain(i->authority, i->made->authority_domain) ||
	    !is_within(i->made->domain, i->made->authority_domain)) {
		i->made->fix =
			"use that domain, another --tls-dir, or remove the folder authority in "
			"tls_dir; clients then have to trust the new one";
		return err_set(err, ERR_EXISTS, 0,
			       "the authority in %.100s is for %.100s alone; it cannot sign for "
			       "%.100s",
			       i->files->path, i->made->authority_domain, i->made->domain);
	}
	return 0;
}

/* --- the certificate ------------------------------------------------------------------------ */

static bool is_due(const struct pair_facts *facts)
{
	int64_t left = facts->ends_s - (int64_t)(clock_wall_ns() / NSEC_PER_SEC);

	return left * RENEW_PART < facts->ends_s - facts->begins_s;
}

/* Do the two files fit each other, and serve for a while? */
static bool is_good(const struct tls_files *f, const char *name)
{
	AUTO(buf_done) struct buf chain = BUF_MAX(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_SECRET(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf again = BUF_SECRET(2 * PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf key_again = BUF_SECRET(2 * PAIR_TEXT_MAX);
	struct pair_facts facts;
	struct err err = { 0 };

	return tls_read_pair(f, name, &chain, &key, &err) == 0 &&
	       pair_check(buf_view(&chain), buf_view(&key), &again, &key_again, &err) == 0 &&
	       pair_read(buf_view(&chain), &facts, &err) == 0 && !is_due(&facts);
}

static int issue(const struct tls_files *f, const struct authority *a, const char *domain,
		 struct pair_facts *ret, struct err *err)
{
	AUTO(buf_done) struct buf chain = BUF_MAX(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_SECRET(PAIR_TEXT_MAX);

	if (authority_issue(a, domain, CERTIFICATE_DAYS, &chain, &key, err) < 0 ||
	    pair_read(buf_view(&chain), ret, err) < 0)
		return -1;
	return tls_put_pair(f, domain, buf_view(&chain), buf_view(&key), err);
}

/* Is what is there the authority's, and so ours to replace? ERR_NOT_FOUND: nothing is. */
static int look_at(const struct tls_files *f, const struct authority *a, const char *name,
		   struct pair_facts *ret, bool *ret_ours, struct err *err)
{
	AUTO(buf_done) struct buf chain = BUF_MAX(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf ca = BUF_MAX(AUTHORITY_TEXT_MAX);

	if (tls_read_pair(f, name, &chain, NULL, err) < 0 ||
	    pair_read(buf_view(&chain), ret, err) < 0 || authority_cert_text(a, &ca, err) < 0)
		return -1;
	*ret_ours = pair_signed_by(buf_view(&chain), buf_view(&ca));
	return 0;
}

static int open_certificate(struct init *i, struct err *err)
{
	bool ours = false;

	i->made->fix = "move that folder away and run it again, or leave it: it is served as it is";
	if (look_at(i->files, i->authority, i->made->domain, &i->made->facts, &ours, err) < 0) {
		if (err->code != ERR_NOT_FOUND)
			return -1;
	} else if (!ours) {
		return err_set(err, ERR_EXISTS, 0,
			       "%.100s/%.100s has a certificate of %.64s, which was not made here",
			       i->files->path, i->made->domain, i->made->facts.issuer);
	} else if (is_good(i->files, i->made->domain)) {
		return 0;
	}
	i->made->fix = "run it as root, on a disk that has room";
	i->made->made_certificate = true;
	return issue(i->files, i->authority, i->made->domain, &i->made->facts, err);
}

/* --- init ----------------------------------------------------------------------------------- */

int tls_read_domain(const char *text, char ret[static DOMAIN_SIZE], uint16_t *ret_port,
		    struct err *err)
{
	struct bytes rest = bytes_str(text), name = rest;
	char plain[DOMAIN_SIZE * 2];

	*ret_port = 0;
	if (bytes_cut(&rest, ':', &name) && !domain_and_port(bytes_str(text), ret, ret_port))
		return err_set(err, ERR_INVALID, 0, "`%.100s` is not NAME or NAME:PORT", text);
	if (!bytes_to_str(name, plain, sizeof(plain)))
		return err_set(err, ERR_INVALID, 0, "the name is too long");
	return authority_domain_normal(plain, ret, err);
}

int tls_make(struct tls_files *f, const char *domain, struct tls_made *ret, struct err *err)
{
	struct init i = { .files = f, .made = ret };
	int rc = -1;

	*ret = (struct tls_made){
		.fix = "name a domain of two labels or more: hotcell tls init " TLS_DEFAULT_DOMAIN
		       ", with a port behind it if clients use another than 443"
	};
	if (tls_read_domain(domain, ret->domain, &ret->port, err) == 0 &&
	    open_authority(&i, err) == 0 && open_certificate(&i, err) == 0)
		rc = 0;
	authority_free(i.authority);
	return rc;
}

static int say_json(const struct tls_files *f, const struct tls_made *made)
{
	AUTO(json_decrefp) json_t *o = tls_pair_json(f, made->domain, &made->facts, true);
	char e2b_domain[TLS_E2B_DOMAIN_SIZE], ca[512];
	const struct tls_site site = { made->domain, made->port, f->path };

	tls_e2b_domain(&site, e2b_domain);
	snprintf(ca, sizeof(ca), "%s/%s", f->path, ca_pem);
	json_object_set_new(o, "authority", json_text(bytes_str(ca)));
	json_object_set_new(o, "e2bDomain", json_text(bytes_str(e2b_domain)));
	json_object_set_new(o, "madeAuthority", json_boolean(made->made_authority));
	json_object_set_new(o, "madeCertificate", json_boolean(made->made_certificate));
	return cli_print_json(o);
}

static int say_init(const struct tls_files *f, const struct tls_made *made)
{
	const struct tls_site site = { made->domain, made->port, f->path };
	char ends[16];

	tls_day(made->facts.ends_s, ends);
	printf("%s authority, for %s and what is below it: %s/%s\n",
	       made->made_authority ? "a new" : "there was an", made->authority_domain, f->path,
	       ca_pem);
	printf("%s certificate, for %s and *.%s, until %s: %s/%s\n\n",
	       made->made_certificate ? "a new" : "there was a", made->domain, made->domain, ends,
	       f->path, made->domain);
	tls_lines_print(stdout, &site);
	return CLI_FINE;
}

static int init_run(const struct cli *c, struct tls_files *f)
{
	struct tls_made made;
	struct err err = { 0 };

	if (tls_make(f, c->n_words > 1 ? c->words[1] : TLS_DEFAULT_DOMAIN, &made, &err) < 0) {
		err_wrap(&err, "tls init");
		return cli_fail_fix(c, &err, made.fix);
	}
	return c->json ? say_json(f, &made) : say_init(f, &made);
}

/* --- renew ---------------------------------------------------------------------------------- */

struct renewal {
	const struct tls_files *files;
	const struct authority *authority;
	json_t *renewed; /* names */
};

/* What the authority did not sign is the operator's or ACME's, and so is who renews it. */
static int renew_one(int dir, const char *name, void *context, struct err *err)
{
	struct renewal *r = context;
	struct pair_facts facts;
	char domain[DOMAIN_SIZE];
	struct err why = { 0 };
	bool ours = false;

	(void)dir;
	if (!domain_normal(bytes_str(name), domain) || strcmp(name, domain) != 0 ||
	    strcmp(name, TLS_AUTHORITY) == 0)
		return 0;
	if (look_at(r->files, r->authority, name, &facts, &ours, &why) < 0) {
		fprintf(stderr, "hotcell: tls renew: passed over: %s\n", why.msg);
		return 0;
	}
	if (!ours || is_good(r->files, name))
		return 0;
	if (issue(r->files, r->authority, name, &facts, err) < 0)
		return err_wrap(err, "%.100s", name);
	json_array_append_new(r->renewed, json_text(bytes_str(name)));
	return 0;
}

static int say_renewed(const struct cli *c, const json_t *renewed)
{
	AUTO(json_decrefp) json_t *all = NULL;
	const json_t *name;
	size_t i;

	if (c->json) {
		all = json_pack("{s:O}", "renewed", renewed);
		return all ? cli_print_json(all) : CLI_FAILED;
	}
	json_array_foreach(renewed, i, name) printf("renewed %s\n", json_string_value(name));
	if (json_array_size(renewed) == 0)
		printf("nothing is due\n");
	return CLI_FINE;
}

/* Nobody but people can renew that: clients have to trust another. */
static void warn_of_its_end(const struct tls_files *f, const struct authority *a)
{
	AUTO(buf_done) struct buf ca = BUF_MAX(AUTHORITY_TEXT_MAX);
	struct pair_facts facts;
	struct err err = { 0 };
	char ends[16];

	if (authority_cert_text(a, &ca, &err) < 0 || pair_read(buf_view(&ca), &facts, &err) < 0 ||
	    facts.ends_s > (int64_t)(clock_wall_ns() / NSEC_PER_SEC) + AUTHORITY_WARN_S)
		return;
	tls_day(facts.ends_s, ends);
	fprintf(stderr,
		"hotcell: tls renew: the authority in %s ends on %s\n"
		"  fix: docs/tls.md, When the authority ends\n",
		f->path, ends);
}

static int renew_run(const struct cli *c, struct tls_files *f)
{
	AUTO(json_decrefp) json_t *renewed = json_array();
	struct renewal r = { .files = f, .renewed = renewed };
	struct authority *a = NULL;
	struct err err = { 0 };
	int status;

	if (load_authority(f, &a, &err) < 0 && err.code == ERR_NOT_FOUND)
		return say_renewed(c, renewed); /* no `tls init`: all are somebody else's */
	r.authority = a;
	if (a)
		warn_of_its_end(f, a);
	if (!a || folder_each(f->dir, renew_one, &r, &err) < 0) {
		err_wrap(&err, "tls renew");
		status = cli_fail_fix(c, &err,
				      "run it as root, on a disk that has room; if the authority "
				      "is over or lost: docs/tls.md, When the authority ends");
	} else {
		status = say_renewed(c, renewed);
	}
	authority_free(a);
	return status;
}

/* -------------------------------------------------------------------------------------------- */

int tls_run(struct cli *c)
{
	static const struct {
		const char *word;
		int min, max;
		bool writes;
		int (*run)(const struct cli *c, struct tls_files *f);
	} verbs[] = {
		{ "init", 0, 1, true, init_run },
		{ "renew", 0, 0, true, renew_run },
		{ "install", 3, 3, true, tls_install_run },
		{ "status", 0, 0, false, tls_status_run },
	};
	struct tls_files files;
	struct err err = { 0 };
	int status;

	umask(022); /* certificates are for everybody, keys have a mode of their own */
	for (size_t i = 0; i < COUNT(verbs); i++) {
		if (!cli_says(c, verbs[i].word, verbs[i].min, verbs[i].max))
			continue;
		if (tls_files_open(c, verbs[i].writes, &files, &err) < 0)
			status =
				cli_fail_fix(c, &err, "run it as root, with the gateway's tls_dir");
		else
			status = verbs[i].run(c, &files);
		tls_files_close(&files);
		return status;
	}
	return cli_usage(c);
}
