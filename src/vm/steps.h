/* steps.h - when each step of a build or a restore was reached, in nanoseconds. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { STEPS_MAX = 32, STEPS_TEXT_SIZE = 640 };

struct steps {
	uint64_t begin_ns; /* of clock_mono_ns() */
	size_t n;
	struct step_time {
		const char *name;  /* a literal */
		uint64_t after_ns; /* since begin_ns */
	} at[STEPS_MAX];
};

void steps_begin(struct steps *s);

/* Reached now. Beyond STEPS_MAX nothing more is kept. */
void steps_add(struct steps *s, const char *name);

/* When the first step of that name was reached, since the beginning; 0 if it was not. */
uint64_t steps_find(const struct steps *s, const char *name);

/* " NAME MS NAME MS ...": each since the one before, for a log. */
void steps_text(const struct steps *s, char ret[static STEPS_TEXT_SIZE]);
