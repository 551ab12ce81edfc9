/* host_addresses.h - the addresses of the host itself and of its proxy, public ones too: nobody is
 * let out to them.
 */
#pragma once

#include "egress/policy.h"
#include "net/addr.h"

/* Those it has now; ones that come later are the kernel's to drop (nft.h). */
int host_addresses_read(struct policy_ground *g, struct err *err) NODISCARD;
/* A proxy that is asked for itself would be told by the guest whom to ask for. */
void host_addresses_proxy(struct policy_ground *g, const struct addr *proxy);
