/* denied_calls.c - libseccomp rules, as a table. */
#include "jail/denied_calls.h"

#include <errno.h>
#include <sched.h>

#include "base/bytes.h"

static const int denied[] = {
	/* page faults, other processes, the kernel's own knobs */
	SCMP_SYS(userfaultfd),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(process_madvise),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(kcmp),
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(syslog),
	SCMP_SYS(acct),
	SCMP_SYS(quotactl),
	SCMP_SYS(swapon),
	SCMP_SYS(swapoff),
	SCMP_SYS(reboot),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(iopl),
	SCMP_SYS(ioperm),
	SCMP_SYS(modify_ldt),
	SCMP_SYS(personality),
	SCMP_SYS(settimeofday),
	SCMP_SYS(clock_settime),
	SCMP_SYS(adjtimex),
	SCMP_SYS(sethostname),
	SCMP_SYS(setdomainname),
	SCMP_SYS(vhangup),
	/* who else uses a file: others see the same VMM, kernel and memory */
	SCMP_SYS(inotify_init),
	SCMP_SYS(inotify_init1),
	SCMP_SYS(fanotify_init),
	/* namespaces and mounts */
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(open_tree),
	SCMP_SYS(move_mount),
	SCMP_SYS(fsopen),
	SCMP_SYS(fsconfig),
	SCMP_SYS(fsmount),
	SCMP_SYS(fspick),
	SCMP_SYS(mount_setattr),
	SCMP_SYS(name_to_handle_at),
	SCMP_SYS(open_by_handle_at),
	/* ids: there is nothing to become */
	SCMP_SYS(setuid),
	SCMP_SYS(setgid),
	SCMP_SYS(setreuid),
	SCMP_SYS(setregid),
	SCMP_SYS(setresuid),
	SCMP_SYS(setresgid),
	SCMP_SYS(setgroups),
	SCMP_SYS(setfsuid),
	SCMP_SYS(setfsgid),
	SCMP_SYS(capset),
};

/* Processes, not threads: those are clone(2). ENOSYS makes libc fall back to it from clone3, whose
 * flags no filter can read. */
int denied_processes_add(scmp_filter_ctx ctx)
{
	static const struct scmp_arg_cmp process = { 0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0 };
	const uint32_t no = SCMP_ACT_ERRNO(EPERM);

	return seccomp_rule_add(ctx, no, SCMP_SYS(fork), 0) < 0 ||
			       seccomp_rule_add(ctx, no, SCMP_SYS(vfork), 0) < 0 ||
			       seccomp_rule_add_array(ctx, no, SCMP_SYS(clone), 1, &process) < 0 ||
			       seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) <
				       0
		       ? -1
		       : 0;
}

int denied_calls_add(scmp_filter_ctx ctx)
{
	for (size_t i = 0; i < COUNT(denied); i++)
		if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), denied[i], 0) < 0)
			return -1;
	return 0;
}
