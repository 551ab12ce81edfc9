/* template_use.h - the templates on the disk: what each takes, and since when nobody uses it.
 *
 * `base` and grounds, those of before too. One that no VM had for `pool_unused_s` leaves the page
 * cache, but for the `base` of now, and snapshots do by the same look (life/pools.h). As for
 * `base`: its files are read again when somebody wants it. Times are by the loop's clock.
 */
#pragma once

#include "net/timer.h"
#include "node/protocol.h"
#include "wire/json.h"

enum {
	TEMPLATES_SEEN_MAX = 1024, /* of more nothing is known */
	TEMPLATES_COOL_MAX = 64,   /* that leave the page cache in one look */
	TEMPLATES_LOOK_MAX_MS = 60 * 1000,
};

struct node;

struct template_seen {
	char id[NODE_ID_MAX + 1];
	uint64_t bytes;    /* of the disk */
	uint64_t used_ms;  /* when a VM last had it, it was first seen, or left the page cache */
	uint64_t spare_ms; /* of a ground: since when nothing needs it; 0: something does */
	bool there;        /* by the last look */
	struct template_seen *next;
};

struct template_use {
	struct template_seen *all;
	size_t n;
	struct timer look;
};

void template_use_open(struct node *n);
void template_use_close(struct node *n);
/* One that has a folder below `dir`, remembered from now on. NULL: there are too many. */
struct template_seen *template_see(struct node *n, int dir, const char *id);
void template_use_look(struct node *n); /* now; else by itself */
/* Adds "grounds", "groundsSpare" and "groundsBytes", as of the last look. Not 0: no memory. */
int template_use_describe(const struct node *n, json_t *status);
