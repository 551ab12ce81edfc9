/* setup_wait.c - the templates that an installation makes by itself are waited for. */
#include <poll.h>

#include "base/clock.h"
#include "cli/ask.h"
#include "cli/setup.h"
#include "cli/templates.h"

enum {
	BASE_MS = 30 * 60 * 1000,
	TEMPLATE_MS = 90 * 60 * 1000, /* emulated, on a host that is busy */
	ERROR_MS = 5 * 1000,          /* node tries again by itself */
	DEAF_MS = 60 * 1000,          /* without an answer: daemons are restarted */
	FAILURES_MAX = 2,             /* of a template's service; then it waits for long */
	ID_SIZE = 64,
};

/* --- base ----------------------------------------------------------------------------------- */

/* What node says of it, in the order in which it comes; `reached` is the last step of vm/build.h.
 */
static const struct {
	const char *phase, *reached, *what;
} base_steps[] = {
	{ "waiting", "", "node asks warden what this host is" },
	{ "checking", "", "templates that are there are read" },
	{ "building", "", "kernel and disk are copied" },
	{ "building", "begun", "QEMU starts" },
	{ "building", "process", "QEMU starts" },
	{ "building", "monitor", "QEMU starts" },
	{ "building", "greeting", "QEMU starts" },
	{ "building", "overlay", "QEMU starts" },
	{ "building", "cont", "the guest boots" },
	{ "building", "healthy", "the guest learns whom to trust" },
	{ "building", "trusted", "the guest is asked where its packages come from" },
	{ "building", "packages", "a first command runs in it" },
	{ "building", "ready", "it is frozen" },
	{ "building", "frozen", "it is frozen" },
	{ "building", "settled", "its memory is saved" },
	{ "building", "stopped", "its memory is saved" },
	{ "building", "saved", "its memory is saved" },
	{ "building", "quit", "its memory is saved" },
	{ "building", "ended", "its files are summed" },
	{ "building", "sealed", "its files are summed" },
	{ "building", "published", "its files are summed" },
	{ "warming", "", "it is read once" },
};

static void show_base(struct setup *s, const json_t *progress)
{
	const char *phase = json_string_value(json_object_get(progress, "phase"));
	const char *reached = json_string_value(json_object_get(progress, "reached"));

	for (size_t i = 0; phase && reached && i < COUNT(base_steps); i++)
		if (strcmp(base_steps[i].phase, phase) == 0 &&
		    (!base_steps[i].reached[0] || strcmp(base_steps[i].reached, reached) == 0)) {
			bool last = i + 1 == COUNT(base_steps) ||
				    strcmp(base_steps[i + 1].phase, phase) != 0;

			/* a row without a step is for all of its phase, if it is alone */
			if (!base_steps[i].reached[0] && reached[0] && !last)
				continue;
			setup_progress(s, i + 1, COUNT(base_steps), base_steps[i].what);
			return;
		}
	setup_progress(s, 0, 0, "it is made: a VM boots once, and is frozen");
}

static bool is(const json_t *t, const char *member, const char *value)
{
	const char *found = json_string_value(json_object_get(t, member));

	return found && strcmp(found, value) == 0;
}

/* The row of a template of the host's, or of that namespace, among those that were told; NULL:
 * there is none. */
static const json_t *find(const json_t *all, const char *namespace, const char *name)
{
	const json_t *t;
	size_t i;

	json_array_foreach(all, i, t)
	{
		if (namespace ? is(t, "name", name) && is(t, "namespace", namespace)
			      : is(t, "alias", name))
			return t;
	}
	return NULL;
}

static int ask_templates(const struct setup *s, json_t **ret, struct err *err)
{
	return cli_list(&s->cli,
			&(struct cli_request){ .path = "/admin/templates", .ms = SETUP_LIST_MS },
			ret, err);
}

struct base_look {
	bool ready;
	uint64_t wrong_ns; /* since when it cannot be made, or nobody answers; 0: all is well */
};

