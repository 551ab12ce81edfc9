/* people.h - sizes and times as people read them, and what a terminal can show. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"

enum { PEOPLE_SIZE = 24 };

/* "512 B", "1.5 MiB", "12 GiB" */
void people_size(uint64_t bytes, char ret[static PEOPLE_SIZE]);
/* "45s", "12m 3s", "5h 4m", "12d 5h" */
void people_span(uint64_t seconds, char ret[static PEOPLE_SIZE]);
/* Of an RFC 3339 time: "3m 4s ago", "in 3m 4s"; as it is when it is none. */
void people_when(const char *time, char *ret, unsigned long size);

/* Is it a terminal that has colours, and does nobody mind? NO_COLOR, TERM=dumb. */
bool people_colours(const struct cli *c, int fd);
