/* relays.h - the relayed requests, in the order in which something last moved in them.
 *
 * They may rest for as long as they like, unless others need their place: then the one in which
 * nothing moved for the longest ends first.
 */
#pragma once

#include "net/address_counts.h"

enum { RELAY_REST_MS = 60 * 1000 }; /* nothing moved: it may be ended */

struct gateway;
struct relay;
struct relays {
	struct relay *oldest, *newest; /* by when something last moved in them */
	size_t n, max;                 /* max 0: any number */
	/* Of one address, but for this host. A connection of HTTP/2 has many streams, so
	 * connections alone do not bound them. 0: any number. */
	struct address_counts of_addresses;
	size_t address_max;
};

/* Counts it as its client's, until it is removed. False: that has enough. */
bool relays_count(struct relay *r);

void relays_add(struct relay *r);
void relays_remove(struct relay *r); /* fine when it is not among them */
void relays_moved(struct relay *r);  /* bytes, in either direction */

/* Ends the one in which nothing moved for the longest, if that is RELAY_REST_MS. False: none. */
bool relays_shed(struct gateway *g);
void relays_cut(struct gateway *g); /* all of them, by relay_cut() */
