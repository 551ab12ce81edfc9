/* log.c - each line is one write(2), so lines of several processes do not mix. */
/* #syscalls: write */
#include "base/log.h"

#include <stdarg.h>
#include <time.h>

enum { LINE_MAX_BYTES = 1024 };

static const char *log_name = "hotcell";
static enum log_level log_least = LOG_INFO;

void log_init(const char *component, enum log_level least)
{
	log_name = component;
	log_least = least;
}

const char *log_component(void)
{
	return log_name;
}

static size_t stamp(char *line, size_t size, enum log_level level)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	struct timespec now = { 0 };
	struct tm utc = { 0 };
	size_t n;
	int more;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	n = strftime(line, size, "%Y-%m-%dT%H:%M:%S", &utc);
	more = snprintf(line + n, size - n, ".%03ldZ %s %s: ", now.tv_nsec / 1000000, names[level],
			log_name);
	return more > 0 ? n + (size_t)more : n;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	size_t n, room;
	va_list ap;
	int more;

	if (level < log_least)
		return;
	n = stamp(line, sizeof(line), level);
	room = sizeof(line) - n - 1; /* for the newline */
	va_start(ap, fmt);
	more = vsnprintf(line + n, room, fmt, ap);
	va_end(ap);
	if (more < 0)
		return;
	for (size_t end = n + ((size_t)more < room ? (size_t)more : room - 1); n < end; n++)
		if ((unsigned char)line[n] < ' ' || line[n] == 127)
			line[n] = '?';
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* nowhere left to complain */
}
