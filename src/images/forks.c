/* forks.c - see forks.h.
 *
 * It has no filter of its own, for it would hold for skopeo as well; each of its children takes
 * one. It reads nothing but orders of the daemon, which are of one length.
 */
#include "images/forks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <linux/sched.h>

#include "base/fdmsg.h"
#include "base/folder.h"
#include "base/log.h"
#include "images/job.h"
#include "images/view.h"
#include "jail/confine.h"
#include "jail/credentials.h"

enum { FAILED = 1, GONE_MS = 5000, LOOK_MS = 1 };

struct forks {
	const struct config_value *set;
	const struct places *places;
	int sock, null;
};

/* --- a job ------------------------------------------------------------------------------------ */

static size_t fds_of(const struct order *o)
{
	return 1u + (o->parts & ORDER_AUTH ? 1u : 0u) + (o->parts & ORDER_DISK ? 1u : 0u) +
	       (o->parts & ORDER_ARCHIVE ? 1u : 0u);
}

static _Noreturn void be_job(const struct forks *f, const struct order *o, const int *fds,
			     pid_t parent)
{
	static struct job j;
	size_t next = 1;

	close(f->sock);
	j = (struct job){ .set = f->set,
			  .places = f->places,
			  .order = *o,
			  .channel = fds[0],
			  .auth = -1,
			  .disk = -1,
			  .archive = -1,
			  .null = f->null,
			  .dir = -1 };
	if (o->parts & ORDER_AUTH)
		j.auth = fds[next++];
	if (o->parts & ORDER_DISK)
		j.disk = fds[next++];
	if (o->parts & ORDER_ARCHIVE)
		j.archive = fds[next++];
	job_live(&j, parent);
}

/* As fork() does it, with a handle: by its number a child that ended at once is not found. */
static pid_t fork_held(int *ret_pidfd)
{
	struct clone_args args = { .flags = CLONE_PIDFD,
				   .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
				   .exit_signal = SIGCHLD };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* -1: errno is why. */
static int begin_job(const struct forks *f, const struct order *o, const int *fds, int32_t *ret_pid)
{
	int pidfd = -1;
	pid_t self = getpid(), pid = fork_held(&pidfd);

	if (pid < 0)
		return -1;
	if (pid == 0) {
		(void)setpgid(0, 0);
		be_job(f, o, fds, self);
	}
	(void)setpgid(pid, pid); /* whoever comes first */
	*ret_pid = pid;
	return pidfd;
}

/* --- behind it -------------------------------------------------------------------------------- */

/* All of its group: nobody in it can leave it. */
static bool end_group(pid_t pid)
{
	for (int waited = 0; waited < GONE_MS; waited += LOOK_MS) {
		if (kill(-pid, SIGKILL) < 0 && errno == ESRCH)
			return true;
		(void)poll(NULL, 0, LOOK_MS);
	}
	return false;
}

static int remove_from(const char *folder, const char *name, struct err *err)
{
	AUTO(auto_close) int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_set(err, ERR_INTERNAL, errno, "open %s", folder);
	return folder_remove(dir, name, err);
}

static int clean(const struct forks *f, const struct order *o, struct err *err)
{
	if (o->pid <= 1 || !folder_name_ok(o->id, sizeof(o->id)))
		return err_set(err, ERR_INVALID, 0, "not a job");
	if (!end_group(o->pid))
		return err_set(err, ERR_TIMEOUT, 0, "job %s does not end", o->id);
	if (remove_from(f->places->auth, o->id, err) < 0)
		return -1;
	return remove_from(f->places->jobs, o->id, err);
}

/* --- orders ----------------------------------------------------------------------------------- */

static void obey(const struct forks *f, const struct order *o, const int *fds, size_t n,
		 struct order_answer *ret, int *ret_fd)
{
	struct err err = { 0 };

	if (o->verb == ORDER_JOB && n == fds_of(o) && folder_name_ok(o->id, sizeof(o->id))) {
		*ret_fd = begin_job(f, o, fds, &ret->pid);
		if (*ret_fd < 0)
			*ret = (struct order_answer){ .code = ERR_EXHAUSTED, .sys = errno };
	} else if (o->verb != ORDER_CLEAN || n != 0 || clean(f, o, &err) < 0) {
		log_error("%s", err.msg);
		*ret = (struct order_answer){ .code = err.code ? err.code : ERR_INVALID };
	}
}

static bool serve_one(const struct forks *f)
{
	struct order_answer answer = { 0 };
	AUTO(auto_close) int pidfd = -1;
	int fds[ORDER_FDS_MAX];
	struct order o;
	struct err err;
	size_t n = 0;

	if (fdmsg_recv(f->sock, &o, sizeof(o), fds, ORDER_FDS_MAX, &n, &err) < 0)
		return false;
	obey(f, &o, fds, n, &answer, &pidfd);
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
	return fdmsg_send(f->sock, &answer, sizeof(answer), &pidfd, pidfd >= 0, &err) == 0;
}

/* --- its first moments ------------------------------------------------------------------------ */

static int give_up(const struct forks *f, bool root, struct err *err)
{
	const struct sigaction leave = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };

	struct credentials who; /* its user, and no more: each job gives up the rest */

	if (confine_who(f->set[SET_USER].text, &who, err) < 0)
		return -1;
	if (root && view_enter_images(f->set, f->places, err) < 0)
		return -1;
	if (confine_become(&who, err) < 0)
		return -1;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
	    sigaction(SIGCHLD, &leave, NULL) < 0) /* nobody waits for the dead */
		return err_set(err, ERR_INTERNAL, errno, "become a forkserver");
	return places_sweep(f->places, err);
}

static int serve(struct forks *f, struct err *err)
{
	bool root = geteuid() == 0;

	f->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (f->null < 0)
		return err_set(err, ERR_INTERNAL, errno, "open /dev/null");
	if (!root)
		log_warn("not started as root: jobs have no view of files of their own");
	if (give_up(f, root, err) < 0 || fdmsg_send(f->sock, &(struct order_answer){ 0 },
						    sizeof(struct order_answer), NULL, 0, err) < 0)
		return -1;
	while (serve_one(f))
		;
	return 0;
}

_Noreturn void forks_be(const struct config_value *set, const struct places *p, int sock)
{
	struct forks f = { .set = set, .places = p, .sock = sock };
	struct err err;

	log_init("images-forkserver", LOG_INFO);
	if (serve(&f, &err) == 0)
		_exit(0);
	log_error("%s", err.msg);
	_exit(FAILED);
}
