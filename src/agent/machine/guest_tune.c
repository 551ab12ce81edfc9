/* guest_tune.c - parameters of the kernel, and the host name. */
#include <errno.h>
#include <sys/resource.h>

#include "agent/machine/files_small.h"
#include "agent/machine/guest.h"
#include "base/log.h"

enum { NOFILE_HARD = 1024 * 1024, HOSTNAME_TEXT_MAX = 64 };

struct setting {
	const char *path, *value;
};

static const struct setting settings[] = {
	/* tools that watch source trees, each with its own instance */
	{ "/proc/sys/fs/inotify/max_user_watches", "1048576" },
	{ "/proc/sys/fs/inotify/max_user_instances", "8192" },
	{ "/proc/sys/fs/inotify/max_queued_events", "65536" },
	{ "/proc/sys/net/ipv4/ping_group_range", "0 2147483647" },
	/* what is not reachable need not be solicited: an idle guest shall be silent */
	{ "/proc/sys/net/ipv6/conf/eth0/disable_ipv6", "1" },
	{ "/proc/sys/vm/stat_interval", "60" }, /* seconds; every one of them is a wake-up */
	{ "/proc/self/oom_score_adj", "-1000" },
};

static void apply(const struct setting *s)
{
	struct err err;

	if (file_poke(s->path, bytes_str(s->value), &err) < 0 && err.code != ERR_NOT_FOUND)
		log_error("%s", err.msg);
}

static void set_hostname_from_file(void)
{
	AUTO(buf_done) struct buf text = BUF_MAX(HOSTNAME_TEXT_MAX);
	struct bytes name, rest;
	struct err err;

	if (file_read_if_any("/etc/hostname", &text, &err) < 0) {
		log_error("%s", err.msg);
		return;
	}
	rest = buf_view(&text);
	name = rest;
	(void)bytes_cut(&rest, '\n', &name);
	if (name.len > 0 && sethostname((const char *)name.ptr, name.len) < 0)
		log_error("set the host name: %s", strerror(errno));
}

/* Programs start with a low soft limit, and may raise it up to this. */
static void raise_nofile(void)
{
	const struct rlimit n = { .rlim_cur = NOFILE_HARD, .rlim_max = NOFILE_HARD };

	if (setrlimit(RLIMIT_NOFILE, &n) < 0)
		log_error("raise the limit of descriptors: %s", strerror(errno));
}

void guest_tune(void)
{
	for (size_t i = 0; i < COUNT(settings); i++)
		apply(&settings[i]);
	set_hostname_from_file();
	raise_nofile();
}
