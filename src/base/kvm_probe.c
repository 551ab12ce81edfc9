/* kvm_probe.c - three instructions of a guest, in a child that cannot hang us. */
/* #parses: two words in /proc/cpuinfo; from the kernel */
#include "base/kvm_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/own.h"
#include "base/read_all.h"

enum { PROBE_MS = 2000, GUEST_AT = 0x1000, PORT = 0x10, ANSWER = 0x42, CPUINFO_MAX = 16384 };

static const uint8_t guest_code[] = {
	0xb0, ANSWER, /* mov $ANSWER, %al */
	0xe6, PORT,   /* out %al, $PORT */
	0xf4,         /* hlt */
};

static bool cpu_has(const char *flags, const char *word)
{
	return strstr(flags, word) != NULL;
}

/* The first processor's flags are enough: all are the same. */
static int check_processor(struct err *err)
{
	char text[CPUINFO_MAX];

	if (read_text(AT_FDCWD, "/proc/cpuinfo", text, sizeof(text)) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "read /proc/cpuinfo");
	if (!cpu_has(text, " vmx ") && !cpu_has(text, " svm "))
		return err_set(err, ERR_UNAVAILABLE, 0,
			       "the processor has neither VT-x nor SVM (or it is switched off)");
	return 0;
}

static bool set_registers(int vcpu)
{
	struct kvm_sregs s;
	struct kvm_regs r = { .rip = GUEST_AT, .rflags = 2 };

	if (ioctl(vcpu, KVM_GET_SREGS, &s) < 0)
		return false;
	s.cs.base = 0;
	s.cs.selector = 0;
	return ioctl(vcpu, KVM_SET_SREGS, &s) == 0 && ioctl(vcpu, KVM_SET_REGS, &r) == 0;
}

static int make_vcpu(int kvm, struct kvm_run **ret)
{
	int vm = ioctl(kvm, KVM_CREATE_VM, 0);
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kvm_userspace_memory_region memory = { .guest_phys_addr = GUEST_AT,
						      .memory_size = 4096 };
	int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	int vcpu;

	if (vm < 0 || page == MAP_FAILED || size <= 0)
		return -1;
	memcpy(page, guest_code, sizeof(guest_code));
	memory.userspace_addr = (uint64_t)(uintptr_t)page;
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &memory) < 0)
		return -1;
	vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	*ret = vcpu < 0 ? MAP_FAILED
			: mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
	return *ret == MAP_FAILED || !set_registers(vcpu) ? -1 : vcpu;
}

/* Exit status of the probing child: 0 is a working KVM. Everything it opened ends with it. */
static int run_guest(int kvm)
{
	struct kvm_run *run = NULL;
	int vcpu;
	const uint8_t *data;

	if (ioctl(kvm, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
		return 1;
	vcpu = make_vcpu(kvm, &run);
	if (vcpu < 0 || ioctl(vcpu, KVM_RUN, 0) < 0 || run->exit_reason != KVM_EXIT_IO)
		return 2;
	data = (const uint8_t *)run + run->io.data_offset;
	if (run->io.port != PORT || *data != ANSWER)
		return 3;
	return ioctl(vcpu, KVM_RUN, 0) < 0 || run->exit_reason != KVM_EXIT_HLT ? 4 : 0;
}

int kvm_probe(struct err *err)
{
	AUTO(auto_close) int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	struct pollfd ended = { .events = POLLIN };
	int status = -1, failed = errno;
	pid_t pid;

	if (check_processor(err) < 0)
		return -1;
	if (kvm < 0)
		return err_set(err, ERR_UNAVAILABLE, failed, "open /dev/kvm");
	pid = fork();
	if (pid < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "fork the KVM probe");
	if (pid == 0)
		_exit(run_guest(kvm));
	ended.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	poll(&ended, 1, PROBE_MS);
	kill(pid, SIGKILL); /* not yet reaped, so it is still ours */
	waitpid(pid, &status, 0);
	if (ended.fd >= 0)
		close(ended.fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(err, ERR_UNAVAILABLE, 0, "/dev/kvm did not run a test guest (status 0x%x)",
		       (unsigned)status);
}
