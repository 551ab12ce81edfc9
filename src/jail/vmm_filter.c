/* vmm_filter.c - libseccomp rules, as a table. */
#include "jail/vmm_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <linux/seccomp.h>

#include "base/bytes.h"
#include "jail/denied_calls.h"

/* The kernel reads an int of it: what is above does not count. */
#define INT32(n, value) { n, SCMP_CMP_MASKED_EQ, UINT32_MAX, value }

/* kernel ABI: fallocate under other names, for any file system; their struct has 48 bytes */
#define RESERVE(number) _IOC(_IOC_WRITE, 'X', number, 48)

/* Calls that are refused when every one of their arguments is as said here. */
static const struct {
	int call;
	unsigned int n_args;
	struct scmp_arg_cmp args[2];
} denied_when[] = {
	{ SCMP_SYS(socket), 1, { { 0, SCMP_CMP_NE, AF_UNIX, 0 } } },
	{ SCMP_SYS(socketpair), 1, { { 0, SCMP_CMP_NE, AF_UNIX, 0 } } },
	/* whoever holds a listener may let an exec pass; QEMU's own filter has none */
	{ SCMP_SYS(seccomp),
	  1,
	  { { 1, SCMP_CMP_MASKED_EQ, SECCOMP_FILTER_FLAG_NEW_LISTENER,
	      SECCOMP_FILTER_FLAG_NEW_LISTENER } } },
	/* see resources.h: a limit of 0 would be none */
	{ SCMP_SYS(setrlimit), 1, { INT32(0, RLIMIT_CORE) } },
	{ SCMP_SYS(prlimit64), 2, { INT32(1, RLIMIT_CORE), { 2, SCMP_CMP_NE, 0, 0 } } },
	/* room that RLIMIT_FSIZE does not count: behind the end of a file, but for holes, and by
	 * what moves its end (FALLOC_FL_INSERT_RANGE and all after FALLOC_FL_ZERO_RANGE) */
	{ SCMP_SYS(fallocate),
	  1,
	  { { 1, SCMP_CMP_MASKED_EQ, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE,
	      FALLOC_FL_KEEP_SIZE } } },
	{ SCMP_SYS(fallocate), 1, { { 1, SCMP_CMP_GT, FALLOC_FL_ZERO_RANGE, 0 } } },
	{ SCMP_SYS(ioctl), 1, { INT32(1, RESERVE(40)) } }, /* FS_IOC_RESVSP */
	{ SCMP_SYS(ioctl), 1, { INT32(1, RESERVE(42)) } }, /* FS_IOC_RESVSP64 */
	{ SCMP_SYS(ioctl), 1, { INT32(1, RESERVE(57)) } }, /* FS_IOC_ZERO_RANGE */
};

static int add_denied(scmp_filter_ctx ctx)
{
	if (denied_calls_add(ctx) < 0 || denied_processes_add(ctx) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(denied_when); i++)
		if (seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPERM), denied_when[i].call,
					   denied_when[i].n_args, denied_when[i].args) < 0)
			return -1;
	return 0;
}

static int add_special(scmp_filter_ctx ctx)
{
	return seccomp_rule_add(ctx, SCMP_ACT_NOTIFY, SCMP_SYS(execve), 0) < 0 ||
			       seccomp_rule_add(ctx, SCMP_ACT_NOTIFY, SCMP_SYS(execveat), 0) < 0
		       ? -1
		       : 0;
}

int vmm_filter_load(struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int listener = -1;

	if (!ctx)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "make the VMM's filter");
	/* another architecture's numbers would pass by the rules: the whole process ends */
	if (seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0 ||
	    add_denied(ctx) < 0 || add_special(ctx) < 0 || seccomp_load(ctx) < 0)
		err_set(err, ERR_INTERNAL, errno, "load the VMM's filter");
	else if ((listener = seccomp_notify_fd(ctx)) < 0)
		err_set(err, ERR_INTERNAL, errno, "listen for the VMM's exec");
	seccomp_release(ctx);
	return listener;
}

int vmm_filter_pass_exec(int listener, struct err *err)
{
	struct seccomp_notif call = { 0 };
	struct seccomp_notif_resp pass = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
		return err_set(err, ERR_INTERNAL, errno, "wait for the VMM's exec");
	pass.id = call.id;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &pass) < 0)
		return err_set(err, ERR_INTERNAL, errno, "let the VMM's exec pass");
	return 0;
}
