/* units.h - what systemd says of a unit of this host; the units that make templates of packages. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/program.h"

struct unit {
	char active[16], sub[24], result[24];
	bool looked;   /* its condition was, since the host began */
	bool unwanted; /* and did not hold */
	bool queued;   /* systemd is still to do what it was told */
	uint64_t restarts;
};

/* systemctl WORDS...; it has `ms`. */
int units_systemctl(const char *const *words, uint64_t ms, struct program *ret,
		    struct err *err) NODISCARD;
int unit_look(const char *name, uint64_t ms, struct unit *ret, struct err *err) NODISCARD;
/* It failed, and systemd waits before the next try: each time longer, up to half an hour. */
bool unit_waits(const struct unit *u);

/* Those of guest/template: each has a package with its image, and then a service that makes it. */
enum { PACKAGED = 3 };
extern const struct packaged {
	const char *name, *unit, *package;
} packaged[PACKAGED];
