/* setup.c - `hotcell setup`: one step after the other, from an installed host to a first sandbox.
 */
#include "cli/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/wipe.h"
#include "cli/say.h"

static const struct {
	const char *name;
	int (*run)(struct setup *s, struct setup_said *ret, struct err *err);
} steps[] = {
	{ "host", setup_host },
	{ "certificate", setup_certificate }, /* what it refuses changes no setting */
	{ "settings", setup_settings },
	{ "daemons", setup_daemons },
	{ "base", setup_base },
	{ "templates", setup_templates },
	{ "team", setup_team },
	{ "names", setup_names },
};

void setup_at(const struct setup *s, const char *step)
{
#if HOTCELL_FAULTS
	if (s->cli.die_at && strcmp(s->cli.die_at, step) == 0)
		raise(SIGKILL);
#else
	(void)s, (void)step;
#endif
}

static int run_step(struct setup *s, size_t i, struct err *err)
{
	struct setup_said said = { 0 };

	setup_begin(s, steps[i].name);
	setup_fix(s, "hotcell doctor says what is wrong; then run hotcell setup again");
	if (steps[i].run(s, &said, err) < 0) {
		setup_said(&said, SETUP_FAILED, "%s", err->msg);
		setup_line(s, &said, s->fix);
		return -1;
	}
	setup_line(s, &said, said.fix);
	setup_at(s, steps[i].name);
	return 0;
}

/* One at a time: two would ask for the same port, team and files. */
static int lock(const struct setup *s, int *ret, struct err *err)
{
	*ret = open(s->cli.conf_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "Hotcell is not installed here: %.200s",
			       s->cli.conf_dir);
	if (flock(*ret, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_EXISTS, 0, "another hotcell setup runs");
	return 0;
}

static int before(struct setup *s, int *ret_lock, struct err *err)
{
	struct conf gateway;

	setup_fix(s, "run it as root: sudo hotcell setup");
	if (geteuid() != 0)
		return err_set(err, ERR_DENIED, 0, "it changes /etc/hotcell and starts daemons");
	setup_fix(s, "install it first (docs/operations.md, Install); if another one runs, wait");
	if (lock(s, ret_lock, err) < 0)
		return -1;
	conf_read_daemon(&gateway, s->cli.conf_dir, "gateway");
	if (!gateway.there)
		return err_set(err, ERR_NOT_FOUND, 0,
			       "there is no %.200s/gateway.conf that is no link", s->cli.conf_dir);
	return 0;
}

/* An error that no step has said. */
static int refuse(struct setup *s, struct err *err)
{
	err_wrap(err, "setup");
	return cli_fail_fix(&s->cli, err, s->fix);
}

static int run_all(struct setup *s)
{
	struct err err = { 0 };

	for (size_t i = 0; i < COUNT(steps); i++) {
		/* questions come when it is known whether this host will do */
		if (i == 1 && setup_plan(s, &err) < 0)
			return refuse(s, &err);
		if (run_step(s, i, &err) == 0)
			continue;
		if (s->cli.json)
			(void)!setup_end(s);
		return err.code == ERR_UNAVAILABLE || err.code == ERR_TIMEOUT ? CLI_UNREACHABLE
									      : CLI_FAILED;
	}
	return setup_end(s);
}

int setup_run(struct cli *c)
{
	AUTO(auto_close) int held = -1;
	struct setup s = { .cli = *c, .steps = json_array(), .journal = json_array() };
	struct err err = { 0 };
	int status;

	json_wipe_freed(); /* a key goes through it */
	umask(022);
	s.cli.before = true; /* of what doctor looks at */
	s.asks =
		!c->yes && !c->json && !c->dry_run && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
	status = before(&s, &held, &err) < 0 ? refuse(&s, &err) : run_all(&s);
	json_decref(s.steps);
	json_decref(s.journal);
	wipe(s.key, sizeof(s.key));
	return status;
}
