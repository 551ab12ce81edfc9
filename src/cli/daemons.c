/* daemons.c - what the daemons say of themselves, and of what they keep, one function each. */
#include "cli/ask.h"
#include "cli/doctor.h"
#include "cli/units.h"

/* Who is out of reach, seen from the gateway; NULL: nobody. */
static const char *who_is_missing(const json_t *node)
{
	if (!node)
		return "node";
	if (json_is_false(json_object_get(node, "warden")))
		return "warden";
	return json_is_false(json_object_get(node, "egress")) ? "egress" : NULL;
}

/* Of a gateway that cannot be asked: what to do. */
static const char *server_fix(const char *why)
{
	if (strstr(why, "ermission denied"))
		return "run it as root (sudo), or as the gateway's admin_uid";
	if (strstr(why, "the deadline of the exchange passed"))
		return "the gateway hangs: read its log (journalctl -u 'hotcell-gateway@*'), and "
		       "put another in its place with hotcell-gateway-replace";
	if (strstr(why, "onnection refused"))
		return "the gateway does not run: systemctl start hotcell.target, and read its log "
		       "(journalctl -u 'hotcell-gateway@*')";
	return "start the daemons (systemctl start hotcell.target), or name the gateway's socket "
	       "with --socket or HOTCELL_ADMIN_SOCKET; to look at the host alone: --before";
}

static void look_server(const struct told *t, struct finding *f)
{
	static const char fix_fresh[] =
		"hotcell setup: it starts the daemons, and makes the first team and its key";
	const char *mismatch = json_string_value(json_array_get(t->mismatches, 0));
	const char *missing = who_is_missing(t->node);

	if (t->before)
		finding_set(f, VERDICT_OK, NULL, "%s",
			    t->cli->before ? "not asked: the host alone was looked at (--before)"
					   : "Hotcell is not installed here: the host alone was "
					     "looked at");
	else if (t->fresh)
		finding_set(f, VERDICT_FAIL, fix_fresh,
			    "Hotcell is installed, and was never started: the host alone was "
			    "looked at");
	else if (t->why)
		finding_set(f, VERDICT_FAIL, server_fix(t->why), "it does not answer: %.512s",
			    t->why);
	else if (mismatch)
		finding_set(f, VERDICT_WARN, "hotcell status says which build each one is", "%s",
			    mismatch);
	else if (missing) {
		finding_set(f, VERDICT_FAIL, "", "%s does not answer", missing);
		finding_fix(f,
			    "systemctl start hotcell-%s, and read its log (journalctl -u "
			    "hotcell-%s): it says what it lacks",
			    missing, missing);
	} else
		finding_set(f, VERDICT_OK, NULL, "all daemons answer");
}

/* Do the names that clients are told lead here? */
static void look_names(const struct told *t, struct finding *f)
{
	static const char fix[] =
		"set domain = NAME in gateway.conf, then hotcell-gateway-replace; for one machine "
		"or a LAN `hotcell tls init` makes the certificates and says what else to do";
	const char *domain = json_string_value(json_object_get(t->gateway, "domain"));

	if (!t->gateway)
		finding_set(f, VERDICT_WARN, "see what is said of `server`",
			    "not known: the gateway cannot be asked");
	else if (!domain)
		finding_set(f, VERDICT_WARN, fix,
			    "domain is not set: getHost() is made of what each client calls the "
			    "gateway by");
	else
		finding_set(f, VERDICT_OK, NULL, "sandboxes are PORT-ID.%s", domain);
}

/* "id: why" of each that was told, as much of it as fits. */
static void name_rows(const json_t *rows, char *ret, size_t size)
{
	const json_t *row;
	size_t i, n = 0;

	ret[0] = '\0';
	json_array_foreach(rows, i, row)
	{
		const char *id = json_string_value(json_object_get(row, "id"));
		const char *kind = json_string_value(json_object_get(row, "kind"));
		const char *why = json_string_value(json_object_get(row, "why"));

		if (id && kind && why && n < size)
			n += (size_t)snprintf(ret + n, size - n, "; %s %s: %s", kind, id, why);
	}
}

static long long count_of(const struct told *t, const char *name)
{
	return (long long)json_integer_value(json_object_get(t->node, name));
}