/* -1: it will not be. */
static int look_at_base(struct setup *s, struct base_look *l, struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;
	uint64_t now = clock_mono_ns(), patience = DEAF_MS;
	const char *state = NULL, *why;
	const json_t *base;

	if (ask_templates(s, &all, err) == 0) {
		base = find(all, NULL, "base");
		state = json_string_value(json_object_get(base, "buildStatus"));
		l->ready = state && strcmp(state, "ready") == 0;
		if (state && strcmp(state, "error") != 0) {
			if (!l->ready)
				show_base(s, json_object_get(base, "progress"));
			l->wrong_ns = 0;
			return 0;
		}
		patience = ERROR_MS;
		why = json_string_value(json_object_get(base, "message"));
		err_set(err, ERR_INTERNAL, 0, "node cannot make it: %.200s", why ? why : "?");
	}
	l->wrong_ns = l->wrong_ns ?: now;
	return now - l->wrong_ns < patience * NSEC_PER_MSEC ? 0 : -1;
}

int setup_base(struct setup *s, struct setup_said *ret, struct err *err)
{
	uint64_t end = clock_mono_ns() + BASE_MS * NSEC_PER_MSEC;
	struct base_look l = { 0 };
	size_t looks = 0;

	setup_fix(s, "journalctl -u hotcell-node says why; node tries again by itself, and "
		     "hotcell setup goes on from here");
	for (; clock_mono_ns() < end; looks++) {
		if (look_at_base(s, &l, err) < 0)
			return -1;
		if (l.ready || s->cli.dry_run)
			break;
		(void)poll(NULL, 0, SETUP_LOOK_MS);
	}
	*err = (struct err){ 0 };
	if (!l.ready && !s->cli.dry_run)
		return err_set(err, ERR_TIMEOUT, 0, "it is not ready yet");
	setup_said(ret,
		   !l.ready ? SETUP_WOULD
		   : looks  ? SETUP_DONE
			    : SETUP_KEPT,
		   "%s", l.ready ? "the template is ready" : "wait until the template is frozen");
	return 0;
}

/* --- templates of packages ------------------------------------------------------------------ */

struct template_look {
	bool ready;
	char build[ID_SIZE]; /* the newest; "": none */
};

/* Any team may have others of the same names: those of one team are found by them. */
static void look_at_template(const struct setup *s, const char *name, struct template_look *ret)
{
	AUTO(json_decrefp) json_t *all = NULL;
	char shared[CONF_VALUE_MAX];
	const json_t *build;
	const char *status, *id;
	struct err err;

	setup_shared_team(s, shared);
	*ret = (struct template_look){ 0 };
	if (ask_templates(s, &all, &err) < 0)
		return;
	build = json_object_get(find(all, shared, name), "build");
	status = json_string_value(json_object_get(build, "status"));
	id = json_string_value(json_object_get(build, "buildID"));
	ret->ready = status && strcmp(status, "ready") == 0;
	snprintf(ret->build, sizeof(ret->build), "%s", id ? id : "");
}

/* The last thing that the build said. */
static void show_build(struct setup *s, const char *build, size_t *seen)
{
	AUTO(json_decrefp) json_t *lines = json_array(), *now = NULL;
	const char *last;
	struct err err;

	if (!build[0] || build_page(&s->cli, build, *seen, lines, &now, &err) < 0) {
		setup_progress(s, 0, 0, "its image is sent to the images daemon");
		return;
	}
	*seen += json_array_size(lines);
	last = json_string_value(
		json_object_get(json_array_get(lines, json_array_size(lines) - 1), "message"));
	if (last && last[0])
		setup_progress(s, 0, 0, last);
	else if (s->shown[0]) {
		char same[SETUP_WHAT_SIZE]; /* its time goes on */

		snprintf(same, sizeof(same), "%s", s->shown);
		setup_progress(s, 0, 0, same);
	}
}

/* 1: done, or unwanted; 0: it goes on; -1: it will not be. */
static int look_at_service(struct setup *s, const struct packaged *p, uint64_t *restarts,
			   struct unit *u, struct err *err)
{
	if (setup_unit(s, p->unit, u, err) < 0)
		return -1;
	if (u->restarts < *restarts) /* at the first look; or it was set back since */
		*restarts = u->restarts;
	if (u->queued)
		return 0;
	if (u->looked && u->unwanted)
		return 1;
	if (strcmp(u->active, "inactive") == 0 && strcmp(u->result, "success") == 0)
		return u->looked;
	if (strcmp(u->active, "failed") != 0 && u->restarts < *restarts + FAILURES_MAX &&
	    !(unit_waits(u) && u->restarts >= FAILURES_MAX))
		return 0;
	setup_journal(s, p->unit);
	setup_fix(s,
		  "its last lines say why; all else works: Sandbox.create() of `e2b`. It is tried "
		  "again by itself, and by hotcell setup");
	return err_set(err, ERR_INTERNAL, 0, "%s could not be made", p->name);
}

