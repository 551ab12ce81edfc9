/* agent.c - which of the two roles; and that of the server: one loop, one listener, until it is
 * told to stop. */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "agent/filesystem/watchers.h"
#include "agent/machine/files_small.h"
#include "agent/machine/init.h"
#include "agent/route.h"
#include "base/log.h"
#include "base/open_files.h"

enum { AGENT_UMASK = 022 };

/* Idle connections may have been opened before a snapshot by a host that is long gone. All times
 * are monotonic and only ever close something, so a clock that jumps does no harm. */
static const struct http_limits limits = HTTP_LIMITS;

static void on_accept(struct doors *d, struct stream *s)
{
	struct agent *a = CONTAINER_OF(d, struct agent, doors);
	struct err err;

	if (http_server_add(&a->http, s, NULL, &err) < 0)
		log_warn("%s", err.msg);
}

static void on_term(struct signal_watch *w)
{
	loop_stop(CONTAINER_OF(w, struct agent, term)->loop);
}

static void on_interrupt(struct signal_watch *w)
{
	loop_stop(CONTAINER_OF(w, struct agent, interrupt)->loop);
}

static int load_session(struct agent *a, struct err *err)
{
	char path[IDENTITY_PATH_MAX];

	if (session_init(&a->session, a->options->user, err) < 0)
		return -1;
	identity_session_path(&a->place, path);
	return session_load(&a->session, path, err);
}

/* Without it uploads lie beside their targets, which is nearly as good. */
static void open_staging(struct agent *a)
{
	char path[IDENTITY_PATH_MAX];
	struct err err;

	snprintf(path, sizeof(path), "%s/var/lib/hotcell", a->place.root);
	if (dir_settle(path, 0700, &err) == 0)
		a->staging = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	else
		log_warn("%s", err.msg);
}

static int open_agent(struct agent *a, struct err *err)
{
	static const struct http_server_ops ops = { route };

	json_object_seed(0);
	if (load_session(a, err) < 0 || identity_prepare(&a->place, err) < 0 ||
	    loop_open(&a->loop, err) < 0)
		return -1;
	open_staging(a);
	processes_init(&a->processes, a->loop);
	http_server_init(&a->http, a->loop, &ops, &limits);
	if (a->options->cgroup && cgroup_open(&a->cgroup, a->options->cgroup, err) < 0)
		return -1;
	if (signal_open(&a->term, a->loop, SIGTERM, on_term, err) < 0 ||
	    signal_open(&a->interrupt, a->loop, SIGINT, on_interrupt, err) < 0)
		return -1;
	command_groups_init(&a->groups, a->cgroup.dir);
	a->doors.on_accept = on_accept;
	return doors_open(&a->doors, a->loop, a->options->listen, a->options->port, err);
}

static void close_agent(struct agent *a)
{
	if (a->loop) {
		doors_close(&a->doors);
		http_server_done(&a->http);
		tunnels_done(&a->tunnels);
		processes_done(&a->processes);
		watchers_done(&a->watchers);
		signal_close(&a->term);
		signal_close(&a->interrupt);
		loop_free(a->loop);
	}
	command_groups_done(&a->groups);
	cgroup_close(&a->cgroup);
	auto_close(&a->staging);
	session_done(&a->session);
}

static void say_ready(const struct agent *a)
{
	printf("ready %u\n", doors_port(&a->doors));
	fflush(stdout);
}

/* Serve until SIGTERM or SIGINT. Returns an exit status. */
static int serve(const struct agent_options *o, const struct identity_effects *effects)
{
	struct agent a = {
		.options = o,
		.place = { o->root, effects },
		.cgroup = { .dir = -1 },
		.staging = -1,
	};
	struct err err;
	int rc = EXIT_FAILURE;

	command_groups_init(&a.groups, -1);
	(void)open_files_raise(0); /* programs get a lower limit */
	if (open_agent(&a, &err) < 0) {
		log_error("%s", err.msg);
	} else {
		if (o->port == 0)
			say_ready(&a);
		loop_run(a.loop);
		rc = EXIT_SUCCESS;
	}
	close_agent(&a);
	return rc;
}

/* Whatever our parent ignored: programs we start shall not inherit it. */
static void reset_signals(void)
{
	for (int signo = 1; signo < NSIG; signo++)
		(void)signal(signo, SIG_DFL); /* fails for SIGKILL and the like */
}

int agent_main(int argc, char **argv, const struct identity_effects *effects)
{
	struct agent_options o;
	struct err err;

	log_init("agent", LOG_INFO);
	(void)umask(AGENT_UMASK);
	reset_signals();
	if (options_parse(argc, argv, getpid() == 1, &o, &err) < 0) {
		log_error("%s", err.msg);
		return EXIT_FAILURE;
	}
	if (o.help) {
		fputs(options_help, stdout);
		return EXIT_SUCCESS;
	}
	if (o.init)
		init_run();
	return serve(&o, effects);
}

int agent_account(const struct agent *a, struct bytes name, struct account *ret, struct err *err)
{
	char dir[IDENTITY_PATH_MAX];

	if (snprintf(dir, sizeof(dir), "%s/etc", a->place.root) >= (int)sizeof(dir))
		return err_set(err, ERR_INVALID, ENAMETOOLONG, "%s", a->place.root);
	if (name.len == 0)
		name = bytes_str(a->session.default_user);
	return account_find(dir, name, ret, err);
}
