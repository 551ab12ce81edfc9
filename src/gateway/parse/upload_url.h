/* upload_url.h - URLs that let their holder upload one file for one team, for a while. Pure.
 *
 *	SCHEME://HOST/uploads/TEAM/HASH?expires=SECONDS&signature=HEX
 *
 * The signature is an HMAC of team, hash and time with a key that gateways alone have.
 */
#pragma once

#include "base/bytes.h"

enum {
	UPLOAD_URL_S = 3600, /* how long one is good for */
	UPLOAD_SIGNATURE_HEX = 64,
	UPLOAD_URL_MAX = 1024,
};

struct upload_claim {
	const char *team, *hash;
	uint64_t expires_s; /* since 1970 */
};

void upload_sign(const struct upload_claim *c, struct bytes key,
		 char ret[static UPLOAD_SIGNATURE_HEX + 1]);
/* For a client that called us by `host`, as its request says. ERR_INVALID: that is no host. */
int upload_url_make(const struct upload_claim *c, struct bytes key, bool secure, struct bytes host,
		    struct buf *out, struct err *err) NODISCARD;
/* The query of such a URL. ERR_DENIED: it was not signed so, or its time is over. */
int upload_url_check(const char *team, const char *hash, struct bytes query, struct bytes key,
		     uint64_t now_s, struct err *err) NODISCARD;
