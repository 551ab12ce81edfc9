/* pools_text.h - pools as JSON, for operators. */
#pragma once

#include "node/life/pools.h"
#include "wire/json.h"

/* Adds "pools", "poolMemoryMB" and "poolMemoryMaxMB" (0: no budget). Not 0: no memory. */
int pools_describe(const struct node *n, json_t *status);

struct pool_sum { /* of some pools */
	size_t ready, starting, wanted;
	uint64_t memory_mib; /* of their VMs, as they are counted */
};
void pool_sum_add(struct pool_sum *sum, const struct pool *pool); /* NULL is fine */
/* Adds "poolReady", "poolStarting", "poolWanted", "poolMemoryMB". Not 0: no memory. */
int pool_sum_describe(const struct pool_sum *sum, json_t *to);
int pool_describe(const struct pool *pool, json_t *to); /* of one; NULL: there is none */
