/* tls_install.c - see tls_install.h. */
#include "cli/tls_install.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/read_all.h"
#include "cli/say.h"
#include "cli/table.h"

enum { DAY_S = 24 * 3600, FILE_SIZE = DOMAIN_SIZE + 16 };

static const char chain_file[] = "fullchain.pem", key_file[] = "privkey.pem";

void tls_day(int64_t seconds, char ret[static 16])
{
	time_t t = (time_t)seconds;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || strftime(ret, 16, "%Y-%m-%d", &tm) == 0)
		snprintf(ret, 16, "?");
}

int tls_read_pair(const struct tls_files *f, const char *name, struct buf *ret_chain,
		  struct buf *ret_key, struct err *err)
{
	char path[FILE_SIZE];

	snprintf(path, sizeof(path), "%.*s/%s", DOMAIN_MAX, name, chain_file);
	if (tls_files_read(f, path, ret_chain, err) < 0)
		return -1;
	snprintf(path, sizeof(path), "%.*s/%s", DOMAIN_MAX, name, key_file);
	return ret_key ? tls_files_read(f, path, ret_key, err) : 0;
}

int tls_put_pair(const struct tls_files *f, const char *name, struct bytes chain, struct bytes key,
		 struct err *err)
{
	const struct tls_pair pair = { chain_file, key_file, chain, key, f->owner };

	return tls_files_put(f, name, &pair, err);
}

/* --- listed --------------------------------------------------------------------------------- */

/* Whole days; less than none when it is over, if only by a second. */
static long long days_left(int64_t ends_s)
{
	int64_t left = ends_s - (int64_t)(clock_wall_ns() / NSEC_PER_SEC);

	return left < 0 ? left / DAY_S - 1 : left / DAY_S;
}

static json_t *names_json(const struct pair_facts *facts)
{
	json_t *names = json_array();

	for (size_t i = 0; i < facts->n_names; i++)
		json_array_append_new(names, json_text(bytes_str(facts->names[i])));
	return names;
}

json_t *tls_pair_json(const struct tls_files *f, const char *name, const struct pair_facts *facts,
		      bool ours)
{
	char ends[16], folder[512], sum[2 * PAIR_SUM_LEN + 1];

	tls_day(facts->ends_s, ends);
	snprintf(folder, sizeof(folder), "%s/%s", f->path, name);
	for (size_t i = 0; i < PAIR_SUM_LEN; i++)
		snprintf(sum + 2 * i, 3, "%02x", facts->sum[i]);
	return json_pack("{s:s,s:s,s:o,s:o,s:s,s:I,s:b,s:s}", "name", name, "folder", folder,
			 "names", names_json(facts), "issuer", json_text(bytes_str(facts->issuer)),
			 "ends", ends, "days", (json_int_t)days_left(facts->ends_s), "renewedHere",
			 ours, "sha256", sum);
}

struct listing {
	const struct tls_files *files;
	struct bytes ca; /* of `tls init`; empty: there is none */
	json_t *rows;
	bool failed; /* one of them cannot be read, or is over */
};

/* "a.test *.a.test" for a column. */
static json_t *joined(const json_t *names)
{
	char text[512] = "";
	const json_t *name;
	size_t i, n = 0;

	json_array_foreach(names, i, name) if (n < sizeof(text)) n += (size_t)snprintf(
		text + n, sizeof(text) - n, "%s%s", i ? " " : "", json_string_value(name));
	return json_text(bytes_str(text));
}

static int list_one(int dir, const char *name, void *context, struct err *err)
{
	AUTO(buf_done) struct buf chain = BUF_MAX(PAIR_TEXT_MAX);
	struct listing *l = context;
	struct pair_facts facts;
	struct err why = { 0 };
	json_t *row;

	(void)dir;
	if (name[0] == '.' || strlen(name) > DOMAIN_MAX || strcmp(name, TLS_AUTHORITY) == 0)
		return 0;
	if (tls_read_pair(l->files, name, &chain, NULL, &why) < 0 ||
	    pair_read(buf_view(&chain), &facts, &why) < 0) {
		l->failed = true;
		row = json_pack("{s:o,s:o}", "name", json_text(bytes_str(name)), "error",
				json_text(bytes_str(why.msg)));
	} else {
		bool ours = pair_signed_by(buf_view(&chain), l->ca);

		l->failed |= days_left(facts.ends_s) < 0;
		row = tls_pair_json(l->files, name, &facts, ours);
	}
	if (!row || json_array_append_new(l->rows, row) < 0)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "list certificates");
	return 0;
}

static int show_rows(const struct cli *c, json_t *rows)
{
	static const struct column columns[] = {
		{ "NAME", "name" },   { "NAMES", "shown" }, { "ISSUER", "issuer" },
		{ "ENDS", "ends" },   { "DAYS", "days" },   { "RENEWED HERE", "renewedHere" },
		{ "ERROR", "error" },
	};
	json_t *row;
	size_t i;

	if (c->json)
		return cli_print_json(rows);
	json_array_foreach(rows, i, row)
		json_object_set_new(row, "shown", joined(json_object_get(row, "names")));
	return cli_show_rows(c, rows, columns, COUNT(columns));
}

