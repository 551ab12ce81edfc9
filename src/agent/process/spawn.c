/* spawn.c - clone3 into the cgroup, then a fixed list of steps up to exec.
 *
 * Between clone and exec only system calls are made: the child is a copy of a program that may
 * have been in the middle of anything.
 */
#include "agent/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { NEWS_FD = 3, PATH_DIRS_MAX = 64, EXIT_NOT_STARTED = 127 };

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

enum step { STEP_SESSION, STEP_OOM, STEP_STDIO, STEP_TERMINAL, STEP_IDS, STEP_CWD, STEP_EXEC };

struct fault { /* what travels through the pipe */
	int step, sys;
};

/* --- in the new process ------------------------------------------------------------------- */

/* CLONE_CLEAR_SIGHAND has removed the handlers. What is ignored stays so, even through exec, and
 * that is SIGPIPE alone: agent_main() saw to the others. */
static void reset_signals(void)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;

	(void)sigaction(SIGPIPE, &plain, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The agent is the last the kernel shall kill when memory runs out; its children are not. */
static int reset_oom(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	/* a tester's own process may be higher already, and then may not go down */
	if (write(fd, "0", 1) != 1 && errno != EACCES)
		return -1;
	return close(fd);
}

static int arrange_stdio(const int fd[3], int *news)
{
	for (int i = 0; i < 3; i++)
		if (dup2(fd[i], i) < 0)
			return -1;
	if (*news != NEWS_FD && dup3(*news, NEWS_FD, O_CLOEXEC) < 0)
		return -1;
	*news = NEWS_FD;
	return close_range(NEWS_FD + 1, ~0u, 0);
}

static void set_limits(void)
{
	struct rlimit n;

	if (getrlimit(RLIMIT_NOFILE, &n) < 0)
		return;
	n.rlim_cur = n.rlim_max < SPAWN_NOFILE ? n.rlim_max : SPAWN_NOFILE;
	(void)setrlimit(RLIMIT_NOFILE, &n);
	(void)umask(SPAWN_UMASK);
}

/* The plain system calls: the library's would want to tell threads that do not exist here. */
static int become(const struct account *who)
{
	if (geteuid() != 0 && who->uid == geteuid()) /* in tests: already who we can be */
		return 0;
	if (syscall(SYS_setgroups, who->n_groups, who->groups) < 0 ||
	    syscall(SYS_setresgid, who->gid, who->gid, who->gid) < 0)
		return -1;
	return (int)syscall(SYS_setresuid, who->uid, who->uid, who->uid);
}

/* errno: the most telling of all attempts, as shells have it. */
static void try_exec(const struct spawn_order *o, const struct strings *paths)
{
	int sys = ENOENT;

	for (size_t i = 0; i < paths->n; i++) {
		execve(paths->v[i], o->argv->v, o->env->v);
		if (errno != ENOENT && errno != ENOTDIR)
			sys = errno;
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
			break;
	}
	errno = sys;
}

static enum step run_steps(const struct spawn_order *o, const struct strings *paths, int *news)
{
	if (setsid() < 0)
		return STEP_SESSION;
	reset_signals();
	if (reset_oom() < 0)
		return STEP_OOM;
	if (arrange_stdio(o->fd, news) < 0)
		return STEP_STDIO;
	if (o->has_terminal && ioctl(0, TIOCSCTTY, 0) < 0)
		return STEP_TERMINAL;
	set_limits();
	if (become(o->who) < 0)
		return STEP_IDS;
	if (chdir(o->cwd) < 0)
		return STEP_CWD;
	try_exec(o, paths);
	return STEP_EXEC;
}

static _Noreturn void child(const struct spawn_order *o, const struct strings *paths, int news)
{
	struct fault f;

	f.step = (int)run_steps(o, paths, &news);
	f.sys = errno;
	if (write(news, &f, sizeof(f)) != (ssize_t)sizeof(f))
		_exit(EXIT_NOT_STARTED + 1); /* nobody is there to be told */
	_exit(EXIT_NOT_STARTED);
}

/* --- in the agent ------------------------------------------------------------------------- */

static int add_path(struct strings *paths, struct bytes dir, const char *program, struct err *err)
{
	AUTO(buf_done) struct buf path = BUF_MAX(STRINGS_BYTES_MAX);

	if (dir.len == 0) /* the working directory, by tradition */
		dir = BYTES_LIT(".");
	if (buf_add(&path, dir, err) < 0 || buf_printf(&path, err, "/%s", program) < 0)
		return -1;
	return strings_add(paths, buf_view(&path), err);
}

/* All the places where the program may be, so that the child need not search. */
static int list_paths(const struct spawn_order *o, struct strings *ret, struct err *err)
{
	const char *program = o->argv->v[0], *path = strings_env(o->env, "PATH");
	struct bytes rest = bytes_str(path ? path : default_path), dir;

	if (strchr(program, '/') || program[0] == '\0')
		return strings_add(ret, bytes_str(program), err);
	while (bytes_cut(&rest, ':', &dir) && ret->n < PATH_DIRS_MAX)
		if (add_path(ret, dir, program, err) < 0)
			return -1;
	return add_path(ret, rest, program, err);
}

static pid_t clone_into(int cgroup, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (__u64)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
	};

	if (cgroup >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (__u64)cgroup;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

int spawn(const struct spawn_order *o, struct spawned *ret, struct err *err)
{
	AUTO(strings_done) struct strings paths = { 0 };
	AUTO(auto_close) int news_in = -1;
	AUTO(auto_close) int news_out = -1;
	sigset_t all, before;
	int pipe_fds[2], pidfd = -1;
	pid_t pid;

	if (list_paths(o, &paths, err) < 0)
		return -1;
	if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a pipe");
	news_in = pipe_fds[0];
	news_out = pipe_fds[1];
	/* no handler of ours may run in the child */
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone_into(o->cgroup, &pidfd);
	if (pid == 0)
		child(o, &paths, news_out);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a process");
	*ret = (struct spawned){ pid, pidfd, take_fd(&news_in) };
	return 0;
}

enum spawn_news spawn_read_news(int news, struct err *err)
{
	static const char *const steps[] = {
		[STEP_SESSION] = "make a session",
		[STEP_OOM] = "reset oom_score_adj",
		[STEP_STDIO] = "arrange descriptors",
		[STEP_TERMINAL] = "take the terminal",
		[STEP_IDS] = "become the user",
		[STEP_CWD] = "enter the working directory",
		[STEP_EXEC] = "exec",
	};
	struct fault f;
	ssize_t n = read(news, &f, sizeof(f));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return SPAWN_PENDING;
	if (n == 0)
		return SPAWN_RUNS;
	if (n != (ssize_t)sizeof(f) || f.step < 0 || (size_t)f.step >= COUNT(steps))
		err_set(err, ERR_INTERNAL, 0, "no sense in what the new process says");
	else
		err_set(err, ERR_INVALID, f.sys, "%s", steps[f.step]);
	return SPAWN_FAILED;
}
