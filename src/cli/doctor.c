/* doctor.c - `hotcell doctor`: runs every check and says what to do about what it found.
 *
 * Before an installation (`--before`, or where nothing is installed) the host alone is looked at.
 * Afterwards the server must answer.
 */
#include "cli/doctor.h"

#include <stdarg.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/leaks.h"
#include "cli/say.h"

static const char *const words[] = { "ok", "warn", "FAIL" };

static const struct checks *const tables[] = {
	&host_checks, &machine_checks, &folder_checks, &way_checks, &image_checks, &daemon_checks,
};

/* --- what was seen -------------------------------------------------------------------------- */

void finding_set(struct finding *f, enum verdict v, const char *fix, const char *fmt, ...)
{
	va_list args;

	f->verdict = v;
	snprintf(f->fix, sizeof(f->fix), "%s", fix ? fix : "");
	va_start(args, fmt);
	vsnprintf(f->what, sizeof(f->what), fmt, args);
	va_end(args);
}

void finding_fix(struct finding *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(f->fix, sizeof(f->fix), fmt, args);
	va_end(args);
}

void finding_add(struct finding *f, enum verdict v, const char *fix, const char *fmt, ...)
{
	size_t len = strlen(f->what);
	va_list args;

	if (v > f->verdict && fix)
		snprintf(f->fix, sizeof(f->fix), "%s", fix);
	f->verdict = v > f->verdict ? v : f->verdict;
	if (len > 0)
		len += (size_t)snprintf(f->what + len, sizeof(f->what) - len, "; ");
	if (len >= sizeof(f->what))
		return;
	va_start(args, fmt);
	vsnprintf(f->what + len, sizeof(f->what) - len, fmt, args);
	va_end(args);
}

/* --- how it is said ------------------------------------------------------------------------- */

struct report {
	const struct told *told;
	json_t *all; /* with --json */
	int status;
};

static void print_line(const char *name, const struct finding *f)
{
	printf("%-4s  %-14s  %s\n", words[f->verdict], name, f->what);
	if (f->verdict != VERDICT_OK && f->fix[0])
		printf("%22sfix: %s\n", "", f->fix);
	(void)fflush(stdout); /* the next one may take its time */
}

static int add_json(json_t *all, const char *name, const struct finding *f)
{
	json_t *fix = f->verdict != VERDICT_OK && f->fix[0] ? json_text(bytes_str(f->fix)) : NULL;
	json_t *one = json_pack("{s:s,s:s,s:o,s:o*}", "check", name, "verdict", words[f->verdict],
				"found", json_text(bytes_str(f->what)), "fix", fix);

	return one && json_array_append_new(all, one) == 0 ? 0 : -1;
}

static void add(struct report *r, const char *name, const struct finding *f)
{
	if (f->verdict == VERDICT_FAIL && r->status == CLI_FINE)
		r->status = CLI_FAILED;
	if (!r->told->cli->json)
		print_line(name, f);
	else if (add_json(r->all, name, f) < 0)
		r->status = CLI_FAILED;
}

static void look(struct report *r, const struct check *c)
{
	const struct told *t = r->told;
	struct finding f = { 0 };

	if ((t->before || t->fresh) && c->when != CHECK_ALWAYS)
		return;
	if (c->when == CHECK_NODE && !t->node)
		finding_set(&f, VERDICT_WARN, "see what is said of `server`",
			    "not known: node cannot be asked");
	else
		c->look(t, &f);
	add(r, c->name, &f);
}

/* --- who is asked --------------------------------------------------------------------------- */

static const json_t *object_of(const json_t *from, const char *name)
{
	const json_t *v = json_object_get(from, name);

	return json_is_object(v) ? v : NULL;
}

/* Somebody named the socket, or it is there: then a server is expected. */
static bool is_expected(const struct told *t)
{
	const char *socket = t->cli->socket;

	return t->places.configured || strcmp(socket, CLI_SOCKET) != 0 || access(socket, F_OK) == 0;
}

/* Daemons make their folders when they start. */
static bool is_fresh(const struct told *t)
{
	for (enum place_folder i = 0; i < FOLDERS; i++)
		if (access(t->places.folders[i].path, F_OK) == 0)
			return false;
	return strcmp(t->cli->socket, CLI_SOCKET) == 0 && access(t->cli->socket, F_OK) < 0;
}

/* `status` and `err` are what the server said. */
static void tell(struct told *t, const struct cli *c, const json_t *status, const struct err *err)
{
	*t = (struct told){ .cli = c, .why = err->code ? err->msg : NULL };
	t->gateway = json_object_get(status, "gateway");
	t->node = object_of(status, "node");
	t->versions = json_object_get(status, "versions");
	t->mismatches = json_object_get(status, "mismatches");
	t->tls = object_of(status, "tls");
	places_find(&t->places, c, t->node);
	t->before = c->before || (t->why && !is_expected(t));
	t->fresh = t->why && !t->before && is_fresh(t);
}

static int check_all(const struct cli *c)
{
	AUTO(json_decrefp) json_t *all = json_array(), *status = NULL;
	struct err err = { 0 };
	struct told t;
	struct report r = { &t, all, CLI_FINE };

	if (!c->before)
		(void)!cli_ask(c,
			       &(struct cli_request){ .path = "/admin/status", .ms = ASK_LOOK_MS },
			       &status, &err);
	tell(&t, c, status, &err);
	for (size_t i = 0; i < COUNT(tables); i++)
		for (size_t k = 0; k < tables[i]->n; k++)
			look(&r, &tables[i]->all[k]);
	if (c->json && cli_print_json(all) != CLI_FINE)
		return CLI_FAILED;
	return t.why && !t.before ? CLI_UNREACHABLE : r.status;
}

void doctor_before(const struct cli *c, struct doctor_user *u)
{
	const struct err fine = { 0 };
	struct told t;

	tell(&t, c, NULL, &fine);
	t.before = true;
	for (size_t i = 0; i < COUNT(tables); i++)
		for (size_t k = 0; k < tables[i]->n; k++) {
			const struct check *one = &tables[i]->all[k];
			struct finding f = { 0 };

			if (one->when != CHECK_ALWAYS)
				continue;
			one->look(&t, &f);
			u->seen(u, one->name, &f);
		}
}

int doctor_run(struct cli *c)
{
	if (c->leaks && c->before)
		return cli_usage(c);
	return c->leaks ? leaks_run(c) : check_all(c);
}
