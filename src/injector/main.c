/* main.c - hotcell-injector: keeps the keys of an installation, and has workers for the sandboxes
 * whose requests are to carry something.
 *
 * Three kinds of processes: the injector has the keys and reads nothing of a guest; a worker reads
 * guests and servers and has what its one sandbox needs; the forkserver between them has nothing
 * and forks. None of them makes a connection. Killed at any instant, all workers end with it, their
 * connections are cut, and node asks the next injector anew.
 */
#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "jail/confine.h"
#include "net/signals.h"
#include "net/watchdog.h"
#include "injector/control.h"
#include "injector/settings.h"
#include "injector/syscalls.h"
#include "wire/json.h"

enum { FILES_WANTED = 16 * 1024 }; /* two for each worker; two for each connection of one */

struct program {
	struct loop *loop;
	struct forkserver forkserver;
	struct watch forkserver_gone;
	struct keys keys;
	struct control *control;
	struct signal_end end;
	struct notify notify;
	struct watchdog watchdog;
	int status;
};

/* Without it there are no new workers, and the old ones are dead with it. */
static void on_forkserver_gone(struct watch *w, unsigned int events)
{
	struct program *p = CONTAINER_OF(w, struct program, forkserver_gone);

	(void)events;
	log_error("the forkserver of workers ended");
	p->status = 1;
	loop_stop(p->loop);
}

static int begin(struct err *err)
{
	json_object_seed(0); /* before there is no /dev/urandom */
	tzset();             /* OpenSSL asks for the time through it, and would look for its file */
	json_wipe_freed();   /* values of secrets pass through it */
	return confine_begin(FILES_WANTED, err);
}

static int set_up(struct program *p, const struct config_value *set, struct err *err)
{
	const struct forkserver_terms terms = { set[SET_USER].text, set[SET_EXTRA_CA].text };
	const struct confine limits = { .user = set[SET_USER].text, .syscalls = syscalls };

	if (notify_open(&p->notify, err) < 0 || begin(err) < 0 ||
	    forkserver_start(&p->forkserver, &terms, err) < 0 ||
	    confine_folder(set[SET_STATE_DIR].text, set[SET_USER].text, err) < 0 ||
	    keys_open(set[SET_STATE_DIR].text, &p->keys, err) < 0 || loop_open(&p->loop, err) < 0 ||
	    watch_open(&p->forkserver_gone, p->loop, p->forkserver.sock, WATCH_READ,
		       on_forkserver_gone, err) < 0 ||
	    signal_end_open(&p->end, p->loop, err) < 0 ||
	    control_open(&p->control, p->loop, &p->keys, &p->forkserver, set[SET_SOCKET].text,
			 (uid_t)set[SET_NODE_UID].number, err) < 0)
		return -1;
	return confine(&limits, err);
}

static void tear_down(struct program *p)
{
	watchdog_stop(&p->watchdog);
	notify_close(&p->notify);
	control_close(p->control);
	watch_close(&p->forkserver_gone);
	forkserver_end(&p->forkserver);
	keys_done(&p->keys);
	signal_end_close(&p->end);
	if (p->loop)
		loop_free(p->loop);
}

int main(int argc, char **argv)
{
	struct config_value set[SETTINGS];
	struct program p = { .forkserver.sock = -1 };
	struct err err = { 0 };

	log_init("injector", LOG_INFO);
	if (argc != 2 || strcmp(argv[1], "--help") == 0) {
		printf("usage: hotcell-injector CONFIG\n\n"
		       "The configuration file, with its defaults:\n\n");
		config_print(settings_table, SETTINGS, stdout);
		return argc == 2 ? 0 : 2;
	}
	if (config_load(settings_table, SETTINGS, argv[1], set, &err) < 0) {
		log_error("%s", err.msg);
		return 2;
	}
	if (set_up(&p, set, &err) < 0) {
		log_error("%s; fix: `hotcell doctor` says what this host lacks", err.msg);
		p.status = 1;
	} else {
		log_info("serving on %s", set[SET_SOCKET].text);
		watchdog_ready(&p.watchdog, p.loop, &p.notify);
		loop_run(p.loop);
	}
	tear_down(&p);
	return p.status;
}
