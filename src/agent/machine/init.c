/* init.c - sleeps in sigtimedwait() for ever; there is no timer unless a restart is due.
 *
 * All signals are blocked, so none is lost and no handler exists. If pid 1 ended, the kernel would
 * panic: every failure here is logged and lived with.
 */
#include "agent/machine/init.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/machine/guest.h"
#include "base/clock.h"
#include "base/log.h"

struct init {
	pid_t server;        /* 0: none */
	uint64_t started_ns; /* it, that is */
	uint64_t due_ns;     /* when to start the next one; 0: none is due */
	sigset_t signals;
};

static _Noreturn void exec_server(void)
{
	char name[] = "hotcell-agent", role[] = "--serve", option[] = "--cgroup";
	char cgroup[] = GUEST_USER_CGROUP;
	char *const argv[] = { name, role, option, cgroup, NULL }, *const env[] = { NULL };
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	execve("/proc/self/exe", argv, env);
	execve("/sbin/init", argv, env); /* without /proc */
	log_error("start the server: %s", strerror(errno));
	_exit(EXIT_FAILURE);
}

static void start_server(struct init *in)
{
	pid_t pid = fork();

	if (pid == 0)
		exec_server();
	in->started_ns = clock_mono_ns();
	in->due_ns = pid < 0 ? in->started_ns + INIT_RESTART_MS * NSEC_PER_MSEC : 0;
	in->server = pid < 0 ? 0 : pid;
	if (pid < 0)
		log_error("start the server: %s", strerror(errno));
}

static void on_server_dead(struct init *in, int status)
{
	uint64_t now = clock_mono_ns();
	bool young = now - in->started_ns < INIT_YOUNG_MS * NSEC_PER_MSEC;

	log_error("the server ended (status 0x%x)", (unsigned int)status);
	in->server = 0;
	in->due_ns = now + (young ? INIT_RESTART_MS * NSEC_PER_MSEC : 0);
}

static void reap(struct init *in)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == in->server)
			on_server_dead(in, status);
}

static struct timespec until(uint64_t due_ns)
{
	uint64_t now = clock_mono_ns(), left = due_ns > now ? due_ns - now : 0;

	return (struct timespec){ .tv_sec = (time_t)(left / NSEC_PER_SEC),
				  .tv_nsec = (long)(left % NSEC_PER_SEC) };
}

/* The next signal; 0 when the time came first. due_ns of 0: no time. */
static int wait_signal(const struct init *in, uint64_t due_ns)
{
	struct timespec t = until(due_ns);
	int signo =
		due_ns > 0 ? sigtimedwait(&in->signals, NULL, &t) : sigwaitinfo(&in->signals, NULL);

	return signo > 0 ? signo : 0;
}

static void wait_for_all(struct init *in)
{
	uint64_t due = clock_mono_ns() + INIT_SHUTDOWN_MS * NSEC_PER_MSEC;
	pid_t pid;

	do {
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0)
			return; /* none left */
		(void)wait_signal(in, due);
	} while (clock_mono_ns() < due);
}

/* A microvm has no power button to press: it ends by a reset, which its monitor is told to take
 * for the end. */
static _Noreturn void shut_down(struct init *in)
{
	log_info("shutting down");
	(void)kill(-1, SIGTERM);
	wait_for_all(in);
	(void)kill(-1, SIGKILL);
	sync();
	(void)mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL);
	(void)reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void block_signals(struct init *in)
{
	sigfillset(&in->signals);
	(void)sigprocmask(SIG_SETMASK, &in->signals, NULL);
}

void init_run(void)
{
	struct init in = { 0 };

	block_signals(&in);
	guest_mount();
	guest_tune();
	guest_cgroups();
	guest_network();
	(void)reboot(RB_DISABLE_CAD); /* SIGINT instead */
	in.due_ns = 1;
	for (;;) {
		if (in.due_ns > 0 && clock_mono_ns() >= in.due_ns)
			start_server(&in);
		switch (wait_signal(&in, in.due_ns)) {
		case SIGCHLD:
			reap(&in);
			break;
		case SIGTERM:
		case SIGINT:
		case SIGPWR:
			shut_down(&in);
		default:
			break; /* the time, or a signal that means nothing to us */
		}
	}
}
