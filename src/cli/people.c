/* people.c - see people.h. */
#include "cli/people.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/rfc3339.h"

void people_size(uint64_t bytes, char ret[static PEOPLE_SIZE])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t tenths = bytes * 10;
	size_t unit = 0;

	if (bytes > UINT64_MAX / 10) { /* nothing has so much */
		snprintf(ret, PEOPLE_SIZE, "%" PRIu64 " B", bytes);
		return;
	}
	while (tenths >= 10240 && unit + 1 < COUNT(units)) {
		tenths /= 1024;
		unit++;
	}
	if (unit == 0 || tenths >= 1000 || tenths % 10 == 0)
		snprintf(ret, PEOPLE_SIZE, "%" PRIu64 " %s", tenths / 10, units[unit]);
	else
		snprintf(ret, PEOPLE_SIZE, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
			 units[unit]);
}

void people_span(uint64_t s, char ret[static PEOPLE_SIZE])
{
	enum { DAYS_MAX = 999999 };
	static const struct {
		uint64_t seconds;
		char name;
	} units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
	size_t i = 0;

	while (i + 1 < COUNT(units) && s < units[i].seconds)
		i++;
	if (i + 1 == COUNT(units))
		snprintf(ret, PEOPLE_SIZE, "%" PRIu64 "s", s);
	else
		snprintf(ret, PEOPLE_SIZE, "%u%c %u%c",
			 (unsigned int)(s / units[i].seconds % (DAYS_MAX + 1)), units[i].name,
			 (unsigned int)(s % units[i].seconds / units[i + 1].seconds),
			 units[i + 1].name);
}

void people_when(const char *time, char *ret, unsigned long size)
{
	uint64_t then, now = clock_wall_ns();
	char span[PEOPLE_SIZE];
	struct err err;

	if (rfc3339_parse(bytes_str(time), &then, &err) < 0) {
		snprintf(ret, size, "%s", time);
		return;
	}
	people_span((then > now ? then - now : now - then) / NSEC_PER_SEC, span);
	snprintf(ret, size, then > now ? "in %s" : "%s ago", span);
}

bool people_colours(const struct cli *c, int fd)
{
	return isatty(fd) && !c->no_color && c->term && strcmp(c->term, "dumb") != 0;
}
