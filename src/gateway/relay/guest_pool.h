/* guest_pool.h - connections to the agent of one sandbox, kept for the next request. */
#pragma once

#include "gateway/relay/guest_cache.h"

struct http_client *guest_pool_take(struct guest *g);             /* NULL: none */
void guest_pool_put(struct guest *g, struct http_client *client); /* takes it */
void guest_pool_expire(struct guest *g, uint64_t before_ms);
