/* reach.h - may an address be dialled for which no name is said? The rules decide, and what the
 * sandbox was told.
 */
#pragma once

#include "egress/known_names.h"
#include "egress/policy.h"

enum { REACH_NAMES_MAX = 8 }; /* of one address, the newest; each costs a look at all rules */

/* The newest name that this sandbox was given the address for and that may be reached; borrowed.
 * NULL: there is none. */
const char *reach_name(const struct policy *p, const struct known_names *k, uint32_t ip,
		       struct policy_verdict *ret);
/* A name that this sandbox was given the address for is as good as said. */
struct policy_verdict reach_address(const struct policy *p, const struct known_names *k,
				    uint32_t ip, uint16_t port);
