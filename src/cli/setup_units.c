/* setup_units.c - the daemons are enabled, started and waited for, by systemd. */
#include <poll.h>

#include "base/clock.h"
#include "cli/ask.h"
#include "cli/program.h"
#include "cli/setup.h"
#include "cli/table.h"

enum {
	HTTPS_PORT = 443,
	SYSTEMCTL_MS = 60 * 1000,
	REPLACE_MS = 120 * 1000,
	DAEMONS_MS = 12 * 60 * 1000, /* the disk of `base` comes before node: ten minutes */
	NEW_GATEWAY_MS = 60 * 1000,
	IDLE_MS = 2 * 60 * 1000, /* all have started, and one does not answer */
	DEATHS_MAX = 5,          /* a daemon that died so often will not do */
	FAILED_LOOKS = 4,        /* it may be about to be tried again */
};

/* In the order in which they start. */
static const struct {
	const char *unit, *name;
} daemons[] = {
	{ "hotcell-base.service", "the disk of base is made" },
	{ "hotcell-warden.service", "warden starts" },
	{ "hotcell-egress.service", "egress starts" },
	{ "hotcell-injector.service", "injector starts" },
	{ "hotcell-images.service", "images starts" },
	{ "hotcell-signer.service", "signer starts" },
	{ "hotcell-node.service", "node starts" },
	{ "hotcell-gateway@1.service", "the gateway starts" },
};

/* --- systemd -------------------------------------------------------------------------------- */

int setup_systemctl(struct setup *s, const char *const *words, struct err *err)
{
	struct program p;

	setup_fix(s, "see what systemd says of it: systemctl status " SETUP_TARGET);
	if (units_systemctl(words, SYSTEMCTL_MS, &p, err) < 0)
		return -1;
	if (p.status == 0)
		return 0;
	table_clean(p.said);
	return err_set(err, ERR_INTERNAL, 0, "systemctl %s: %.160s", words[0],
		       p.said[0] ? p.said : "it failed");
}

int setup_unit(struct setup *s, const char *name, struct unit *ret, struct err *err)
{
	setup_fix(s, "Hotcell is set up with systemd; without it: docs/operations.md, Install");
	return unit_look(name, SYSTEMCTL_MS, ret, err);
}

void setup_journal(struct setup *s, const char *unit)
{
	const char *const argv[] = { "journalctl", "--no-pager", "--output=cat",
				     "--lines=8",  "--unit",     unit,
				     NULL };
	struct bytes rest, line;
	struct program p;
	struct err err;

	if (program_run(argv, SYSTEMCTL_MS, &p, &err) < 0)
		return;
	rest = bytes_str(p.said);
	setup_clear(s);
	while (bytes_next(&rest, '\n', &line)) {
		char text[SETUP_WHAT_SIZE];

		if (!bytes_to_str(bytes_head(line, sizeof(text) - 1), text, sizeof(text)))
			continue;
		table_clean(text);
		json_array_append_new(s->journal, json_text(bytes_str(text)));
		if (!s->cli.json)
			fprintf(stderr, "         %s: %s\n", unit, text);
	}
}

/* --- do they answer? ------------------------------------------------------------------------ */

struct server {
	json_t *status;      /* NULL: the gateway does not */
	const char *missing; /* who is waited for; NULL: nobody */
};

static bool is_false(const json_t *o, const char *name)
{
	return !json_is_true(json_object_get(o, name));
}

static void ask_server(const struct setup *s, struct server *ret)
{
	const struct cli_request rq = { .path = "/admin/status", .ms = SETUP_ASK_MS };
	const json_t *node, *tls;
	struct err err;

	*ret = (struct server){ .missing = "the gateway" };
	if (cli_ask(&s->cli, &rq, &ret->status, &err) < 0)
		return;
	node = json_object_get(ret->status, "node");
	tls = json_object_get(ret->status, "tls");
	ret->missing = !json_is_object(node)                            ? "node"
		       : is_false(node, "warden")                       ? "warden"
		       : is_false(node, "egress")                       ? "egress"
		       : json_is_object(tls) && is_false(tls, "signer") ? "signer"
									: NULL;
}

