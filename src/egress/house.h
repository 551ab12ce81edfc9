/* house.h - what all sandboxes share here: the way out, the operator's ground and limits. */
#pragma once

#include "egress/policy.h"
#include "egress/resolver.h"

struct house_limits {            /* of one sandbox */
	size_t connections;      /* at a time; more are reset */
	unsigned int per_second; /* new connections and questions for names that are taken */
	uint64_t bytes_per_s;    /* both directions together; 0: no limit */
};

struct house {
	struct loop *loop;
	struct resolver *resolver; /* borrowed, as all here */
	const struct policy_ground *ground;
	struct house_limits limits;
	const struct addr *proxy; /* NULL: none */
};

static inline uint64_t house_bytes_per_s(uint64_t mbit)
{
	return mbit * 1000 * 1000 / 8;
}
