/* confine_watch.c - see confine_watch.h. */
#include "jail/confine_watch.h"

#if HOTCELL_FAULTS
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <ucontext.h>

#include "base/log.h"

static const char *asked(void)
{
	const char *text = getenv("HOTCELL_SYSCALLS");

	return text ? text : "";
}

uint32_t confine_watch_refusal(void)
{
	return asked()[0] ? SCMP_ACT_TRAP : SCMP_ACT_ERRNO(EPERM);
}

bool confine_watch_leaves_out(const char *name)
{
	char one[128];

	snprintf(one, sizeof(one), "without:%s:%s", log_component(), name);
	return strcmp(asked(), one) == 0;
}

/* Async-signal-safe: neither allocates nor formats. If write(2) itself is refused, the process
 * ends. */
static void tell(int number)
{
	char text[] = "refused system call 0000\n";

	for (char *at = text + strlen(text) - 2; number > 0 && *at == '0'; number /= 10)
		*at-- = (char)('0' + number % 10);
	(void)!write(STDERR_FILENO, text, strlen(text));
}

static void on_refused(int signal, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	int before = errno;

	(void)signal;
	tell(info->si_syscall);
	errno = before;
#ifdef __x86_64__
	at->uc_mcontext.gregs[REG_RAX] = -EPERM;
#else
	at->uc_mcontext.regs[0] = (unsigned long long)-EPERM;
#endif
}

int confine_watch_begin(struct err *err)
{
	const struct sigaction act = { .sa_sigaction = on_refused, .sa_flags = SA_SIGINFO };

	if (!asked()[0])
		return 0;
	if (sigaction(SIGSYS, &act, NULL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "watch refused calls");
	return 0;
}
#endif