/* Does the gateway that answers know what is in its file? */
static bool is_current(const struct setup *s, const json_t *status)
{
	const json_t *gateway = json_object_get(status, "gateway");
	const char *domain = json_string_value(json_object_get(gateway, "domain"));
	char name[DOMAIN_SIZE];
	uint16_t port;

	return domain && domain_and_port(bytes_str(domain), name, &port) &&
	       strcmp(name, s->name) == 0 && (port == HTTPS_PORT ? 0 : port) == s->port &&
	       (s->proxied || json_is_object(json_object_get(status, "tls")));
}

static bool names_it(const json_t *certificate, const char *pattern)
{
	const json_t *name;
	size_t i;

	json_array_foreach(json_object_get(certificate, "names"), i,
			   name) if (json_string_value(name) &&
				     strcmp(json_string_value(name), pattern) == 0) return true;
	return false;
}

/* Is a client of the domain shown a certificate for it? A new one is taken within seconds. */
static bool is_served(const struct setup *s, const json_t *status)
{
	const json_t *all = json_object_get(json_object_get(status, "tls"), "certificates"), *one;
	char below[DOMAIN_SIZE + 2];
	size_t i;

	snprintf(below, sizeof(below), "*.%s", s->name);
	json_array_foreach(all, i, one) if (json_is_true(json_object_get(one, "served")) &&
					    names_it(one, below)) return true;
	return s->proxied;
}

/* --- waiting -------------------------------------------------------------------------------- */

struct waiting {
	uint64_t restarts[COUNT(daemons)];   /* at the first look */
	unsigned int failed[COUNT(daemons)]; /* looks in a row */
	bool first;
	uint64_t idle_ns; /* since when none of them starts; 0: one does */
};

/* Has this one failed for good? */
static int judge_unit(struct setup *s, struct waiting *w, size_t i, const struct unit *u,
		      struct err *err)
{
	if (w->first)
		w->restarts[i] = u->restarts;
	w->failed[i] = strcmp(u->active, "failed") == 0 ? w->failed[i] + 1 : 0;
	if (w->failed[i] < FAILED_LOOKS && u->restarts < w->restarts[i] + DEATHS_MAX)
		return 0;
	setup_journal(s, daemons[i].unit);
	setup_fix(s, "its last lines say why; hotcell doctor says more. Then run hotcell setup "
		     "again");
	return err_set(err, ERR_INTERNAL, 0, "%s does not stay up", daemons[i].unit);
}

/* Which one is at it? COUNT(daemons): none. */
static int look_at_units(struct setup *s, struct waiting *w, size_t *ret_at, struct err *err)
{
	*ret_at = COUNT(daemons);
	for (size_t i = COUNT(daemons); i-- > 0;) {
		struct unit u;

		if (setup_unit(s, daemons[i].unit, &u, err) < 0 || judge_unit(s, w, i, &u, err) < 0)
			return -1;
		if (strcmp(u.active, "activating") == 0)
			*ret_at = i;
	}
	w->first = false;
	return 0;
}

/* One more look; `missing` does not answer. */
static int look_again(struct setup *s, struct waiting *w, const char *missing, struct err *err)
{
	char what[64];
	size_t at;

	if (look_at_units(s, w, &at, err) < 0)
		return -1;
	if (at < COUNT(daemons)) {
		w->idle_ns = 0;
		setup_progress(s, at + 1, COUNT(daemons), daemons[at].name);
		return 0;
	}
	snprintf(what, sizeof(what), "%s is waited for", missing);
	setup_progress(s, COUNT(daemons), COUNT(daemons), what);
	w->idle_ns = w->idle_ns ?: clock_mono_ns();
	if (clock_mono_ns() - w->idle_ns < IDLE_MS * NSEC_PER_MSEC)
		return 0;
	setup_fix(s, "hotcell doctor says why; the logs: journalctl -u 'hotcell*'");
	return err_set(err, ERR_UNAVAILABLE, 0, "%s does not answer", missing);
}

