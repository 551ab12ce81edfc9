/* memory_watch.c - MemTotal and MemAvailable, read again and again from one descriptor. */
/* #syscalls: pread64 close */
#include "node/record/memory_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/bytes.h"
#include "base/log.h"

enum { MEMINFO_MAX = 4096 }; /* MemTotal is its first line, MemAvailable its third */

int memory_parse(const char *meminfo, const char *name, uint64_t *ret_mib, struct err *err)
{
	const char *at = strstr(meminfo, name);
	uint64_t kib = 0;
	struct bytes rest, number;

	if (at) {
		rest = bytes_trim(bytes_str(at + strlen(name) + strlen(":")));
		if (bytes_cut(&rest, ' ', &number) && bytes_to_u64(number, &kib)) {
			*ret_mib = kib / 1024;
			return 0;
		}
	}
	return err_set(err, ERR_INTERNAL, 0, "/proc/meminfo has no %s", name);
}

static int measure(struct memory_watch *m, struct err *err)
{
	char text[MEMINFO_MAX];
	ssize_t n = pread(m->meminfo, text, sizeof(text) - 1, 0);

	if (n < 0)
		return err_set(err, ERR_INTERNAL, errno, "read /proc/meminfo");
	text[n] = '\0';
	if (memory_parse(text, "MemTotal", &m->total_mib, err) < 0)
		return -1;
	return memory_parse(text, "MemAvailable", &m->available_mib, err);
}

void memory_watch_now(struct memory_watch *m)
{
	struct err err;

	if (m->meminfo > 0 && measure(m, &err) < 0)
		log_error("%s", err.msg);
}

static void on_time(struct timer *t)
{
	memory_watch_now(CONTAINER_OF(t, struct memory_watch, every));
}

int memory_watch_open(struct memory_watch *m, struct loop *l, uint64_t reserve_mib, struct err *err)
{
	*m = (struct memory_watch){ .reserve_mib = reserve_mib };
	timer_init(&m->every, l, on_time);
	m->meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	if (m->meminfo < 0)
		return err_set(err, ERR_INTERNAL, errno, "open /proc/meminfo");
	timer_repeat(&m->every, MEMORY_MEASURE_MS);
	return measure(m, err);
}

void memory_watch_close(struct memory_watch *m)
{
	timer_stop(&m->every);
	if (m->meminfo > 0)
		close(take_fd(&m->meminfo));
}

int memory_watch_allow(const struct memory_watch *m, uint64_t mib, struct err *err)
{
	uint64_t needed = m->reserve_mib + mib;

	if (m->available_mib >= needed)
		return 0;
	return err_set(err, ERR_EXHAUSTED, 0,
		       "this host has %" PRIu64 " MiB of memory left, %" PRIu64 " are needed",
		       m->available_mib, needed);
}

uint64_t memory_promise_max(const struct memory_watch *m, uint64_t percent)
{
	uint64_t usable = m->total_mib > m->reserve_mib ? m->total_mib - m->reserve_mib : 0;

	return usable * percent / 100;
}
