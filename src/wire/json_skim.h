/* json_skim.h - the members of an object, found without making values of them.
 *
 * For objects that are large and hostile: a tree of values takes twenty times the memory of a text
 * like [0,0,0]. Here nothing is made. Names and values borrow from the text, and a string is
 * written out piece by piece.
 */
#pragma once

#include "base/bytes.h"

enum {
	JSON_SKIM_DEPTH_MAX = 512,
	JSON_SKIM_MEMBERS_MAX = 64,
	JSON_SKIM_CHARACTER = 4, /* bytes of the longest character */
};

struct json_span {
	struct bytes name;  /* between its quotes, as it is written */
	struct bytes value; /* as it is written, blanks around it left out */
};

/* All of `in`, one object, as strict as json_decode() is but for this: NUL may be in a string, a
 * number may have any size, and a member inside of a value may be given twice. Returns how many
 * members it has, or -1. */
int json_skim(struct bytes in, struct json_span ret[static JSON_SKIM_MEMBERS_MAX],
	      struct err *err) NODISCARD;

/* Is this value a string? Then *ret is what stands between its quotes. */
bool json_skim_string(struct bytes value, struct bytes *ret);

/* Take characters off the front of such a text, and write them in UTF-8, as many as fit: the number
 * of bytes, 0 at its end. `size` is JSON_SKIM_CHARACTER at least. */
size_t json_skim_take(struct bytes *text, uint8_t *out, size_t size);
