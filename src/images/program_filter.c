/* program_filter.c - see program_filter.h. */
#include "images/program_filter.h"

#include <errno.h>
#include <unistd.h>

#include "base/bytes.h"
#include "jail/denied_calls.h"

/* Processes of the same user are not to be ended by one of them. */
static int deny_signals(scmp_filter_ctx ctx)
{
	static const int calls[] = { SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(pidfd_send_signal),
				     SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo) };
	const struct scmp_arg_cmp others = { 0, SCMP_CMP_NE, (scmp_datum_t)getpid(), 0 };

	for (size_t i = 0; i < COUNT(calls); i++)
		if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), calls[i], 0) < 0)
			return -1;
	return seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1, &others);
}

static int deny_sockets(scmp_filter_ctx ctx)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 0);
}

static int add_rules(scmp_filter_ctx ctx, unsigned int also)
{
	/* another architecture's numbers would pass by the rules: the whole process ends */
	if (seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0 ||
	    denied_calls_add(ctx) < 0 ||
	    ((also & PROGRAM_NO_PROCESSES) && denied_processes_add(ctx) < 0) ||
	    ((also & PROGRAM_NO_SIGNALS) && deny_signals(ctx) < 0) ||
	    ((also & PROGRAM_NO_SOCKETS) && deny_sockets(ctx) < 0))
		return -1;
	return 0;
}

int program_filter_load(unsigned int also, struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int rc = 0;

	if (!ctx)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "make a filter");
	if (add_rules(ctx, also) < 0 || seccomp_load(ctx) < 0)
		rc = err_set(err, ERR_INTERNAL, errno, "load a filter");
	seccomp_release(ctx);
	return rc;
}