static int wait_for_all(struct setup *s, struct err *err)
{
	uint64_t end = clock_mono_ns() + DAEMONS_MS * NSEC_PER_MSEC;
	struct waiting w = { .first = true };

	while (clock_mono_ns() < end) {
		struct server server;

		ask_server(s, &server);
		json_decref(server.status);
		if (!server.missing)
			return 0;
		if (look_again(s, &w, server.missing, err) < 0)
			return -1;
		(void)poll(NULL, 0, SETUP_LOOK_MS);
	}
	setup_fix(s,
		  "systemctl status 'hotcell*', and hotcell doctor; then run hotcell setup again");
	return err_set(err, ERR_TIMEOUT, 0, "the daemons do not answer");
}

/* --- a gateway that was started before its settings ------------------------------------------ */

static int replace_gateway(struct setup *s, struct err *err)
{
	const char *const argv[] = { "hotcell-gateway-replace", NULL };
	struct program p;

	setup_progress(s, 0, 0, "a gateway with the new settings starts");
	setup_fix(s, "hotcell-gateway-replace says why; the old gateway goes on");
	if (program_run(argv, REPLACE_MS, &p, err) < 0)
		return -1;
	table_clean(p.said);
	return p.status == 0
		       ? 0
		       : err_set(err, ERR_INTERNAL, 0, "hotcell-gateway-replace: %.180s", p.said);
}

static int wait_for_current(struct setup *s, uint64_t ms, struct err *err)
{
	uint64_t end = clock_mono_ns() + ms * NSEC_PER_MSEC;

	do {
		struct server server;
		bool fine;

		ask_server(s, &server);
		fine = server.status && is_current(s, server.status) && is_served(s, server.status);
		json_decref(server.status);
		if (fine)
			return 0;
		(void)poll(NULL, 0, SETUP_LOOK_MS);
	} while (clock_mono_ns() < end);
	setup_fix(s,
		  "another program may have the port: ss -ltnp says which; choose another with "
		  "hotcell setup --domain %s:3443, or see journalctl -u hotcell-https.socket",
		  s->name);
	return err_set(err, ERR_UNAVAILABLE, 0, "the gateway does not speak TLS as %.128s",
		       s->domain);
}

/* --- the step ------------------------------------------------------------------------------- */

static int is_enabled(bool *ret, struct err *err)
{
	const char *const words[] = { "is-enabled", SETUP_TARGET, NULL };
	struct program p;

	if (units_systemctl(words, SYSTEMCTL_MS, &p, err) < 0)
		return -1;
	*ret = p.status == 0;
	return 0;
}

static int start(struct setup *s, bool enabled, bool up, struct err *err)
{
	if (!enabled &&
	    setup_systemctl(s, (const char *[]){ "enable", SETUP_TARGET, NULL }, err) < 0)
		return -1;
	setup_at(s, "daemons.enabled");
	if (up)
		return 0;
	/* not waited for here: it would be silent, and wait for the code interpreter, too */
	return setup_systemctl(s, (const char *[]){ "start", "--no-block", SETUP_TARGET, NULL },
			       err);
}

int setup_daemons(struct setup *s, struct setup_said *ret, struct err *err)
{
	struct server server;
	bool enabled = false, up, current, served;

	setup_fix(s, "Hotcell is set up with systemd; without it: docs/operations.md, Install");
	if (is_enabled(&enabled, err) < 0)
		return -1;
	ask_server(s, &server);
	up = !server.missing;
	served = server.status && is_served(s, server.status);
	current = !server.status || is_current(s, server.status);
	json_decref(server.status);
	if (enabled && up && current && served) {
		setup_said(ret, SETUP_KEPT, "they run, and start with the host");
		return 0;
	}
	setup_said(ret, s->cli.dry_run ? SETUP_WOULD : SETUP_DONE, "%s%s%s",
		   enabled ? "" : "enabled; ", up ? "" : "started; ",
		   current ? "they answer"
			   : "the gateway is replaced by one with the new settings");
	if (s->cli.dry_run)
		return 0;
	if (start(s, enabled, up, err) < 0 || wait_for_all(s, err) < 0)
		return -1;
	setup_at(s, "daemons.started");
	if (!current && replace_gateway(s, err) < 0)
		return -1;
	return wait_for_current(s, NEW_GATEWAY_MS, err);
}
