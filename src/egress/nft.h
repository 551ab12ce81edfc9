/* nft.h - the second lock: rules of the host's kernel for egress's user, printed for nft(8).
 *
 * Whatever becomes of the process, its user reaches nothing of the host's own networks but the
 * resolvers, the named services and the proxy. The doors are in the sandboxes' namespaces, where
 * these rules do not hold.
 */
#pragma once

#include <sys/types.h>

#include "egress/policy.h"
#include "egress/question.h"

#define NFT_TABLE "hotcell_egress"

enum { NFT_RULES_MAX = 64 * 1024 };

/* Appends. Loaded as one, it takes the place of what was there. `proxy` may be NULL. */
int nft_rules(uid_t uid, const struct policy_ground *g, const struct question_servers *resolvers,
	      const struct addr *proxy, struct buf *out, struct err *err) NODISCARD;
