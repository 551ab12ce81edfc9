/* guest_pool.h - connections into one sandbox, kept for the next request to the same port.
 *
 * Which requests may share a connection is the relay's to say. A connection to a
 * service of the user's is kept for a second only: there are services that serve one at a time.
 */
#pragma once

#include "gateway/relay/guest_cache.h"

void guest_pool_init(struct guest *g);
struct http_client *guest_pool_take(struct guest *g, uint16_t port);             /* NULL: none */
void guest_pool_put(struct guest *g, uint16_t port, struct http_client *client); /* takes it */
void guest_pool_drop(struct guest *g);                                           /* all of them */
