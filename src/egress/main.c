/* main.c - hotcell-egress: what leaves a sandbox, which today is nothing.
 *
 * It holds the two doors inside each sandbox's network namespace, refuses whoever comes, and counts
 * them. It owns no state: killed at any instant, the sandboxes' kernels are told that nobody
 * listens, and node hands the doors to the next egress.
 */
#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "egress/control.h"
#include "egress/settings.h"
#include "egress/syscalls.h"
#include "jail/confine.h"
#include "net/signals.h"

enum { FILES_WANTED = 8 * 1024 }; /* two for each sandbox */

struct program {
	struct loop *loop;
	struct control *control;
	struct signal_watch term, interrupt;
};

static void end(struct program *p)
{
	log_info("ends");
	loop_stop(p->loop);
}

static void on_term(struct signal_watch *w)
{
	end(CONTAINER_OF(w, struct program, term));
}

static void on_interrupt(struct signal_watch *w)
{
	end(CONTAINER_OF(w, struct program, interrupt));
}

static int set_up(struct program *p, const struct config_value *set, struct err *err)
{
	const struct confine limits = { .user = set[SET_USER].text, .syscalls = syscalls };

	if (confine_begin(FILES_WANTED, err) < 0 || loop_open(&p->loop, err) < 0 ||
	    signal_open(&p->term, p->loop, SIGTERM, on_term, err) < 0 ||
	    signal_open(&p->interrupt, p->loop, SIGINT, on_interrupt, err) < 0 ||
	    control_open(&p->control, p->loop, set[SET_SOCKET].text,
			 (uid_t)set[SET_NODE_UID].number, err) < 0)
		return -1;
	return confine(&limits, err);
}

static void tear_down(struct program *p)
{
	control_close(p->control);
	signal_close(&p->term);
	signal_close(&p->interrupt);
	loop_free(p->loop);
}

int main(int argc, char **argv)
{
	struct config_value set[SETTINGS];
	struct program p = { 0 };
	struct err err = { 0 };
	int status = 1;

	log_init("egress", LOG_INFO);
	if (argc != 2 || strcmp(argv[1], "--help") == 0) {
		printf("usage: hotcell-egress CONFIG\n\n"
		       "The configuration file, with its defaults:\n\n");
		config_print(settings_table, SETTINGS, stdout);
		return argc == 2 ? 0 : 2;
	}
	if (config_load(settings_table, SETTINGS, argv[1], set, &err) < 0) {
		log_error("%s", err.msg);
		return 2;
	}
	if (set_up(&p, set, &err) < 0) {
		log_error("%s", err.msg);
	} else {
		log_info("serving on %s", set[SET_SOCKET].text);
		loop_run(p.loop);
		status = 0;
	}
	tear_down(&p);
	return status;
}
