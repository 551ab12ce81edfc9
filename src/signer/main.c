/* main.c - hotcell-signer: has the private keys of the certificates that the gateway shows, and
 * signs handshakes with them.
 *
 * The gateway reads what the internet sends, so the keys are not in it. This process reads requests
 * of one fixed form from a unix socket, and nothing else. Killed at any instant, handshakes fail
 * until the next one is there; what is connected goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "base/log.h"
#include "jail/confine.h"
#include "jail/sanitized.h"
#include "net/signals.h"
#include "net/watchdog.h"
#include "signer/control.h"
#include "signer/settings.h"
#include "signer/syscalls.h"

enum { FILES_WANTED = 64, LOCKED_MAX = 256 * 1024 * 1024 };

struct program {
	struct loop *loop;
	struct keyring *keys;
	struct control *control;
	struct signal_end end;
	struct notify notify;
	struct watchdog watchdog;
};

/* What it holds is written to no disk. Pages are locked when they are first used: what was only
 * reserved costs nothing. Without the room it would have no memory as soon as it is not root. */
static void stay_in_memory(void)
{
	const struct rlimit room = { LOCKED_MAX, LOCKED_MAX };

	if (SANITIZED) /* it reserves terabytes */
		return;
	if (setrlimit(RLIMIT_MEMLOCK, &room) < 0 ||
	    mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0)
		log_info("its memory may be swapped out: %s", strerror(errno));
}

static int open_folder(const char *path, struct err *err)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open tls_dir = %s", path);
	return dir;
}

/* The keys are read after it is confined, as the user that they belong to. */
static int set_up(struct program *p, const struct config_value *set, struct err *err)
{
	const struct confine_path paths[] = { { set[SET_TLS_DIR].text, CONFINE_READ } };
	const struct confine limits = { set[SET_USER].text, paths, COUNT(paths), syscalls };
	AUTO(auto_close) int dir = -1;

	tzset(); /* OpenSSL asks for the time through it, and would look for its file */
	if (notify_open(&p->notify, err) < 0 || confine_begin(FILES_WANTED, err) < 0)
		return -1;
	stay_in_memory();
	dir = open_folder(set[SET_TLS_DIR].text, err);
	if (dir < 0 || loop_open(&p->loop, err) < 0 || signal_end_open(&p->end, p->loop, err) < 0 ||
	    control_open(&p->control, p->loop, set[SET_SOCKET].text,
			 (uid_t)set[SET_GATEWAY_UID].number, err) < 0 ||
	    confine(&limits, err) < 0 || keyring_open(&p->keys, p->loop, take_fd(&dir), err) < 0)
		return -1;
	control_serve(p->control, p->keys);
	return 0;
}

static void tear_down(struct program *p)
{
	watchdog_stop(&p->watchdog);
	notify_close(&p->notify);
	control_close(p->control);
	keyring_close(p->keys);
	signal_end_close(&p->end);
	if (p->loop)
		loop_free(p->loop);
}

int main(int argc, char **argv)
{
	struct config_value set[SETTINGS];
	struct program p = { 0 };
	struct err err = { 0 };
	int status = 0;

	log_init("signer", LOG_INFO);
	if (argc != 2 || strcmp(argv[1], "--help") == 0) {
		printf("usage: hotcell-signer CONFIG\n\n"
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
		status = 1;
	} else {
		log_info("serving on %s, %zu keys", set[SET_SOCKET].text, keyring_count(p.keys));
		watchdog_ready(&p.watchdog, p.loop, &p.notify);
		loop_run(p.loop);
	}
	tear_down(&p);
	return status;
}
