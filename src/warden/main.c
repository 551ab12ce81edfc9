/* main.c - hotcell-warden: the only privileged process of Hotcell.
 *
 * It makes and removes what needs root (namespaces, taps, control groups, jailed processes) at the
 * word of one unprivileged client, in verbs that carry no paths and no strings to parse. It links
 * no parser of outside data, keeps no state but the files it can find again, and may be killed at
 * any instant: VMs run on, and the next warden adopts or removes them.
 */
/* #parses: the first line of `qemu --version`, at start only; from a program of the host */
#include "warden/warden.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/log.h"
#include "warden/adopt.h"
#include "warden/clients.h"
#include "warden/lifecycle.h"
#include "base/folder.h"
#include "jail/oneshot.h"
#include "jail/resources.h"
#include "base/clock.h"
#include "base/kvm_probe.h"
#include "base/open_files.h"
#include "warden/step.h"
#include "warden/tasks.h"

enum { EVENTS_MAX = 64, LOCK_TRIES = 200, LOCK_TRY_MS = 10 };

int warden_watch(struct warden *w, int fd, enum event_kind kind, uint32_t index, struct err *err)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)kind << 32 | index };

	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
		return err_set(err, ERR_INTERNAL, errno, "watch a descriptor");
	return 0;
}

void warden_unwatch(struct warden *w, int fd)
{
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* `QEMU emulator version 10.0.2 (Debian ...)`: all of it, a patched build is another version. */
static int read_version(struct warden *w, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(64 * 1024);
	const char *const argv[] = { w->set[SET_QEMU].text, "--version", NULL };
	const struct oneshot ask = { .argv = argv, .output = &text };
	struct bytes rest, line = { 0 };
	const char *at;

	if (oneshot_run(&ask, err) < 0)
		return err_wrap(err, "install qemu-system-x86 8.2 or newer, or set qemu");
	rest = buf_view(&text);
	if (!bytes_cut(&rest, '\n', &line))
		line = rest;
	line = bytes_head(line, sizeof(w->vmm_version) - 1);
	if (!bytes_to_str(line, w->vmm_version, sizeof(w->vmm_version)) ||
	    !(at = strstr(w->vmm_version, "version ")) || strtod(at + 8, NULL) < 8.2)
		return err_set(err, ERR_INVALID, 0, "%s is no QEMU 8.2 or newer: `%.80s`", argv[0],
			       w->vmm_version);
	return 0;
}

static int choose_accel(struct warden *w, struct err *err)
{
	uint64_t want = w->set[SET_ACCEL].number;
	struct err why = { 0 };

	if (want != ACCEL_TCG && kvm_probe(&why) == 0) {
		w->vmm.accel = VMM_KVM;
		log_info("accelerator: kvm");
		return 0;
	}
	if (want == ACCEL_KVM)
		return err_set(err, why.code, 0, "accel = kvm, and there is none: %s", why.msg);
	if (!w->set[SET_ALLOW_EMULATION].number)
		return err_set(err, ERR_DENIED, 0,
			       "no KVM (%s); set allow_emulation = yes: no security boundary",
			       want == ACCEL_TCG ? "accel = tcg" : why.msg);
	w->vmm.accel = VMM_TCG;
	log_warn("accelerator: software emulation (tcg). NOT A SECURITY BOUNDARY. %s", why.msg);
	return 0;
}

/* An emulated guest sees the host's time stamp counter and cannot tell its rate by itself: without
 * it, the guest's clock does not keep time. */
static void add_tsc_rate(struct warden *w)
{
	size_t n = strlen(w->vmm.cmdline);

	snprintf(w->vmm.cmdline + n, sizeof(w->vmm.cmdline) - n, " tsc_early_khz=%lu",
		 clock_tsc_khz());
}

static int prepare_vmm(struct warden *w, struct err *err)
{
	AUTO(auto_close) int run_dir = -1;

	w->vmm.path = w->set[SET_QEMU].text;
	w->vmm.cpu_model = w->set[SET_CPU_MODEL].text;
	if (choose_accel(w, err) < 0 || read_version(w, err) < 0)
		return -1;
	if (!bytes_to_str(bytes_str(w->set[SET_CMDLINE].text), w->vmm.cmdline,
			  sizeof(w->vmm.cmdline)))
		return err_set(err, ERR_INVALID, 0, "cmdline is too long");
	if (w->vmm.accel == VMM_TCG)
		add_tsc_rate(w);
	/* a longer one would be no place for a socket either */
	snprintf(w->view_at, sizeof(w->view_at), "%.256s/view", w->set[SET_RUN_DIR].text);
	/* open to all who may pass: what is in it says itself who may use it */
	run_dir = folder_ensure(w->set[SET_RUN_DIR].text, 0755, err);
	if (run_dir < 0 ||
	    view_list(&w->view, w->vmm.path, w->set[SET_FIRMWARE_DIRS].text, err) < 0)
		return -1;
	return view_build(&w->view, w->view_at, err);
}

static int open_folders(struct warden *w, struct err *err)
{
	char path[CONFIG_VALUE_MAX + 16];

	snprintf(path, sizeof(path), "%s/vms", w->set[SET_STATE_DIR].text);
	w->vms = folder_ensure(path, 0755, err);
	if (w->vms < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/templates", w->set[SET_STATE_DIR].text);
	w->templates = folder_ensure(path, 0755, err);
	return w->templates < 0 ? -1 : 0;
}

/* One warden for each state folder. No job keeps this descriptor, so the lock ends with warden; a
 * job that was just forked when warden was killed has it for an instant longer. */
static int lock_state(struct warden *w, struct err *err)
{
	int fd = folder_ensure(w->set[SET_STATE_DIR].text, 0755, err), tries = 0;

	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		if (++tries > LOCK_TRIES || poll(NULL, 0, LOCK_TRY_MS) < 0)
			return err_set(err, ERR_EXISTS, errno, "another warden uses %s",
				       w->set[SET_STATE_DIR].text);
	return fd < 0 ? -1 : 0;
}

static int watch_children(struct warden *w, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	w->child_signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->child_signals < 0)
		return err_set(err, ERR_INTERNAL, errno, "make a signalfd");
	return warden_watch(w, w->child_signals, EVENT_CHILD, 0, err);
}

static int adopt(struct warden *w, struct err *err)
{
	if (adopt_all(&w->cells, &w->cgroups, w->vms, err) < 0)
		return -1;
	for (uint32_t i = 0; i < CELLS_MAX; i++) {
		struct cell *c = &w->cells.all[i];

		if (!c->record.id[0])
			continue;
		w->slots[c->record.slot] = (struct slot_place){ SLOT_USED, { c->netns, -1 } };
		if (warden_watch(w, c->pidfd, EVENT_CELL, i, err) < 0)
			return -1;
	}
	return 0;
}

static int set_up(struct warden *w, struct err *err)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		w->clients[i].sock = -1;
	(void)open_files_raise(0); /* two for each VM */
	if (notify_open(&w->notify, err) < 0 || resources_no_core(err) < 0)
		return -1;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0)
		return err_set(err, ERR_INTERNAL, errno, "make an epoll");
	/* first the own mount namespace: only what is opened in it can be mounted from it */
	if (lock_state(w, err) < 0 || prepare_vmm(w, err) < 0 || open_folders(w, err) < 0 ||
	    cgroups_open(&w->cgroups, w->set[SET_CGROUP].text, err) < 0 ||
	    watch_children(w, err) < 0 || adopt(w, err) < 0)
		return -1;
	tasks_sweep(w);
	return clients_listen(w, err);
}

