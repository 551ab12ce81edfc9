/* main.c - hotcell-node: the unprivileged owner of this host's sandboxes.
 *
 * It may be killed at any instant: VMs run on, and the next node goes on from the journal. Asked to
 * end, it ends what belongs to nobody, and leaves the rest running.
 */
/* #syscalls: openat flock */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/list.h"
#include "jail/confine.h"
#include "net/signals.h"
#include "net/watchdog.h"
#include "node/recovery/adopt.h"
#include "node/build/builds.h"
#include "node/template/base_find.h"
#include "node/life/fork.h"
#include "node/node.h"
#include "node/journal/rebuild.h"
#include "node/life/end.h"
#include "node/life/requests.h"
#include "node/life/snapshot_take.h"
#include "node/life/step.h"
#include "node/syscalls.h"
#include "node/template/base_trust.h"

struct daemon {
	struct node node;
	struct signal_watch term, interrupt;
	struct timer stop;
	uint64_t stop_at_ms;
	struct notify notify;
	struct watchdog watchdog;
	int lock; /* on data_dir, whatever becomes of the journal in it */
};

enum {
	STOP_LOOK_MS = 20,
	FILES_WANTED = 16 * 1024, /* gateways' sockets, monitors, agents: several a sandbox */
};

/* --- links -------------------------------------------------------------------------------- */

static void on_warden_up(struct warden_client *k)
{
	struct node *n = node_of_warden(k);

	base_warden_up(n);
	reconcile_now(n);
	slots_links_changed(&n->slots);
	refreezes_soon(n);
	creates_soon(n);
}

static void on_warden_down(struct warden_client *k)
{
	slots_warden_down(&node_of_warden(k)->slots);
}

static void on_egress_up(struct link *k)
{
	struct node *n = CONTAINER_OF(k, struct node, egress);

	refreezes_soon(n);
	slots_links_changed(&n->slots);
	creates_soon(n);
}

static void on_egress_down(struct link *k)
{
	slots_egress_down(&CONTAINER_OF(k, struct node, egress)->slots);
}

static void on_authority(struct injector_client *k, struct bytes pem)
{
	base_trust_learn(CONTAINER_OF(k, struct node, injector), pem);
}

/* --- the end ------------------------------------------------------------------------------ */

/* A VM that is still to be removed is the next node's. */
static bool only_running_left(const struct node *n)
{
	const size_t *in = n->table.in_state;

	return n->table.n == in[SANDBOX_RUNNING] + in[SANDBOX_PAUSED] + in[SANDBOX_PARKING];
}

static void on_stop_look(struct timer *t)
{
	struct daemon *d = CONTAINER_OF(t, struct daemon, stop);

	if (only_running_left(&d->node) || loop_now_ms(d->node.loop) >= d->stop_at_ms)
		loop_stop(d->node.loop);
	else
		timer_start(t, STOP_LOOK_MS);
}

static void end_unowned(struct node *n)
{
	list_each(struct sandbox, s, n->table.all)
		if ((s->state < SANDBOX_NAMING && !s->resuming) ||
		    ((s->info.flags & NODE_BUILDER) && s->state != SANDBOX_ENDING))
			sandbox_end(s, NODE_EVICTED, "node is being stopped");
}

static void stop(struct daemon *d)
{
	struct node *n = &d->node;
	struct err err;

	if (n->stopping) {
		loop_stop(n->loop);
		return;
	}
	log_info("stopping; %zu sandboxes run on", n->table.in_state[SANDBOX_RUNNING]);
	n->stopping = true;
	builds_close(n); /* the next node says that they ended */
	err_set(&err, ERR_UNAVAILABLE, 0, "node is being stopped");
	creates_refuse_all(n, &err);
	end_unowned(n);
	d->stop_at_ms = loop_now_ms(n->loop) + NODE_STOP_MS;
	timer_init(&d->stop, n->loop, on_stop_look);
	timer_start(&d->stop, STOP_LOOK_MS);
}

static void on_term(struct signal_watch *w)
{
	stop(CONTAINER_OF(w, struct daemon, term));
}

static void on_interrupt(struct signal_watch *w)
{
	stop(CONTAINER_OF(w, struct daemon, interrupt));
}

/* --- the beginning ------------------------------------------------------------------------ */

/* A journal may be moved away while its node runs. */
static int lock_data(struct daemon *d, struct err *err)
{
	const char *path = d->node.set[SET_DATA_DIR].text;

	d->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->lock < 0)
		return err_set(err, ERR_DENIED, errno, "open %s", path);
	if (flock(d->lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_EXISTS, errno, "another node uses %s", path);
	return 0;
}

