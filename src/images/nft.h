/* nft.h - rules of the host's kernel for the images daemon's user, printed for nft(8): whatever
 * becomes of skopeo, its user reaches registries and resolvers, and nothing else of the host's own
 * networks.
 */
#pragma once

#include <sys/types.h>

#include "images/settings.h"

#define NFT_TABLE "hotcell_images"

enum { NFT_RULES_MAX = 64 * 1024 };

/* Appends. Loaded as one, it takes the place of what was there. `resolv_conf` is read when no
 * resolvers are set. */
int nft_rules(uid_t uid, const struct config_value *set, struct bytes resolv_conf, struct buf *out,
	      struct err *err) NODISCARD;
