/* confine_calls.c - an allow-list of system calls, some of them under a condition. */
#include "jail/confine_calls.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "jail/confine_watch.h"
#include "jail/sanitized.h"

/* What libc's fork() asks for. */
enum { FORK_FLAGS = CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD };

/* Calls that are more than one: when they are named, they are allowed under these conditions, any
 * of them. A call without a line here is allowed as it is. */
struct condition {
	const char *name;
	struct scmp_arg_cmp arg;
};

/* Names of ours for some of what a call can do. */
static const struct {
	const char *name, *call;
} ours[] = {
	{ "fork", "clone" },
	/* of whoever it forks, to itself: their own filters know who that is */
	{ "tgkill_forked", "tgkill" },
	/* of who calls servers itself; others are given sockets, or have those of before */
	{ "socket_inet", "socket" },
};

static const struct condition conditions[] = {
	/* threads, not processes */
	{ "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD) },
	{ "fork", SCMP_A0(SCMP_CMP_EQ, FORK_FLAGS) },
	{ "socket", SCMP_A0(SCMP_CMP_EQ, AF_UNIX) },
	{ "socket_inet", SCMP_A0(SCMP_CMP_EQ, AF_INET) },
	{ "socketpair", SCMP_A0(SCMP_CMP_EQ, AF_UNIX) },
	/* no new code */
	{ "mmap", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0) },
	{ "mprotect", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0) },
	{ "ioctl", SCMP_A1(SCMP_CMP_EQ, FIONBIO) },
	{ "ioctl", SCMP_A1(SCMP_CMP_EQ, FIOCLEX) },
	{ "ioctl", SCMP_A1(SCMP_CMP_EQ, FIONREAD) },
	{ "ioctl", SCMP_A1(SCMP_CMP_EQ, TIOCOUTQ) }, /* SIOCOUTQ: what a closing stream waits for */
	{ "prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME) },
	{ "prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG) },
};

static int number_of(const char *name)
{
	for (size_t i = 0; i < COUNT(ours); i++)
		if (strcmp(ours[i].name, name) == 0)
			return seccomp_syscall_resolve_name(ours[i].call);
	return seccomp_syscall_resolve_name(name);
}

static int allow(scmp_filter_ctx ctx, const char *name, struct err *err)
{
	int number = number_of(name), rc = 0;
	size_t found = 0;

	if (number == __NR_SCMP_ERROR)
		return err_set(err, ERR_INVALID, 0, "%s is not a system call", name);
	for (size_t i = 0; i < COUNT(conditions) && rc == 0; i++) {
		if (strcmp(conditions[i].name, name) != 0)
			continue;
		rc = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, number, 1, &conditions[i].arg);
		found++;
	}
	if (strcmp(name, "tgkill") == 0) /* abort() signals itself, nobody signals others */
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 1,
				      SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	else if (found == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 0);
	if (rc < 0)
		return err_set(err, ERR_INTERNAL, -rc, "allow %s", name);
	return 0;
}

static int fill(scmp_filter_ctx ctx, const char *const *names, struct err *err)
{
	int rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	/* all threads; what was refused stands in the kernel's audit log; no_new_privs is set */
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 0);
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_LOG, 1);
	/* ENOSYS makes libc fall back to clone(2), whose flags a filter can read */
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (rc < 0)
		return err_set(err, ERR_INTERNAL, -rc, "make the filter");
	for (size_t i = 0; names[i] && !SANITIZED; i++)
		if (!confine_watch_leaves_out(names[i]) && allow(ctx, names[i], err) < 0)
			return -1;
	return 0;
}

int confine_calls(const char *const *names, struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SANITIZED ? SCMP_ACT_ALLOW : confine_watch_refusal());
	int rc;

	if (!ctx)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "make the filter");
	rc = confine_watch_begin(err);
	if (rc == 0)
		rc = fill(ctx, names, err);
	if (rc == 0) {
		rc = seccomp_load(ctx);
		if (rc < 0)
			rc = err_set(err, ERR_INTERNAL, -rc, "load the filter");
	}
	seccomp_release(ctx);
	return rc;
}