static int open_journal(struct node *n, struct err *err)
{
	struct rebuild_folders f = { files_root(n->files), files_snapshots(n->files), -1, -1 };
	char path[CONFIG_VALUE_MAX + 16];

	snprintf(path, sizeof(path), "%s/journal.db", n->set[SET_DATA_DIR].text);
	if (rebuild_check_wal(path, err) < 0 || journal_open(n->loop, path, &n->journal, err) < 0 ||
	    installation_open(&n->installation, n->journal, n->set[SET_DATA_DIR].text, err) < 0 ||
	    journal_describe(n->journal, f.sandboxes, f.snapshots, err) < 0 ||
	    catalog_open(n, err) < 0)
		return -1;
	f.templates = n->catalog.rows_dir;
	f.builds = n->catalog.builds_dir;
	n->warden.installation = n->installation.id;
	if (journal_describe_catalog(n->journal, f.templates, f.builds, err) < 0)
		return -1;
	return rebuild_new(n->journal, &f, err);
}

static int open_files(struct node *n, struct err *err)
{
	return files_open(n->loop, n->set[SET_DATA_DIR].text, n->set[SET_STATE_DIR].text,
			  n->set[SET_DISK_RESERVE_MIB].number, &n->files, err);
}

static int open_door(struct node *n, struct err *err)
{
	return door_open(n->loop, n->set[SET_SOCKET].text, (uid_t)n->set[SET_GATEWAY_UID].number,
			 (gid_t)n->set[SET_GATEWAY_GID].number, &n->door_user, &n->door, err);
}

static void open_parts(struct node *n)
{
	static const struct warden_client_ops warden_ops = { on_warden_up, on_warden_down };
	static const struct link_ops egress_ops = { .on_hello = egress_on_hello,
						    .on_up = on_egress_up,
						    .on_down = on_egress_down };
	static const struct injector_client_ops injector_ops = { network_injector_up,
								 network_worker_gone,
								 on_authority };

	n->sizes = (struct warden_sizes){
		.vcpus = (uint32_t)n->set[SET_VCPUS].number,
		.memory_mib = (uint32_t)n->set[SET_MEMORY_MIB].number,
		.overhead_mib = (uint32_t)n->set[SET_OVERHEAD_MIB].number,
		.cpu_percent = (uint32_t)n->set[SET_CPU_PERCENT].number,
		.pids_max = NODE_PIDS_MAX,
	};
	warden_client_open(&n->warden, n->loop, n->set[SET_WARDEN_SOCKET].text, &n->sizes,
			   &warden_ops);
	link_open(&n->egress, n->loop, n->set[SET_EGRESS_SOCKET].text, &egress_words, &egress_ops);
	injector_client_open(&n->injector, n->loop, n->set[SET_INJECTOR_SOCKET].text,
			     &injector_ops);
	images_client_open(&n->images, n->loop, n->set[SET_IMAGES_SOCKET].text);
	builds_open(n);
	refreezes_open(n);
	tidy_open(n);
	slots_open(&n->slots, n->loop, &n->warden, &n->egress, n->set[SET_SLOTS].number);
	n->slots.on_reopened = network_reopened;
	creates_open(n);
	n->base.trust.awaited = link_exists(&n->injector.link);
	base_open(n);
	grounds_open(n);
	template_use_open(n);
	reconcile_open(n);
	ended_open(n);
	vm_groups_open(&n->groups, n->set[SET_CGROUP].text);
	metrics_open(n);
	turns_open(&n->saves, n->loop, n->set[SET_SAVES_MAX].number);
	turns_open(&n->joins, n->loop, n->set[SET_SAVES_MAX].number);
	turns_open(&n->resumes, n->loop, n->set[SET_STARTS_MAX].number);
	requests_open(n);
}

static int give_up_power(const struct node *n, struct err *err)
{
	struct confine_path paths[2 + VM_GROUP_FOLDERS_MAX] = {
		{ n->set[SET_DATA_DIR].text, CONFINE_WRITE },
		{ n->set[SET_STATE_DIR].text, CONFINE_READ },
	};
	size_t n_paths = 2 + vm_groups_folders(&n->groups, paths + 2);
	const struct confine c = { n->set[SET_USER].text, paths, n_paths, syscalls };

	return confine(&c, err);
}

