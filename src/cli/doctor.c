/* doctor.c - `hotcell doctor`: runs every check and says what to do about what it found. */
#include "cli/doctor.h"

#include <stdarg.h>

#include "cli/ask.h"
#include "cli/leaks.h"
#include "cli/say.h"

static const char *const words[] = { "ok", "warn", "FAIL" };

void finding_set(struct finding *f, enum verdict v, const char *fix, const char *fmt, ...)
{
	va_list args;

	f->verdict = v;
	f->fix = fix;
	va_start(args, fmt);
	vsnprintf(f->what, sizeof(f->what), fmt, args);
	va_end(args);
}

static void print_line(const char *name, const struct finding *f)
{
	printf("%-4s  %-12s  %s\n", words[f->verdict], name, f->what);
	if (f->verdict != VERDICT_OK && f->fix)
		printf("%20sfix: %s\n", "", f->fix);
}

static int add_json(json_t *all, const char *name, const struct finding *f)
{
	json_t *one = json_pack("{s:s,s:s,s:o,s:s*}", "check", name, "verdict", words[f->verdict],
				"found", json_text(bytes_str(f->what)), "fix",
				f->verdict != VERDICT_OK ? f->fix : NULL);

	return one && json_array_append_new(all, one) == 0 ? 0 : -1;
}

struct report {
	const struct cli *cli;
	json_t *all; /* with --json */
	int status;
};

static void add(struct report *r, const char *name, const struct finding *f)
{
	if (f->verdict == VERDICT_FAIL)
		r->status = CLI_FAILED;
	if (!r->cli->json)
		print_line(name, f);
	else if (add_json(r->all, name, f) < 0)
		r->status = CLI_FAILED;
}

static void check_daemons(struct report *r)
{
	AUTO(json_decrefp) json_t *status = NULL;
	struct err err = { 0 };
	struct told t = { .cli = r->cli };

	if (cli_ask(r->cli, &(struct cli_request){ .path = "/admin/status" }, &status, &err) < 0)
		t.why = err.msg;
	t.gateway = json_object_get(status, "gateway");
	t.node = json_object_get(status, "node");
	t.versions = json_object_get(status, "versions");
	t.mismatches = json_object_get(status, "mismatches");
	t.tls = json_object_get(status, "tls");
	if (!json_is_object(t.node))
		t.node = NULL;
	if (!json_is_object(t.tls))
		t.tls = NULL;
	for (size_t i = 0; i < n_daemon_checks; i++) {
		struct finding f = { 0 };

		if (daemon_checks[i].needs_node && !t.node)
			finding_set(&f, VERDICT_WARN, "see what is said of `server`",
				    "not known: node cannot be asked");
		else
			daemon_checks[i].look(&t, &f);
		add(r, daemon_checks[i].name, &f);
	}
}

static void check_host(struct report *r, const struct check *checks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct finding f = { .cli = r->cli };

		checks[i].look(&f);
		add(r, checks[i].name, &f);
	}
}

static int check_all(const struct cli *c)
{
	AUTO(json_decrefp) json_t *all = json_array();
	struct report r = { c, all, CLI_FINE };

	check_host(&r, host_checks, n_host_checks);
	check_host(&r, image_checks, n_image_checks);
	check_daemons(&r);
	if (c->json && cli_print_json(all) != CLI_FINE)
		return CLI_FAILED;
	return r.status;
}

int doctor_run(struct cli *c)
{
	return c->leaks ? leaks_run(c) : check_all(c);
}
