/* reconcile.h - what warden has against what node knows, in both directions.
 *
 * At every connection to warden, every minute, and when a monitor's link ended.
 */
#pragma once

#include "node/links/warden_client.h"

enum {
	RECONCILE_EVERY_MS = 60 * 1000,
	RECONCILE_SOON_MS = 50, /* after a monitor ended: warden hears of the process's end, too */
	RECONCILE_AGAIN_MS = 1000,
	RECONCILE_STRAYS_MAX = 64, /* ended at once; the others the next time */
};

struct stray;
struct reconcile {
	struct link_call ask; /* the page under way */
	struct timer timer;
	uint64_t number;      /* of the look under way, or of the last */
	bool complete;        /* one went through since node was started */
	unsigned int soon;    /* looks to come at short distance */
	struct stray *strays; /* VMs of nobody, being ended */
	size_t n_strays;
	size_t n_others, n_others_now; /* VMs of another installation: by the last look, so far */
	char other[WARDEN_ID_MAX + 1]; /* one of them */
};

struct node;
struct sandbox;
void reconcile_open(struct node *n);
void reconcile_close(struct node *n);
void reconcile_now(struct node *n);
void reconcile_soon(struct node *n);
bool reconcile_wants_vm(
	const struct sandbox *s); /* in its state it has a VM, or has just lost it */
