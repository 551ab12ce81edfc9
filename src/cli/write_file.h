/* write_file.h - a file comes whole or not at all, also after a power cut. */
#pragma once

#include <sys/types.h>

#include "base/bytes.h"

struct write_how {
	mode_t mode;
	uid_t owner;
	gid_t group;  /* (gid_t)-1: as it comes */
	bool replace; /* one that is there; else that is an error, ERR_EXISTS */
};

/* In `dir`, under `name`. Its draft, .NAME.new, is whatever an earlier attempt left. */
int write_file(int dir, const char *name, struct bytes text, const struct write_how *how,
	       struct err *err) NODISCARD;

/* In the place of whatever is there, which is gone while it is written: a draft, for who renames
 * it. It is its owner's before there is anything in it. `replace` is not looked at. */
int write_new(int dir, const char *name, struct bytes text, const struct write_how *how,
	      struct err *err) NODISCARD;
