/* steps.c - a short table of names and times. */
#include "vm/steps.h"

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
