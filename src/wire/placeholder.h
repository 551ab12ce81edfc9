/* placeholder.h - what stands in the value of a header for something that is put there later:
 * ${e2b.secrets.NAME}, ${e2b.identity.tokens.NAME}. All other text means itself.
 */
#pragma once

#include "base/bytes.h"

enum { SECRET_NAME_MAX = 128, SECRET_NAME_SIZE = SECRET_NAME_MAX + 1 };

enum placeholder_kind {
	PLACEHOLDER_NONE, /* no more: `before` is the rest */
	PLACEHOLDER_SECRET,
	PLACEHOLDER_IDENTITY,
	PLACEHOLDER_BROKEN, /* begun and not ended, one in another, or not a name */
};

struct placeholder {
	struct bytes before;           /* the text up to it */
	struct bytes name;             /* as it is written */
	char secret[SECRET_NAME_SIZE]; /* of a secret: its name as all are compared */
};

/* The first in *rest, which then begins behind it. */
enum placeholder_kind placeholder_next(struct bytes *rest, struct placeholder *ret);

/* A secret's name in the form in which all are compared: letters, digits, _ and -, in lower case,
 * without spaces around it. False: it is none; names that look like ids (sec_) are not either. */
bool secret_name_normal(struct bytes text, char ret[static SECRET_NAME_SIZE]);
