/* signature.h - URLs that carry their own permission: whoever has one may read or write one file.
 *
 *	"v1_" base64( SHA-256( path ":" operation ":" user ":" token [ ":" expiration ] ) )
 *
 * Standard alphabet, no padding. A rule of the E2B API.
 */
#pragma once

#include "base/bytes.h"

enum { SIGNATURE_TEXT_MAX = 64 }; /* with its NUL; the real one has 46 characters */

struct signed_url {
	struct bytes path, operation, user; /* as the client wrote them; any may be empty */
	bool has_expiration;
	int64_t expiration; /* seconds since 1970 */
};

void signature_make(const struct signed_url *u, struct bytes token,
		    char ret[static SIGNATURE_TEXT_MAX]);

/* ERR_DENIED, with the text that clients compare. In constant time. */
int signature_check(const struct signed_url *u, struct bytes token, struct bytes given, int64_t now,
		    struct err *err) NODISCARD;
