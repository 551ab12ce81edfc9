/* fake_ip.h - addresses that stand for names, where the operator's proxy resolves them: a guest
 * has to be told some address, and what it then dials leads back to the name.
 *
 * They are of 198.18.0.0/15, which belongs to nobody, and each sandbox has its own. The names it
 * knows (known_names.h) are the table: what is kept of them over a pause keeps its address.
 */
#pragma once

#include "egress/known_names.h"

enum { FAKE_IP_TTL_S = 60 };

/* Not one of them: it stands for every name that is refused, where a sandbox shows refusals as
 * pages. One is enough, and nothing is kept for it: whoever dials it for the sake of a page says
 * the name (HTTP, TLS), and a name decides wherever the guest goes. A name that is allowed
 * meanwhile is reached through it. */
#define FAKE_IP_REFUSED 0xc6120000u /* 198.18.0.0 */

enum { FAKE_IP_REFUSED_TTL_S = 5 };

#define FAKE_IP_FIRST 0xc6120001u /* 198.18.0.1 */
#define FAKE_IP_LAST  0xc613fffeu

bool is_fake_ip(uint32_t ip);

/* That of a name, made when it has none; it is the newest known name then. 0: no memory. */
uint32_t fake_ip_for(struct known_names *k, const char *name);