static int set_up(struct daemon *d, struct err *err)
{
	struct node *n = &d->node;

	json_object_seed(0);
	process_use_open(&n->figures.process);
	if (notify_open(&d->notify, err) < 0 || confine_begin(FILES_WANTED, err) < 0 ||
	    loop_open(&n->loop, err) < 0 ||
	    signal_open(&d->term, n->loop, SIGTERM, on_term, err) < 0 ||
	    signal_open(&d->interrupt, n->loop, SIGINT, on_interrupt, err) < 0 ||
	    addr_ip(AGENT_ADDRESS, AGENT_PORT, &n->agent, err) < 0 ||
	    memory_watch_open(&n->memory, n->loop, n->set[SET_MEMORY_RESERVE_MIB].number, err) < 0)
		return -1;
	open_parts(n);
	installation_boot(&n->installation);
	if (confine_folder(n->set[SET_DATA_DIR].text, n->set[SET_USER].text, err) < 0 ||
	    open_door(n, err) < 0 || give_up_power(n, err) < 0 || lock_data(d, err) < 0 ||
	    open_files(n, err) < 0 || open_journal(n, err) < 0)
		return -1;
	base_bind_rows(n);
	if (adopt_journal(n, err) < 0 || uploads_load(n, err) < 0 || sweep_open(n, err) < 0)
		return -1;
	ended_begin(n);
	log_info("%zu sandboxes in the journal", n->table.n);
	return 0;
}

static void take_down(struct daemon *d)
{
	struct node *n = &d->node;

	watchdog_stop(&d->watchdog);
	notify_close(&d->notify);
	timer_stop(&d->stop);
	signal_close(&d->term);
	signal_close(&d->interrupt);
	n->snapshots.closed = true;
	door_close(TAKE(n->door));
	requests_close(n);
	refreezes_close(n);
	builds_close(n);
	creates_close(n);
	template_use_close(n);
	grounds_close(n);
	base_close(n);
	reconcile_close(n);
	installation_close(&n->installation);
	ended_close(n);
	metrics_close(n);
	figures_close(n);
	idempotency_close(n);
	tidy_close(n);
	while (n->table.all)
		sandbox_free(n->table.all);
	quarantine_close(n);
	takings_close(n);
	forks_close(n);
	sweep_close(n);
	catalog_close(n);
	uploads_close(n);
	snapshots_close(n);
	files_close(TAKE(n->files));
	turns_close(&n->saves);
	turns_close(&n->joins);
	turns_close(&n->resumes);
	slots_close(&n->slots);
	memory_watch_close(&n->memory);
	link_close(&n->egress);
	injector_client_close(&n->injector);
	images_client_close(&n->images);
	warden_client_close(&n->warden);
	journal_close(TAKE(n->journal));
	loop_free(n->loop);
}

/* As the daemon would, with no more power. */
static int rebuild(struct daemon *d)
{
	const struct config_value *set = d->node.set;
	struct err err = { 0 };

	if (confine_begin(FILES_WANTED, &err) < 0 ||
	    confine_folder(set[SET_DATA_DIR].text, set[SET_USER].text, &err) < 0 ||
	    give_up_power(&d->node, &err) < 0 || lock_data(d, &err) < 0) {
		log_error("%s", err.msg);
		return 1;
	}
	return rebuild_run(set[SET_DATA_DIR].text);
}

static int usage(int status)
{
	printf("usage: hotcell-node [--rebuild] CONFIG\n"
	       "       hotcell-node --metrics   NAME, KIND, LABELS and HELP of each, one per "
	       "line\n\n"
	       "--rebuild makes a journal from what is saved, while no node runs: paused "
	       "sandboxes\n"
	       "and snapshots are there again. Exit status 0: all of them; 3: but for those it\n"
	       "names; 1: nothing was done.\n\n"
	       "The configuration file, with its defaults:\n\n");
	config_print(settings_table, SETTINGS, stdout);
	return status;
}

int main(int argc, char **argv)
{
	static struct daemon d = { .lock = -1 };
	bool rebuilds = argc == 3 && strcmp(argv[1], "--rebuild") == 0;
	struct err err = { 0 };

	log_init("node", LOG_INFO);
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return usage(0);
	if (argc == 2 && strcmp(argv[1], "--metrics") == 0) {
		figures_print();
		return 0;
	}
	if (argc != 2 && !rebuilds)
		return usage(2);
	umask(077);
	if (config_load(settings_table, SETTINGS, argv[argc - 1], d.node.set, &err) < 0 ||
	    settings_check(d.node.set, &err) < 0) {
		log_error("%s", err.msg);
		return 2;
	}
	if (rebuilds)
		return rebuild(&d);
	step_arm(d.node.set[SET_DIE_AT].text);
	if (set_up(&d, &err) < 0) {
		log_error("%s; fix: `hotcell doctor` says what this host lacks", err.msg);
		return 1;
	}
	watchdog_ready(&d.watchdog, d.node.loop, &d.notify);
	loop_run(d.node.loop);
	take_down(&d);
	return 0;
}
