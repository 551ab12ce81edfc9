/* main.c - hotcell-images: images of registries and archives, and disks made of them.
 *
 * Three kinds of processes. The daemon has the key that opens credentials, and reads node alone.
 * Each image is a job: a process that has one image's credentials, reads what registries say, and
 * starts skopeo and hotcell-unpack, each in a jail of its own. The forkserver between them has
 * nothing and forks. Killed at any instant all jobs end with it, what they had is swept at the next
 * start, and node asks anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "base/read_all.h"
#include "images/control.h"
#include "images/keys.h"
#include "images/nft.h"
#include "images/settings.h"
#include "images/store.h"
#include "images/syscalls.h"
#include "jail/confine.h"
#include "net/signals.h"
#include "net/watchdog.h"
#include "wire/json.h"

enum { FILES_WANTED = 1024, RESOLV_CONF_MAX = 64 * 1024 };

struct program {
	struct loop *loop;
	struct places places;
	struct forkserver forkserver;
	struct watch forkserver_gone;
	struct seal_key *key;
	char agent[IMAGE_DIGEST + 1];
	struct control *control;
	struct signal_end end;
	struct notify notify;
	struct watchdog watchdog;
	int status;
};

/* Without it there are no new jobs, and the old ones are dead with it. */
static void on_forkserver_gone(struct watch *w, unsigned int events)
{
	struct program *p = CONTAINER_OF(w, struct program, forkserver_gone);

	(void)events;
	log_error("the forkserver of jobs ended");
	p->status = 1;
	loop_stop(p->loop);
}

static int begin(struct err *err)
{
	json_object_seed(0); /* before there is no /dev/urandom */
	tzset();             /* OpenSSL asks for the time through it, and would look for its file */
	json_wipe_freed();   /* credentials pass through it */
	return confine_begin(FILES_WANTED, err);
}

/* Without one no disk is made, and whoever wants one is told. */
static void agent_digest(const char *path, char ret[static IMAGE_DIGEST + 1])
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t size;
	struct err err;

	ret[0] = '\0';
	if (fd < 0)
		log_warn("agent = %s: %s", path, strerror(errno));
	else if (store_digest(fd, ret, &size, &err) < 0)
		log_warn("agent = %s: %s", path, err.msg);
}

static int set_up(struct program *p, const struct config_value *set, struct err *err)
{
	const struct confine limits = { .user = set[SET_USER].text, .syscalls = syscalls };

	agent_digest(set[SET_AGENT].text, p->agent);
	if (notify_open(&p->notify, err) < 0 || begin(err) < 0 ||
	    places_make(set, &p->places, err) < 0 ||
	    forkserver_start(&p->forkserver, set, &p->places, err) < 0 ||
	    keys_open(p->places.keys, &p->key, err) < 0 || loop_open(&p->loop, err) < 0 ||
	    watch_open(&p->forkserver_gone, p->loop, p->forkserver.sock, WATCH_HUP,
		       on_forkserver_gone, err) < 0 ||
	    signal_end_open(&p->end, p->loop, err) < 0 ||
	    control_open(&p->control, p->loop,
			 &(struct control_terms){ set, &p->forkserver, p->key, p->agent }, err) < 0)
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
	seal_key_free(p->key);
	signal_end_close(&p->end);
	if (p->loop)
		loop_free(p->loop);
}

/* --- the rules of the host's kernel ----------------------------------------------------------- */

static int print_nft(const struct config_value *set, struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NFT_RULES_MAX);
	AUTO(buf_done) struct buf resolv = BUF_MAX(RESOLV_CONF_MAX);
	AUTO(auto_close) int fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC);
	uid_t uid;

	if (confine_uid(set[SET_USER].text, &uid, err) < 0 ||
	    (fd >= 0 && read_all(fd, &resolv, err) < 0) ||
	    nft_rules(uid, set, buf_view(&resolv), &out, err) < 0)
		return -1;
	if (fwrite(out.ptr, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "print the rules");
	return 0;
}

/* --- main ------------------------------------------------------------------------------------- */

static int help(int status)
{
	printf("usage: hotcell-images CONFIG\n"
	       "       hotcell-images --nft CONFIG   print rules for nft: what its user may not "
	       "reach\n\n"
	       "The configuration file, with its defaults:\n\n");
	config_print(settings_table, SETTINGS, stdout);
	return status;
}

static int serve(struct program *p, const struct config_value *set, struct err *err)
{
	if (set_up(p, set, err) < 0)
		return -1;
	log_info("serving on %s", set[SET_SOCKET].text);
	watchdog_ready(&p->watchdog, p->loop, &p->notify);
	loop_run(p->loop);
	return 0;
}

int main(int argc, char **argv)
{
	bool nft = argc == 3 && strcmp(argv[1], "--nft") == 0;
	struct program p = { .forkserver.sock = -1 };
	struct config_value set[SETTINGS];
	struct err err = { 0 };
	int rc;

	log_init("images", LOG_INFO);
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return help(0);
	if (argc != 2 && !nft)
		return help(2);
	if (config_load(settings_table, SETTINGS, argv[argc - 1], set, &err) < 0) {
		log_error("%s", err.msg);
		return 2;
	}
	rc = nft ? print_nft(set, &err) : serve(&p, set, &err);
	if (rc < 0)
		log_error("%s; fix: `hotcell doctor` says what this host lacks", err.msg);
	tear_down(&p);
	return rc < 0 ? 1 : p.status;
}
