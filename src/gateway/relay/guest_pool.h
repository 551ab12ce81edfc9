/* guest_pool.h - connections into one sandbox, kept for the next request to the same port.
 *
 * Which requests may share a connection is the relay's to say. A connection to a service of the
 * user's is kept for a second only: there are services that serve one at a time. It becomes five
 * seconds old at most: one that closed its port, or gave it to another, may go on with who is
 * there.
 */
#pragma once

#include "gateway/relay/guest_cache.h"

void guest_pool_init(struct guest *g);
struct http_client *guest_pool_take(struct guest *g, uint16_t port,
				    uint64_t *ret_since_ms); /* NULL: none */
/* Takes its client, and knows until when by itself. */
void guest_pool_put(struct guest *g, const struct guest_pooled *p);
void guest_pool_drop(struct guest *g); /* all of them */
