/* selftest.c - with whose key, what is said of each step, and that all goes in the end. */
#include "cli/selftest.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/ask.h"
#include "cli/people.h"
#include "cli/run.h"
#include "cli/say.h"
#include "cli/table.h"

enum { SIGNALLED = 128 };

struct outcome {
	struct selftest t;
	char key[128], team[64]; /* made here; empty: not */
	json_t *steps;
	bool failed, colours, moving; /* moving: a terminal shows what is under way */
};

/* --- a team and a key for it ---------------------------------------------------------------- */

static int take(const json_t *answer, const char *name, char *ret, size_t size, struct err *err)
{
	struct bytes text;

	if (json_want_string(answer, name, &text, err) < 0)
		return -1;
	return bytes_to_str(text, ret, size)
		       ? 0
		       : err_set(err, ERR_INTERNAL, 0, "gateway: %s is too long", name);
}

static int make_key(struct outcome *o, struct err *err)
{
	AUTO(json_decrefp) json_t *name = NULL, *team = NULL, *key = NULL;
	struct cli_request rq = { .method = "POST", .path = "/admin/teams" };

	name = json_pack("{s:o}", "name",
			 json_sprintf("selftest-%d-%" PRIu64, (int)getpid(),
				      (uint64_t)(clock_wall_ns() / NSEC_PER_SEC)));
	rq.body = name;
	if (cli_ask(o->t.c, &rq, &team, err) < 0 ||
	    take(team, "teamID", o->team, sizeof(o->team), err) < 0)
		return -1;
	rq = (struct cli_request){ .method = "POST",
				   .path = "/admin/teams/",
				   .id = o->team,
				   .suffix = "/keys",
				   .body = name };
	if (cli_ask(o->t.c, &rq, &key, err) < 0 ||
	    take(key, "key", o->key, sizeof(o->key), err) < 0)
		return -1;
	o->t.c->e2b.key = o->key;
	return 0;
}

static bool drop_key(struct outcome *o)
{
	const struct cli_request rq = { "DELETE", "/admin/teams/", .id = o->team };
	AUTO(json_decrefp) json_t *answer = NULL;
	struct err err = { 0 };

	if (!o->team[0] || cli_ask(o->t.c, &rq, &answer, &err) == 0)
		return true;
	fprintf(stderr, "hotcell: its team stays: %s\n  fix: hotcell teams rm %s\n", err.msg,
		o->team);
	return false;
}

/* With the key that is set, or as an operator. */
static int begin(struct outcome *o, struct err *err)
{
	struct cli_e2b *e = &o->t.c->e2b;
	AUTO(json_decrefp) json_t *status = NULL;
	struct err why = { 0 };

	o->t.as_operator = cli_ask(o->t.c, &(struct cli_request){ .path = "/admin/status" },
				   &status, &why) == 0;
	if (!e->domain && !e->api_url) {
		e->api_url = CLI_API_URL;
		e->sandbox_url = e->sandbox_url ?: CLI_API_URL;
	}
	if (e->key)
		return 0;
	if (o->t.as_operator)
		return make_key(o, err);
	*err = why;
	return err_wrap(err, "E2B_API_KEY is not set, and the operator's socket does not answer");
}

/* --- what is said --------------------------------------------------------------------------- */

static const struct {
	const char *name, *colour;
} results[STEP_RESULTS] = {
	[STEP_PASS] = { "pass", "\033[32m" },
	[STEP_WARN] = { "warn", "\033[33m" },
	[STEP_SKIP] = { "skip", "\033[2m" },
	[STEP_FAIL] = { "FAIL", "\033[31m" },
};

static void say_begin(const struct outcome *o, const char *name)
{
	if (!o->moving)
		return;
	printf("      %-16s ...", name);
	fflush(stdout);
}

static void say_step(struct outcome *o, const char *name, enum selftest_result r, uint64_t ns)
{
	static const char *const words[STEP_RESULTS] = { "pass", "warn", "skip", "fail" };
	double seconds = (double)(ns / 1000000) / 1000;

	json_array_append_new(o->steps, json_pack("{s:s, s:s, s:f, s:o}", "step", name, "result",
						  words[r], "seconds", seconds, "detail",
						  json_text(bytes_str(o->t.detail))));
	if (o->t.c->json)
		return;
	printf("%s%s%s%s  %-16s %8.2f s%s%s\n", o->moving ? "\r\033[K" : "",
	       o->colours ? results[r].colour : "", results[r].name, o->colours ? "\033[0m" : "",
	       name, seconds, o->t.detail[0] ? "  " : "", o->t.detail);
	fflush(stdout);
}

static int say_end(struct outcome *o, uint64_t ns)
{
	AUTO(json_decrefp) json_t *all = NULL;
	double seconds = (double)(ns / 1000000) / 1000;

	if (!o->t.c->json) {
		printf("\n%s in %.2f s\n", o->failed ? "something failed" : "all of it works",
		       seconds);
		return o->failed ? CLI_FAILED : CLI_FINE;
	}
	all = json_pack("{s:b, s:f, s:O}", "ok", !o->failed, "seconds", seconds, "steps", o->steps);
	if (!all)
		return CLI_FAILED;
	return cli_print_json(all) == CLI_FINE && !o->failed ? CLI_FINE : CLI_FAILED;
}

/* --- all of it ------------------------------------------------------------------------------ */

static void run_step(struct outcome *o, const struct selftest_step *step)
{
	uint64_t begun = clock_mono_ns();
	enum selftest_result r = STEP_SKIP;
	struct err err = { 0 };

	snprintf(o->t.detail, sizeof(o->t.detail), "%s", o->failed ? "not tried" : "");
	if (!o->failed) {
		say_begin(o, step->name);
		r = step->run(&o->t, &err);
	}
	if (r == STEP_FAIL) {
		o->failed = true;
		snprintf(o->t.detail, sizeof(o->t.detail), "%.250s", err.msg);
		table_clean(o->t.detail);
	}
	say_step(o, step->name, r, clock_mono_ns() - begun);
}

static int run_all(struct outcome *o)
{
	uint64_t begun = clock_mono_ns();
	bool clean;

	for (size_t i = 0; i < n_selftest_steps && !run_session_signal(&o->t.s); i++)
		run_step(o, &selftest_steps[i]);
	clean = selftest_clean(&o->t);
	if (o->t.s.signo)
		return SIGNALLED + o->t.s.signo;
	if (!clean)
		fprintf(stderr, "hotcell: something of it is left\n  fix: hotcell ps --all\n");
	o->failed = o->failed || !clean;
	return say_end(o, clock_mono_ns() - begun);
}

int selftest_run(struct cli *c)
{
	struct outcome o = { .t = { .c = c, .s = { .signals = -1 } },
			     .colours = people_colours(c, STDOUT_FILENO),
			     .moving = !c->json && people_colours(c, STDOUT_FILENO) };
	struct err err = { 0 };
	int status;

	o.steps = json_array();
	if (begin(&o, &err) < 0 || run_session_open(&o.t.s, c, &err) < 0) {
		status = cli_fail_fix(c, &err, "run it as root, or set E2B_API_KEY and E2B_DOMAIN");
	} else {
		status = run_all(&o);
	}
	run_session_close(&o.t.s);
	if (!drop_key(&o))
		status = status == CLI_FINE ? CLI_FAILED : status;
	json_decref(o.steps);
	explicit_bzero(o.key, sizeof(o.key));
	return status;
}
