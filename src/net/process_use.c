/* process_use.c - see process_use.h. */
/* Not every daemon uses it: those who do name pread64. */
#include "net/process_use.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

void process_use_open(struct process_use *p)
{
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	*p = (struct process_use){ .statm = fd > 0 ? fd : 0, .started_ns = clock_wall_ns() };
}

void process_use_close(struct process_use *p)
{
	if (p->statm)
		close(p->statm);
	*p = (struct process_use){ 0 };
}

uint64_t process_use_cpu_us(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* "SIZE RESIDENT ...", in pages. */
uint64_t process_use_memory(const struct process_use *p)
{
	char text[128], *at;
	ssize_t n = p->statm ? pread(p->statm, text, sizeof(text) - 1, 0) : 0;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	(void)strtoull(text, &at, 10);
	return (uint64_t)strtoull(at, NULL, 10) * (uint64_t)getpagesize();
}