/* That it cannot be written; rows that node could make no sense of. */
static void look_journal(const struct told *t, struct finding *f)
{
	static const char fix[] = "start the version of Hotcell that wrote them, or give a sandbox "
				  "up with hotcell kill ID; see docs/operations.md";
	static const char fix_failure[] =
		"look at the disk's health; stop hotcell-node, move the journal away, and make it "
		"again from what is saved: see docs/operations.md, A journal that is damaged";
	const char *failure = json_string_value(json_object_get(t->node, "journalFailure"));
	char rows[sizeof(f->what) - 64];
	long long n = count_of(t, "quarantined");

	name_rows(json_object_get(t->node, "quarantine"), rows, sizeof(rows));
	if (failure && failure[0])
		finding_set(f, VERDICT_FAIL, fix_failure, "it could not be written: %s", failure);
	else if (n == 0)
		finding_set(f, VERDICT_OK, NULL, "node knows all that is in it");
	else
		finding_set(f, VERDICT_FAIL, fix, "%lld rows are set aside and kept%s", n, rows);
}

/* Does what warden has fit what node knows? */
static void look_vms(const struct told *t, struct finding *f)
{
	long long absent = count_of(t, "vmsAbsent"), others = count_of(t, "vmsOfOthers");

	if (absent > 0)
		finding_set(f, VERDICT_FAIL,
			    "set warden's state_dir and cgroup to what they were and restart it; "
			    "if the VMs are gone: hotcell confirm-lost",
			    "of %lld sandboxes the VM is not found; they are kept", absent);
	else if (others > 0)
		finding_set(f, VERDICT_WARN,
			    "set node's data_dir right, or give the other node a warden of its own",
			    "%lld VMs are of another installation and left alone", others);
	else
		finding_set(f, VERDICT_OK, NULL, "all are this installation's");
}

PRINTF(3, 4) static void add(char *text, size_t size, const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list args;

	if (len > 0)
		len += (size_t)snprintf(text + len, size - len, "; ");
	va_start(args, fmt);
	if (len < size)
		vsnprintf(text + len, size - len, fmt, args);
	va_end(args);
}

/* What node holds on the disk: rows without their files, files that cannot be loaded or have no
 * row. All that is wrong, one after the other. */
static void look_saved(const struct told *t, struct finding *f)
{
	static const char fix_missing[] = "mount what holds sandboxes/ and snapshots/ of node's "
					  "data_dir, and restart hotcell-node";
	static const char fix_unloaded[] =
		"of what is damaged: look at the disk's health, put the files back from a backup, "
		"and try again; of what was saved elsewhere: see Upgrade in docs/operations.md; "
		"nothing was deleted";
	static const char fix_lost[] = "hotcell lost list; then restore or drop each";
	static const char fix_elsewhere[] =
		"hotcell resume --boot ID... boots one from its disk, without what ran in it; or "
		"give warden the old QEMU again: see Upgrade in docs/operations.md";
	const json_t *unloaded = json_object_get(t->node, "unloaded");
	long long missing = count_of(t, "filesMissing"), lost = count_of(t, "lost");
	long long elsewhere = count_of(t, "savedElsewhere");
	char text[sizeof(f->what)] = "";
	size_t n = json_array_size(unloaded);

	if (missing > 0)
		add(text, sizeof(text),
		    "the files of %lld paused sandboxes and snapshots are not there; nothing was "
		    "deleted",
		    missing);
	if (elsewhere > 0)
		add(text, sizeof(text),
		    "%lld paused sandboxes were saved with another QEMU: their memory does not fit "
		    "this one",
		    elsewhere);
	if (lost > 0)
		add(text, sizeof(text), "%lld folders are set aside, for a week or a day: %lld MiB",
		    lost, count_of(t, "lostBytes") >> 20);
	if (n > 0) {
		add(text, sizeof(text), "%zu saved sandboxes and snapshots could not be loaded", n);
		name_rows(unloaded, text + strlen(text), sizeof(text) - strlen(text));
	}
	if (missing > 0 || n > 0)
		finding_set(f, VERDICT_FAIL, missing > 0 ? fix_missing : fix_unloaded, "%s", text);
	else if (lost > 0 || elsewhere > 0)
		finding_set(f, VERDICT_WARN, elsewhere > 0 ? fix_elsewhere : fix_lost, "%s", text);
	else
		finding_set(f, VERDICT_OK, NULL, "what is saved has its files");
}

struct templates_seen {
	size_t lost, failed; /* damaged or missing; cannot be read or made */
	size_t unfrozen;     /* a user's, of another QEMU, that could not be frozen again */
	bool in_use;         /* one of those that are lost */
	char text[768];      /* "id: message" of each, as much of it as fits */
};

static void name_template(struct templates_seen *seen, const char *id, const char *message)
{
	size_t len = strlen(seen->text);

	snprintf(seen->text + len, sizeof(seen->text) - len, "; %.63s: %.200s", id ? id : "?",
		 message ? message : "?");
}