static int wait_for_service(struct setup *s, const struct packaged *p, struct unit *u,
			    struct err *err)
{
	uint64_t end = clock_mono_ns() + (uint64_t)TEMPLATE_MS * NSEC_PER_MSEC;
	uint64_t restarts = UINT64_MAX;
	struct template_look l;
	size_t seen = 0;

	while (clock_mono_ns() < end) {
		int rc = look_at_service(s, p, &restarts, u, err);

		if (rc != 0)
			return rc < 0 ? -1 : 0;
		look_at_template(s, p->name, &l);
		show_build(s, l.build, &seen);
		(void)poll(NULL, 0, SETUP_LOOK_MS);
	}
	setup_fix(s, "systemctl status %s; hotcell setup goes on from here", p->unit);
	return err_set(err, ERR_TIMEOUT, 0, "%s is not ready yet", p->name);
}

/* It was made, for another team. */
static int not_there(struct setup *s, const struct packaged *p, struct err *err)
{
	char shared[CONF_VALUE_MAX];

	setup_shared_team(s, shared);
	setup_fix(s,
		  "node.conf says shared_team = %.64s: if node runs since before that, systemctl "
		  "restart hotcell-node, and hotcell setup again",
		  shared);
	return err_set(err, ERR_INTERNAL, 0, "%s is not there", p->name);
}

/* *ret: how it went; SETUP_SKIPPED where its package is not installed. */
static int make_packaged(struct setup *s, const struct packaged *p, enum setup_state *ret,
			 struct err *err)
{
	const char *start[] = { "start", "--no-block", p->unit, NULL };
	struct template_look l;
	struct unit u;

	look_at_template(s, p->name, &l);
	*ret = SETUP_KEPT;
	if (l.ready)
		return 0;
	*ret = SETUP_WOULD;
	if (s->cli.dry_run)
		return 0;
	if (setup_unit(s, p->unit, &u, err) < 0)
		return -1;
	if (unit_waits(&u)) /* a start may wait as well */
		start[0] = "restart";
	if (setup_systemctl(s, start, err) < 0 || wait_for_service(s, p, &u, err) < 0)
		return -1;
	look_at_template(s, p->name, &l);
	if (!l.ready && !u.unwanted)
		return not_there(s, p, err);
	*ret = l.ready ? SETUP_DONE : SETUP_SKIPPED;
	return 0;
}

static void add_name(char *names, size_t size, const char *name)
{
	size_t n = strlen(names);

	snprintf(names + n, size - n, "%s%s", n ? ", " : "", name);
}

int setup_templates(struct setup *s, struct setup_said *ret, struct err *err)
{
	char ready[SETUP_WHAT_SIZE / 2] = "", missing[SETUP_WHAT_SIZE / 2] = "";
	enum setup_state all = SETUP_SKIPPED, one;

	for (size_t i = 0; i < PACKAGED; i++) {
		if (make_packaged(s, &packaged[i], &one, err) < 0)
			return -1;
		if (one == SETUP_SKIPPED || one == SETUP_WOULD)
			add_name(missing, sizeof(missing), packaged[i].package);
		else
			add_name(ready, sizeof(ready), packaged[i].name);
		if (one == SETUP_WOULD || one == SETUP_DONE || all == SETUP_SKIPPED)
			all = one;
	}
	if (all == SETUP_WOULD)
		setup_said(ret, all,
			   "make the templates of these packages, if they are installed: %s",
			   missing);
	else if (all == SETUP_SKIPPED)
		setup_said(ret, all, "not installed: %s", missing);
	else
		setup_said(ret, all, "ready: %s%s%s", ready, missing[0] ? "; not installed: " : "",
			   missing);
	return 0;
}
