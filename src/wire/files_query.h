/* files_query.h - the query of /files: which path, whose, and a permission that comes with it.
 *
 *	path=a.txt&username=user&signature=v1_...&signature_expiration=1767225600
 *
 * Agent, gateway and node read it with this, so that they cannot differ in what was signed.
 */
#pragma once

#include "wire/signature.h"

enum {
	FILES_PATH_MAX = 4096,
	FILES_USER_MAX = 512,
	FILES_SIGNATURE_MAX = 256,
	FILES_NUMBER_MAX = 32,
};

struct files_query { /* decoded; all zero: none. Done with files_query_done() in any case. */
	struct buf path, user, signature, expiration;
	bool has_path, has_user, has_signature, has_expiration;
};

/* ERR_INVALID: given twice, too long, or not well encoded. Others than these four are ignored. */
int files_query_parse(struct bytes query, struct files_query *ret, struct err *err) NODISCARD;
void files_query_done(struct files_query *q);

/* What its signature is of, for the operation "read" or "write"; borrows from q. ERR_INVALID: the
 * expiration is no number. */
int files_query_signed(const struct files_query *q, const char *operation, struct signed_url *ret,
		       struct err *err) NODISCARD;
