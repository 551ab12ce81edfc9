/* address_counts.c - see address_counts.h. */
#include "net/address_counts.h"

#include <stdlib.h>

#include "base/list.h"

static struct address_count **bucket(struct address_counts *c, const uint8_t key[static ADDR_KEY])
{
	return &c->buckets[addr_key_hash(key, &c->seed) % ADDRESS_BUCKETS];
}

struct address_count *address_counts_add(struct address_counts *c, const struct addr *who)
{
	struct address_count *a, **at;
	uint8_t key[ADDR_KEY];

	addr_key(who, key);
	at = bucket(c, key);
	for (a = *at; a && memcmp(a->key, key, ADDR_KEY) != 0;)
		a = a->next;
	if (!a) {
		a = calloc(1, sizeof(*a));
		if (!a)
			return NULL;
		memcpy(a->key, key, ADDR_KEY);
		list_add(at, a);
	}
	a->n++;
	return a;
}

void address_count_drop(struct address_count *a)
{
	if (!a || --a->n > 0)
		return;
	list_remove(a);
	free(a);
}
