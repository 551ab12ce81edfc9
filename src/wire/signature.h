/* signature.h - URLs that carry their own permission: whoever has one may read or write one file.
 *
 *	"v1_" base64( SHA-256( path ":" operation ":" user ":" token [ ":" expiration ] ) )
 *
 * Standard alphabet, no padding. A rule of the E2B API. The token is that of the sandbox.
 */
#pragma once

#include "wire/sha256.h"

enum { SIGNATURE_LEN = 46, SIGNATURE_TEXT_MAX = 64 }; /* the latter with its NUL */

#define SIGNATURE_INVALID "invalid signature"

struct signed_url {
	struct bytes path, operation, user; /* as the client wrote them; any may be empty */
	bool has_expiration;
	int64_t expiration; /* seconds since 1970 */
};

void signature_make(const struct signed_url *u, struct bytes token,
		    char ret[static SIGNATURE_TEXT_MAX]);

/* The same in two steps, for who has many tokens to try: what comes before the token is hashed
 * once. */
void signature_begin(const struct signed_url *u, struct sha256 *ret);
void signature_end(const struct sha256 *begun, const struct signed_url *u, struct bytes token,
		   char ret[static SIGNATURE_TEXT_MAX]);

bool signature_is_shaped(struct bytes given); /* could it be one at all? */

/* ERR_DENIED, with the text that clients compare. In constant time. */
int signature_check(const struct signed_url *u, struct bytes token, struct bytes given, int64_t now,
		    struct err *err) NODISCARD;
