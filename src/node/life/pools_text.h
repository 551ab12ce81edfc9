/* pools_text.h - pools as JSON, for operators. */
#pragma once

#include "node/life/pools.h"
#include "wire/json.h"

/* Adds "pools", "poolMemoryMB" and "poolMemoryMaxMB" (0: no budget). Not 0: no memory. */
int pools_describe(const struct node *n, json_t *status);
/* Adds "poolReady", "poolStarting", "poolWanted", "poolMemoryMB"; `pool` NULL: there is none. The
 * same. */
int pool_describe(const struct pool *pool, json_t *to);
uint64_t pool_memory_mib(const struct pool *pool); /* of its VMs, as they are counted */