static void see_refreeze(const json_t *t, struct templates_seen *seen)
{
	const json_t *again = json_object_get(t, "refreeze");
	const char *state = json_string_value(json_object_get(again, "state"));

	if (!state || strcmp(state, "not frozen again") != 0)
		return;
	seen->unfrozen++;
	name_template(seen, json_string_value(json_object_get(t, "templateID")),
		      json_string_value(json_object_get(again, "message")));
}

static void see_template(const json_t *t, struct templates_seen *seen)
{
	const char *state = json_string_value(json_object_get(t, "buildStatus"));
	const char *id = json_string_value(json_object_get(t, "templateID"));
	const char *message = json_string_value(json_object_get(t, "message"));
	bool failed = state && strcmp(state, "error") == 0;

	see_refreeze(t, seen);
	if (!failed && (!state || (strcmp(state, "damaged") != 0 && strcmp(state, "missing") != 0)))
		return;
	if (failed)
		seen->failed++;
	else
		seen->lost++;
	seen->in_use |= !failed && json_is_true(json_object_get(t, "inUse"));
	name_template(seen, id, message ? message : state);
}

/* What is paused or kept as a snapshot differs from a template, and needs it; new ones do, too. */
static void look_templates(const struct told *told, struct finding *f)
{
	static const char fix_lost[] =
		"put templates/ID below warden's state_dir back from a backup; what "
		"differs from it stays as it is until then";
	static const char fix_failed[] =
		"look at node's log, the disk's health, and the kernel and disk of node.conf; node "
		"tries again by itself";
	static const char fix_unfrozen[] =
		"`hotcell templates logs BUILD` has what its commands said; it is tried again when "
		"node starts; or its owner builds it again";
	AUTO(json_decrefp) json_t *all = NULL;
	struct templates_seen seen = { 0 };
	const json_t *t;
	struct err err = { 0 };
	size_t i;

	if (cli_ask(told->cli,
		    &(struct cli_request){ .path = "/admin/templates", .ms = ASK_LOOK_MS }, &all,
		    &err) < 0) {
		finding_set(f, VERDICT_WARN, "see what is said of `server`", "%s", err.msg);
		return;
	}
	json_array_foreach(all, i, t) see_template(t, &seen);
	if (seen.lost + seen.failed == 0 && seen.unfrozen > 0)
		finding_set(f, VERDICT_WARN, fix_unfrozen,
			    "%zu could not be frozen again for this QEMU%s", seen.unfrozen,
			    seen.text);
	else if (seen.lost + seen.failed == 0)
		finding_set(f, VERDICT_OK, NULL, "none is known to be damaged");
	else if (seen.lost == 0)
		finding_set(f, VERDICT_FAIL, fix_failed, "no sandbox can be made of it%s",
			    seen.text);
	else
		finding_set(f, seen.in_use || seen.failed ? VERDICT_FAIL : VERDICT_WARN, fix_lost,
			    "%zu damaged or missing%s", seen.lost, seen.text);
}

static void see_unit(const struct packaged *p, const struct unit *u, struct finding *f)
{
	unsigned long long failures = u->restarts + unit_waits(u);
	bool over = strcmp(u->active, "failed") == 0, runs = strcmp(u->active, "activating") == 0;

	if (!over && !(runs && failures > 0)) {
		if (runs || (u->looked && !u->unwanted))
			finding_add(f, VERDICT_OK, NULL, "%s is %smade", p->name,
				    runs ? "being " : "");
		return;
	}
	if (f->verdict != VERDICT_FAIL)
		finding_fix(f,
			    "journalctl -u hotcell-template@%s says why; hotcell setup tries it "
			    "again at once",
			    p->name);
	if (over)
		finding_add(f, VERDICT_FAIL, NULL, "%s could not be made", p->name);
	else
		finding_add(f, VERDICT_FAIL, NULL,
			    "%s could not be made, and is tried again (failures so far: %llu)",
			    p->name, failures);
}

/* Of packages: nobody waits for the units that make them, and systemd tries again by itself. */
static void look_template_units(const struct told *t, struct finding *f)
{
	struct unit u;
	struct err err;

	(void)t;
	for (size_t i = 0; i < PACKAGED; i++) {
		if (unit_look(packaged[i].unit, PROGRAM_S * 1000, &u, &err) < 0) {
			finding_set(f, VERDICT_OK, NULL, "not known: systemd does not answer");
			return;
		}
		see_unit(&packaged[i], &u, f);
	}
	if (!f->what[0])
		finding_set(f, VERDICT_OK, NULL, "no package with a template is installed");
}