int tls_status_run(const struct cli *c, struct tls_files *f)
{
	AUTO(buf_done) struct buf ca = BUF_MAX(PAIR_TEXT_MAX);
	AUTO(json_decrefp) json_t *rows = json_array();
	struct listing l = { .files = f, .rows = rows };
	struct err err = { 0 };
	int status;

	if (tls_files_read(f, TLS_AUTHORITY "/ca.pem", &ca, &err) < 0 && err.code != ERR_NOT_FOUND)
		return cli_fail(c, &err);
	l.ca = buf_view(&ca);
	if (folder_each(f->dir, list_one, &l, &err) < 0)
		return cli_fail(c, &err);
	status = show_rows(c, rows);
	return status == CLI_FINE && l.failed ? CLI_FAILED : status;
}

/* --- put there ------------------------------------------------------------------------------ */

static int read_given(const char *path, struct buf *ret, struct err *err)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_DENIED, errno,
			       "open %.200s", path);
	return read_all(fd, ret, err) < 0 ? err_wrap(err, "%.200s", path) : 0;
}

/* A folder's name: that of a host. A wildcard is kept below what it is a wildcard of. */
static int folder_of(const char *text, char ret[static DOMAIN_SIZE], struct err *err)
{
	text += strncmp(text, "*.", 2) == 0 ? 2 : 0;
	if (!domain_normal(bytes_str(text), ret) || strcmp(ret, TLS_AUTHORITY) == 0)
		return err_set(err, ERR_INVALID, 0, "`%.100s` is no name of a host", text);
	return 0;
}

static bool has_name(const struct pair_facts *facts, const char *name)
{
	for (size_t i = 0; i < facts->n_names; i++)
		if (strcmp(facts->names[i], name) == 0)
			return true;
	return false;
}

/* What the SDKs ask for, and this certificate is not for. */
static void warn_names(const char *name, const struct pair_facts *facts)
{
	char below[DOMAIN_SIZE + 2];

	snprintf(below, sizeof(below), "*.%s", name);
	if (!has_name(facts, below))
		fprintf(stderr,
			"hotcell: the certificate is not for %s: with domain = %s clients refuse "
			"it for api.%s and for PORT-ID.%s\n",
			below, name, name, name);
}

static int say_installed(const struct cli *c, const struct tls_files *f, const char *name,
			 const struct pair_facts *facts, bool is_new)
{
	AUTO(json_decrefp) json_t *row = tls_pair_json(f, name, facts, false);
	char ends[16];

	tls_day(facts->ends_s, ends);
	warn_names(name, facts);
	if (!c->json) {
		printf("%s %s/%s: %s ..., of %s, until %s\n",
		       is_new ? "installed" : "is there already:", f->path, name, facts->names[0],
		       facts->issuer, ends);
		return CLI_FINE;
	}
	json_object_set_new(row, "installed", json_boolean(is_new));
	return cli_print_json(row);
}

static bool is_there(const struct tls_files *f, const char *name, struct bytes chain,
		     struct bytes key)
{
	AUTO(buf_done) struct buf old_chain = BUF_MAX(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf old_key = BUF_SECRET(PAIR_TEXT_MAX);
	struct err err = { 0 };

	return tls_read_pair(f, name, &old_chain, &old_key, &err) == 0 &&
	       bytes_eq(buf_view(&old_chain), chain) && bytes_eq(buf_view(&old_key), key);
}

int tls_install_run(const struct cli *c, struct tls_files *f)
{
	AUTO(buf_done) struct buf given_chain = BUF_MAX(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf given_key = BUF_SECRET(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf chain = BUF_MAX(2 * PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_SECRET(2 * PAIR_TEXT_MAX);
	struct pair_facts facts;
	char name[DOMAIN_SIZE];
	struct err err = { 0 };
	bool is_new;

	if (folder_of(c->words[1], name, &err) < 0 ||
	    read_given(c->words[2], &given_chain, &err) < 0 ||
	    read_given(c->words[3], &given_key, &err) < 0 ||
	    pair_check(buf_view(&given_chain), buf_view(&given_key), &chain, &key, &err) < 0 ||
	    pair_read(buf_view(&chain), &facts, &err) < 0) {
		err_wrap(&err, "tls install");
		return cli_fail_fix(c, &err,
				    "FULLCHAIN is the server's certificate and those above it, "
				    "PRIVKEY its key without a password, both as PEM; nothing was "
				    "changed");
	}
	is_new = !is_there(f, name, buf_view(&chain), buf_view(&key));
	if (is_new && tls_put_pair(f, name, buf_view(&chain), buf_view(&key), &err) < 0) {
		err_wrap(&err, "tls install");
		return cli_fail_fix(c, &err, "run it as root, on a disk that has room");
	}
	return say_installed(c, f, name, &facts, is_new);
}
