/* port_pass.h - a pass: who has it may visit one guarded port of one sandbox, until a time.
 *
 *	a9222.1700000000.<64 hex>     in an address; exchanged for
 *	c9222.1700043200.<64 hex>     in a cookie
 *
 * It is signed with the traffic token of the sandbox, which cannot be found from it.
 */
#pragma once

#include "base/bytes.h"

enum {
	PORT_PASS_SIZE = 1 + 5 + 1 + 20 + 1 + 64 + 1, /* with a NUL */
	PORT_PASS_ADDRESS_S = 5 * 60,
	PORT_PASS_COOKIE_S = 12 * 3600,
};

enum port_pass_kind { PASS_ADDRESS = 'a', PASS_COOKIE = 'c' };

struct port_pass {
	enum port_pass_kind kind;
	uint16_t port;
	uint64_t expires_s; /* since 1970 */
};

void port_pass_make(const struct port_pass *p, const char *sandbox, struct bytes token,
		    char ret[static PORT_PASS_SIZE]);

/* What it says of itself: is it a pass, and not over? Nothing of that is proven. */
bool port_pass_claims(struct bytes text, uint64_t now_s, struct port_pass *ret);

/* Is it one of that sandbox, made with that token, and not over? Which kind and port it is for is
 * the caller's to look at. What it takes to compare tells nothing of the right one. */
bool port_pass_right(struct bytes text, const char *sandbox, struct bytes token, uint64_t now_s,
		     struct port_pass *ret);
