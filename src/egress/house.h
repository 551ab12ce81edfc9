/* house.h - what all sandboxes share here: the way out, the operator's ground and limits. */
#pragma once

#include "egress/policy.h"
#include "egress/resolver.h"

enum {
	HOUSE_CONNECTIONS = 512, /* of one sandbox at a time; more are reset */
	HOUSE_PER_SECOND = 500,  /* new ones and questions for names, taken from one sandbox */
	HOUSE_MBIT = 1000,       /* of one sandbox, both directions together */
};

struct house_limits {
	size_t connections;
	unsigned int per_second;
	uint64_t bytes_per_s; /* 0: no limit */
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
