/* forwarded.h - who a client is, and whether it spoke TLS, as the proxies before us say. Pure.
 *
 *	X-Forwarded-For: 198.51.100.1, 203.0.113.9, 10.0.0.2      from 10.0.0.1
 *	                 anybody's word  <- the client   <- listed  <- listed
 *
 * Each proxy adds behind what came the address it was spoken to from. So the field is read from its
 * end, for as long as the address that said so is a listed one; what is left of that was written by
 * the client, and nobody believes it.
 */
#pragma once

#include "wire/http1_field.h"
#include "wire/ip_range.h"

enum { FORWARDED_HOPS_MAX = 16 };

struct forwarded_trust {
	const struct ip_range *at;
	size_t n;
};

bool forwarded_trusts(const struct forwarded_trust *t, const struct ip *who);

/* *who is the peer, a listed one; it becomes the client. An entry that is no address ends the walk,
 * and so do FORWARDED_HOPS_MAX of them: then it is the last listed one that was reached. True: *who
 * changed. */
bool forwarded_client(const struct http1_head *h, const struct forwarded_trust *t, struct ip *who);

/* X-Forwarded-Proto, its last word: only of a listed peer. False: nothing is said. */
bool forwarded_proto(const struct http1_head *h, bool *ret_secure);

/* Is it one of the fields that say such things (X-Forwarded-..., Forwarded, X-Real-IP)? Also as
 * servers read them that cannot tell one mark from another. */
bool forwarded_is_field(struct bytes name);