/* Jobs and VMs are told apart by their sockets and pidfds; here they only stop being zombies. */
static void reap(struct warden *w)
{
	struct signalfd_siginfo info;

	while (read(w->child_signals, &info, sizeof(info)) > 0)
		;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void handle(struct warden *w, uint64_t event)
{
	uint32_t index = (uint32_t)event;

	switch ((enum event_kind)(event >> 32)) {
	case EVENT_LISTEN:
		clients_accept(w);
		return;
	case EVENT_CLIENT:
		clients_readable(w, index);
		return;
	case EVENT_TASK:
		tasks_readable(w, index);
		return;
	case EVENT_CELL:
		if (w->cells.all[index].pidfd >= 0)
			lifecycle_exited(w, &w->cells.all[index]);
		return;
	case EVENT_CHILD:
		reap(w);
		return;
	}
	abort();
}

/* How long epoll may wait, of `ms` (-1: for ever), until the service manager is to hear of us. */
static int beat(struct warden *w, int ms)
{
	uint64_t every = w->notify.beat_ms, now = clock_mono_ns();

	if (every == 0)
		return ms;
	if (now >= w->beat_ns) {
		notify_say(&w->notify, "WATCHDOG=1");
		w->beat_ns = now + every * NSEC_PER_MSEC;
	}
	return ms < 0 || (uint64_t)ms > every ? (int)every : ms;
}

static _Noreturn void run(struct warden *w)
{
	notify_say(&w->notify, "READY=1");
	for (;;) {
		struct epoll_event events[EVENTS_MAX];
		int n = epoll_wait(w->epoll, events, EVENTS_MAX, beat(w, tasks_expire(w)));

		for (int i = 0; i < n; i++)
			handle(w, events[i].data.u64);
		if (w->removals_due > 0)
			lifecycle_retry(w);
	}
}

int main(int argc, char **argv)
{
	static struct warden w; /* a few hundred KiB: not for the stack */
	struct err err = { 0 };

	log_init("warden", LOG_INFO);
	if (argc != 2 || strcmp(argv[1], "--help") == 0) {
		printf("usage: hotcell-warden CONFIG\n\n"
		       "The configuration file, with its defaults:\n\n");
		config_print(settings_table, SETTINGS, stdout);
		return argc == 2 ? 0 : 2;
	}
	umask(0);
	if (config_load(settings_table, SETTINGS, argv[1], w.set, &err) < 0) {
		log_error("%s", err.msg);
		return 2;
	}
	step_arm(w.set[SET_DIE_AT].text, getpid());
	if (set_up(&w, &err) < 0) {
		log_error("%s; fix: `hotcell doctor` says what this host lacks", err.msg);
		return 1;
	}
	run(&w);
}
