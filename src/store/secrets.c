/* secrets.c - the memory of a secret. */
#include "store/secrets.h"

#include <stdio.h>
#include <stdlib.h>

struct store_secret *store_secret_new(const char *team_id)
{
	struct store_secret *s = calloc(1, sizeof(*s));

	if (s)
		snprintf(s->team_id, sizeof(s->team_id), "%s", team_id);
	return s;
}

void store_secret_clear(struct store_secret *s)
{
	free(s->metadata);
	free(s->sealed);
	free(s->names);
}

void store_secret_free(struct store_secret *s)
{
	if (!s)
		return;
	store_secret_clear(s);
	free(s);
}
