/* known_names.c - see known_names.h. */
#include "egress/known_names.h"

static struct known_name *newest(const struct known_names *k, size_t back)
{
	return &k->all[(k->next + KNOWN_NAMES_MAX - 1 - back) % KNOWN_NAMES_MAX];
}

static bool has(const struct known_names *k, const char *name, uint32_t ip)
{
	for (size_t i = 0; i < k->n; i++)
		if (newest(k, i)->ip == ip && strcmp(newest(k, i)->name, name) == 0)
			return true;
	return false;
}

static void add(struct known_names *k, const char *name, uint32_t ip)
{
	char *copy = strdup(name);
	struct known_name *to;

	if (!copy)
		return;
	to = &k->all[k->next];
	free(to->name);
	*to = (struct known_name){ ip, copy };
	k->next = (k->next + 1) % KNOWN_NAMES_MAX;
	k->n += k->n < KNOWN_NAMES_MAX;
}

void known_names_add(struct known_names *k, const char *name, const struct dns_addresses *given)
{
	if (!k->all)
		k->all = calloc(KNOWN_NAMES_MAX, sizeof(*k->all));
	for (size_t i = 0; k->all && i < given->n; i++)
		if (!has(k, name, given->ip[i]))
			add(k, name, given->ip[i]);
}

const char *known_names_of(const struct known_names *k, uint32_t ip, size_t at)
{
	for (size_t i = 0; i < k->n; i++)
		if (newest(k, i)->ip == ip && at-- == 0)
			return newest(k, i)->name;
	return NULL;
}

void known_names_done(struct known_names *k)
{
	for (size_t i = 0; i < k->n; i++)
		free(newest(k, i)->name);
	free(k->all);
	*k = (struct known_names){ 0 };
}
