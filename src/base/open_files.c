/* open_files.c - the two limits of RLIMIT_NOFILE. */
#include "base/open_files.h"

#include <sys/resource.h>

uint64_t open_files_raise(uint64_t want)
{
	const struct rlimit more = { want, want };
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return 0;
	if (files.rlim_max < want && setrlimit(RLIMIT_NOFILE, &more) == 0)
		return want;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_max : 0;
}
