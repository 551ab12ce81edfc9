/* credentials.h - give up root for good: ids, groups, capabilities, and the way back. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct credentials {
	uid_t uid;
	gid_t gid;
	uint64_t keep; /* capabilities kept across exec, as a bit set; 0 for none */
};

/* Afterwards: no supplementary groups, no capability but `keep` in any set, the bounding set
 * included, and no_new_privs. A process that cannot become this must not go on. */
int credentials_become(const struct credentials *c, struct err *err) NODISCARD;
