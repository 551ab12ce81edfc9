/* leaves.h - who a worker is towards its guest: a certificate for each name, made when it is first
 * asked for.
 */
#pragma once

#include "tls/authority.h"
#include "wire/domain.h"

enum { LEAVES_MAX = 64 }; /* kept; the oldest goes first */

struct leaf {
	char name[DOMAIN_SIZE];
	struct identity *identity;
};

struct leaves {                   /* all zero but for the branch: none yet */
	struct authority *branch; /* owned */
	struct leaf all[LEAVES_MAX];
	size_t next;
};

/* Borrowed until the next call. ERR_DENIED: it has no branch. */
int leaves_get(struct leaves *l, const char *name, const struct identity **ret,
	       struct err *err) NODISCARD;
void leaves_done(struct leaves *l);
