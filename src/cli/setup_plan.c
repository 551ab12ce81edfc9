/* setup_plan.c - what this host is, what is wanted of it, and the settings that say so. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "cli/ask.h"
#include "cli/doctor.h"
#include "cli/places.h"
#include "cli/setup.h"
#include "cli/table.h"
#include "cli/tls.h"

enum { HTTPS_PORT = 443, OTHER_PORT = 3443, FIRST_FREE_PORT = 1024, ANSWER_SIZE = 256, TRIES = 3 };

/* --- the host ------------------------------------------------------------------------------- */

struct host_look {
	struct doctor_user user;
	struct setup *setup;
	size_t n, warnings;
	struct finding failed;
	char failed_check[32]; /* "": none */
};

/* A host whose resolvers are silent runs sandboxes; they reach nothing. */
static bool stops(const char *check)
{
	return strcmp(check, "dns") != 0;
}

static void on_seen(struct doctor_user *u, const char *check, const struct finding *f)
{
	struct host_look *l = CONTAINER_OF(u, struct host_look, user);

	if (strcmp(check, "server") == 0)
		return; /* it comes later */
	l->n++;
	if (strcmp(check, "accelerator") == 0)
		l->setup->no_kvm = f->verdict != VERDICT_OK;
	if (f->verdict == VERDICT_FAIL && stops(check)) {
		if (!l->failed_check[0]) {
			l->failed = *f;
			snprintf(l->failed_check, sizeof(l->failed_check), "%s", check);
		}
	} else if (f->verdict != VERDICT_OK) {
		l->warnings++;
		setup_warn(l->setup, check, f->what, f->fix);
	}
}

int setup_host(struct setup *s, struct setup_said *ret, struct err *err)
{
	struct host_look l = { .user = { on_seen }, .setup = s };

	doctor_before(&s->cli, &l.user);
	if (l.failed_check[0]) {
		setup_fix(s, "%s", l.failed.fix);
		return err_set(err, ERR_INVALID, 0, "%s: %.220s", l.failed_check, l.failed.what);
	}
	setup_said(ret, SETUP_KEPT, "%zu checks, %zu warnings", l.n, l.warnings);
	return 0;
}

/* --- questions ------------------------------------------------------------------------------ */

/* A line of what is typed; empty: what was offered. */
static int ask(const char *question, const char *offered, char ret[static ANSWER_SIZE],
	       struct err *err)
{
	fprintf(stderr, "%s [%s]: ", question, offered);
	(void)fflush(stderr);
	if (!fgets(ret, ANSWER_SIZE, stdin))
		return err_set(err, ERR_INVALID, 0, "no answer");
	ret[strcspn(ret, "\r\n")] = '\0';
	if (!ret[0])
		snprintf(ret, ANSWER_SIZE, "%s", offered);
	return 0;
}

/* Asks until `take` likes it; what it says is shown. */
static int ask_until(struct setup *s, const char *question, const char *offered,
		     int (*take)(struct setup *s, const char *answer, struct err *err),
		     struct err *err)
{
	char answer[ANSWER_SIZE];

	for (int i = 0; i < TRIES; i++) {
		if (ask(question, offered, answer, err) < 0)
			return -1;
		if (take(s, answer, err) == 0)
			return 0;
		fprintf(stderr, "%s\n", err->msg);
	}
	return -1;
}

/* --- the domain ----------------------------------------------------------------------------- */

static int take_domain(struct setup *s, const char *text, struct err *err)
{
	setup_fix(s, "name a domain of two labels or more, with a port behind it if clients use "
		     "another than 443: hotcell setup --domain " TLS_DEFAULT_DOMAIN);
	if (tls_read_domain(text, s->name, &s->port, err) < 0)
		return -1;
	if (s->port == HTTPS_PORT)
		s->port = 0;
	if (s->port && s->port < FIRST_FREE_PORT)
		return err_set(err, ERR_INVALID, 0,
			       "port %u: the gateway may open 443, which systemd does for it, and "
			       "those above 1023",
			       s->port);
	tls_e2b_domain(&(struct tls_site){ s->name, s->port, "" }, s->domain);
	return 0;
}

