/* host_addresses.h - the addresses of the host itself, public ones too: nobody is let out to them.
 */
#pragma once

#include "egress/policy.h"

/* Those it has now; ones that come later are the kernel's to drop (nft.h). */
int host_addresses_read(struct policy_ground *g, struct err *err) NODISCARD;
