/* resources.c - all of it survives exec. */
#include "jail/resources.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

int resources_no_core(struct err *err)
{
	const struct rlimit none = { 1, 1 };

	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return err_set(err, ERR_INTERNAL, errno, "forbid core dumps");
	return 0;
}

int resources_limit(const struct resources *l, struct err *err)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	const struct rlimit files = { l->descriptors, l->descriptors };
	const struct rlimit size = { l->file_bytes, l->file_bytes };
	sigset_t empty;

	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	if (resources_no_core(err) < 0)
		return -1;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set limits");
	if (l->file_bytes > 0 &&
	    (sigaction(SIGXFSZ, &ignore, NULL) < 0 || setrlimit(RLIMIT_FSIZE, &size) < 0))
		return err_set(err, ERR_INTERNAL, errno, "limit the size of files");
	return 0;
}