static bool is_free(uint16_t port)
{
	AUTO(auto_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	return bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 || errno != EADDRINUSE;
}

/* Port 443, unless it is somebody else's. */
static void offer_domain(struct setup *s, char ret[static ANSWER_SIZE])
{
	struct unit socket = { 0 };
	struct err err = { 0 };
	bool ours = setup_unit(s, "hotcell-https.socket", &socket, &err) == 0 &&
		    strcmp(socket.active, "active") == 0;

	if (ours || is_free(HTTPS_PORT))
		snprintf(ret, ANSWER_SIZE, TLS_DEFAULT_DOMAIN);
	else
		snprintf(ret, ANSWER_SIZE, TLS_DEFAULT_DOMAIN ":%d", OTHER_PORT);
}

static int plan_domain(struct setup *s, const struct conf *gateway, struct err *err)
{
	char set[CONF_VALUE_MAX], offered[ANSWER_SIZE];

	conf_value(gateway, "domain", set);
	if (s->cli.domain)
		return take_domain(s, s->cli.domain, err);
	s->domain_kept = set[0] != '\0';
	if (set[0])
		return take_domain(s, set, err);
	offer_domain(s, offered);
	if (!s->asks)
		return take_domain(s, offered, err);
	return ask_until(s, "1. The domain that clients will use (this one is for one machine)",
			 offered, take_domain, err);
}

/* --- the team ------------------------------------------------------------------------------- */

/* As the gateway wants it. */
static int take_team(struct setup *s, const char *name, struct err *err)
{
	static const char first[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t n = strlen(name);

	setup_fix(s, "hotcell setup --team NAME");
	if (n == 0 || n >= SETUP_NAME_SIZE || !strchr(first, name[0]) ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_. ") != n)
		return err_set(
			err, ERR_INVALID, 0,
			"`%.64s` is no name of a team: letters, digits, -, _, . and spaces, at "
			"most 63, a letter or digit first",
			name);
	snprintf(s->team, sizeof(s->team), "%s", name);
	return 0;
}

/* Is it known that there is one? */
static bool has_team(const struct setup *s)
{
	const struct cli_request rq = { .path = "/admin/teams", .ms = SETUP_ASK_MS };
	AUTO(json_decrefp) json_t *teams = NULL;
	struct err err;

	return cli_ask(&s->cli, &rq, &teams, &err) == 0 && json_array_size(teams) > 0;
}

static int plan_team(struct setup *s, struct err *err)
{
	if (s->cli.team)
		return take_team(s, s->cli.team, err);
	if (!s->asks || has_team(s))
		return 0;
	return ask_until(s, "2. The name of the first team, which owns sandboxes and keys",
			 SETUP_TEAM, take_team, err);
}

/* --- emulation ------------------------------------------------------------------------------ */

static int take_emulation(struct setup *s, const char *answer, struct err *err)
{
	static const char *const yes[] = { "yes", "y", "Y", "Yes" }, *const no[] = { "no", "n", "N",
										     "No" };

	for (size_t i = 0; i < COUNT(yes); i++) {
		s->emulation = strcmp(answer, yes[i]) == 0;
		if (s->emulation || strcmp(answer, no[i]) == 0)
			return 0;
	}
	return err_set(err, ERR_INVALID, 0, "yes or no?");
}

static int plan_emulation(struct setup *s, struct err *err)
{
	struct conf warden;

	conf_read_daemon(&warden, s->cli.conf_dir, "warden");
	/* a host that has KVM is not made weaker */
	s->emulation = (s->cli.allow_emulation && s->no_kvm) ||
		       conf_says(&warden, "allow_emulation", "yes");
	if (!s->no_kvm || s->emulation)
		return 0;
	if (s->asks &&
	    ask_until(s,
		      "3. There is no KVM. Emulate instead? Slow, and not a security boundary (yes "
		      "or no)",
		      "no", take_emulation, err) < 0)
		return -1;
	setup_fix(s, "let this host have KVM (see above); or, for a trial: hotcell setup "
		     "--allow-emulation");
	return s->emulation ? 0
			    : err_set(err, ERR_INVALID, 0,
				      "no KVM, and emulation, which is slow and not a security "
				      "boundary, was not allowed");
}

/* -------------------------------------------------------------------------------------------- */

static int plan_files(struct setup *s, const struct conf *gateway, struct err *err)
{
	char proxies[CONF_VALUE_MAX];
	struct conf signer;

	conf_read_daemon(&signer, s->cli.conf_dir, "signer");
	conf_text(gateway, "tls_dir", CLI_TLS_DIR, s->tls_dir);
	conf_text(&signer, "user", "hotcell-signer", s->owner);
	conf_value(gateway, "proxies", proxies);
	s->proxied = proxies[0] != '\0';
	s->cli.tls_dir = s->tls_dir;
	s->cli.owner = s->owner;
	setup_fix(s, "name another file: --key-file FILE");
	if (s->cli.key_file && (s->cli.key_file[0] != '/' || strpbrk(s->cli.key_file, "'\n")))
		return err_set(err, ERR_INVALID, 0,
			       "--key-file wants a path that begins with /, without quotes");
	return 0;
}

int setup_plan(struct setup *s, struct err *err)
{
	struct conf gateway;

	conf_read_daemon(&gateway, s->cli.conf_dir, "gateway");
	if (plan_files(s, &gateway, err) < 0 || plan_domain(s, &gateway, err) < 0 ||
	    plan_team(s, err) < 0)
		return -1;
	return plan_emulation(s, err);
}

/* --- settings ------------------------------------------------------------------------------- */

static bool has_port(const struct conf *gateway, uint16_t port)
{
	char set[CONF_VALUE_MAX], end[16];
	struct bytes rest, one;

	snprintf(end, sizeof(end), ":%u", port);
	conf_value(gateway, "listen_tls", set);
	rest = bytes_str(set);
	while (bytes_next(&rest, ',', &one)) {
		one = bytes_trim(one);
		if (one.len > strlen(end) &&
		    bytes_eq(bytes_tail(one, one.len - strlen(end)), bytes_str(end)))
			return true;
	}
	return false;
}

/* `value` of listen_tls for a port that systemd does not open; "": as it is. */
static void listen_value(const struct setup *s, const struct conf *gateway,
			 char ret[static CONF_VALUE_MAX])
{
	ret[0] = '\0';
	if (!s->port || s->proxied || has_port(gateway, s->port))
		return;
	if (tls_is_local(s->name))
		snprintf(ret, CONF_VALUE_MAX, "127.0.0.1:%u,[::1]:%u", s->port, s->port);
	else
		snprintf(ret, CONF_VALUE_MAX, "0.0.0.0:%u", s->port);
}

struct setting {
	const char *daemon, *name, *value;
};

/* Changes it unless it is so; says it. */
static int set_one(struct setup *s, const struct setting *set, struct setup_said *ret,
		   struct err *err)
{
	struct conf conf;
	size_t n = strlen(ret->what);

	conf_read_daemon(&conf, s->cli.conf_dir, set->daemon);
	if (!set->value[0] || conf_says(&conf, set->name, set->value))
		return 0;
	snprintf(ret->what + n, sizeof(ret->what) - n, "%s%s.conf: %s = %s", n ? "; " : "",
		 set->daemon, set->name, set->value);
	ret->state = s->cli.dry_run ? SETUP_WOULD : SETUP_DONE;
	setup_fix(s,
		  "a file that is a link, or elsewhere, is not changed: set `%s = %s` in it "
		  "yourself, then run hotcell setup again",
		  set->name, set->value);
	return s->cli.dry_run ? 0
			      : conf_put(s->cli.conf_dir, set->daemon, set->name, set->value, err);
}

int setup_settings(struct setup *s, struct setup_said *ret, struct err *err)
{
	char listen[CONF_VALUE_MAX];
	struct conf gateway;

	conf_read_daemon(&gateway, s->cli.conf_dir, "gateway");
	listen_value(s, &gateway, listen);
	const struct setting all[] = {
		{ "warden", "allow_emulation", s->emulation ? "yes" : "" },
		{ "gateway", "listen_tls", listen },
		{ "gateway", "domain",
		  s->domain_kept ? "" : s->domain }, /* the last: what it stands for is there */
	};

	for (size_t i = 0; i < COUNT(all); i++) {
		if (set_one(s, &all[i], ret, err) < 0)
			return -1;
		setup_at(s, all[i].name);
	}
	if (!ret->what[0])
		setup_said(ret, SETUP_KEPT, "as they are: domain = %s%s", s->domain,
			   s->emulation ? ", allow_emulation = yes" : "");
	return 0;
}
