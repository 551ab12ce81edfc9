/* relays.h - the relayed requests, in the order in which something last moved in them.
 *
 * They may rest for as long as they like, unless others need their place: then the one in which
 * nothing moved for the longest ends first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { RELAY_REST_MS = 60 * 1000 }; /* nothing moved: it may be ended */

struct gateway;
struct relay;
struct relays {
	struct relay *oldest, *newest; /* by when something last moved in them */
	size_t n, max;                 /* max 0: any number */
};

void relays_add(struct relay *r);
void relays_remove(struct relay *r); /* fine when it is not among them */
void relays_moved(struct relay *r);  /* bytes, in either direction */

/* Ends the one in which nothing moved for the longest, if that is RELAY_REST_MS. False: none. */
bool relays_shed(struct gateway *g);