/* Whether images can be fetched at all. */
static void look_images(const struct told *t, struct finding *f)
{
	const json_t *up = json_object_get(t->node, "images");
	const char *build = json_string_value(json_object_get(t->versions, "images"));

	if (json_is_true(up))
		finding_set(f, VERDICT_OK, NULL, "hotcell-images answers, build %.64s",
			    build ? build : "?");
	else if (json_is_false(up))
		finding_set(f, VERDICT_FAIL,
			    "start hotcell-images, and read its log; images_socket of node.conf "
			    "must be its socket",
			    "hotcell-images does not answer: no template can be built of an image");
	else
		finding_set(f, VERDICT_OK, NULL,
			    "none is wanted: images_socket of node.conf is not set");
}

static void look_builds(const struct told *t, struct finding *f)
{
	finding_set(f, VERDICT_OK, NULL,
		    "%lld run (at most %lld), %lld wait; %lld steps take %lld of %lld MiB; %lld "
		    "images that were booted take %lld MiB",
		    count_of(t, "buildsRunning"), count_of(t, "buildsMax"),
		    count_of(t, "buildsWaiting"), count_of(t, "steps"),
		    count_of(t, "stepsBytes") >> 20, count_of(t, "stepsMaxBytes") >> 20,
		    count_of(t, "grounds"), count_of(t, "groundsBytes") >> 20);
}

enum { DAY_S = 24 * 3600, EXPIRES_WARN_S = 14 * DAY_S };

struct certs_seen {
	size_t served, refused, soon, over;
	char text[768]; /* what is wrong with each, as much of it as fits */
};

static void see_certificate(const json_t *c, struct certs_seen *seen)
{
	const char *name = json_string_value(json_object_get(c, "name"));
	const char *refused = json_string_value(json_object_get(c, "refused"));
	long long left = json_integer_value(json_object_get(c, "secondsLeft"));

	if (!name)
		return;
	if (refused) {
		seen->refused++;
		add(seen->text, sizeof(seen->text),
		    "%.64s is not served as it is in its file: %.200s", name, refused);
	}
	if (!json_is_true(json_object_get(c, "served")))
		return;
	seen->served++;
	seen->over += left <= 0;
	seen->soon += left > 0 && left < EXPIRES_WARN_S;
	if (left <= 0)
		add(seen->text, sizeof(seen->text), "%.64s expired", name);
	else if (left < EXPIRES_WARN_S)
		add(seen->text, sizeof(seen->text), "%.64s expires in %lld days", name,
		    left / DAY_S);
}

/* May clients come over TLS, and for how long? */
static void look_tls(const struct told *t, struct finding *f)
{
	struct certs_seen seen = { 0 };
	const json_t *c;
	size_t i;

	if (!t->tls) {
		finding_set(f, VERDICT_OK, NULL, "%s",
			    t->why ? "not known" : "not spoken: see docs/tls.md");
		return;
	}
	json_array_foreach(json_object_get(t->tls, "certificates"), i, c) see_certificate(c, &seen);
	if (!json_is_true(json_object_get(t->tls, "signer")))
		finding_set(f, VERDICT_FAIL, "start hotcell-signer, and read its log",
			    "the signer does not answer: nobody can connect anew");
	else if (seen.served == 0 || seen.over > 0)
		finding_set(f, VERDICT_FAIL,
			    "put fullchain.pem and privkey.pem into a folder of tls_dir: see "
			    "docs/operations.md, TLS",
			    "%s", seen.text[0] ? seen.text : "there is no certificate");
	else if (seen.refused > 0 || seen.soon > 0)
		finding_set(f, VERDICT_WARN,
			    "renew it, or put the pair right: see "
			    "docs/operations.md, TLS",
			    "%s", seen.text);
	else
		finding_set(f, VERDICT_OK, NULL, "%zu certificates are served", seen.served);
}

static const struct check checks[] = {
	{ "server", look_server, CHECK_ALWAYS },
	{ "names", look_names, CHECK_INSTALLED },
	{ "tls", look_tls, CHECK_INSTALLED },
	{ "journal", look_journal, CHECK_NODE },
	{ "vms", look_vms, CHECK_NODE },
	{ "saved", look_saved, CHECK_NODE },
	{ "templates", look_templates, CHECK_NODE },
	{ "template-units", look_template_units, CHECK_INSTALLED },
	{ "images", look_images, CHECK_NODE },
	{ "builds", look_builds, CHECK_NODE },
};
const struct checks daemon_checks = { checks, COUNT(checks) };
