/* steps.c - a short table of names and times. */
#include "vm/steps.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void steps_begin(struct steps *s)
{
	*s = (struct steps){ .begin_ns = clock_mono_ns() };
}

void steps_add(struct steps *s, const char *name)
{
	if (s->n == STEPS_MAX)
		return;
	s->at[s->n++] = (struct step_time){ name, clock_mono_ns() - s->begin_ns };
}

uint64_t steps_find(const struct steps *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->at[i].name, name) == 0)
			return s->at[i].after_ns;
	return 0;
}

void steps_text(const struct steps *s, char ret[static STEPS_TEXT_SIZE])
{
	uint64_t last_ns = 0;
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < s->n && used < STEPS_TEXT_SIZE; i++) {
		used += (size_t)snprintf(ret + used, STEPS_TEXT_SIZE - used, " %s %.1f",
					 s->at[i].name,
					 (double)(s->at[i].after_ns - last_ns) / NSEC_PER_MSEC);
		last_ns = s->at[i].after_ns;
	}
}
