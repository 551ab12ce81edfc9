/* process.c - a walk through /proc. */
/* #parses: decimal numbers, the names in /proc; from the kernel */
#include "jail/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/folder.h"

struct search {
	uint32_t uid;
	pid_t found; /* 0: none yet */
};

bool process_runs_as(pid_t pid, uint32_t uid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return stat(path, &st) == 0 && st.st_uid == uid;
}

static int look_at(int proc, const char *name, void *context, struct err *err)
{
	struct search *s = context;
	uint64_t pid;

	(void)proc, (void)err;
	if (bytes_to_u64(bytes_str(name), &pid) && process_runs_as((pid_t)pid, s->uid))
		s->found = (pid_t)pid;
	return 0;
}

int process_of_uid(uint32_t uid, pid_t *ret, struct err *err)
{
	AUTO(auto_close) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct search s = { .uid = uid };

	if (proc < 0)
		return err_set(err, ERR_INTERNAL, errno, "open /proc");
	if (folder_each(proc, look_at, &s, err) < 0)
		return -1;
	*ret = s.found;
	return s.found != 0;
}
