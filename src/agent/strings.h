/* strings.h - a list of owned C strings that ends with NULL: argv and environ. */
#pragma once

#include "base/bytes.h"

enum {
	STRINGS_MAX = 8 * 1024,              /* entries of one list */
	STRINGS_BYTES_MAX = 4 * 1024 * 1024, /* all of them together; exec takes 2 MiB or less */
};

struct strings {  /* all zero: empty */
	char **v; /* NULL while nothing was added */
	size_t n, cap, bytes;
};

/* Refused: a NUL inside, or one of the limits above. */
int strings_add(struct strings *s, struct bytes text, struct err *err) NODISCARD;

/* name=value, in place of an entry of that name if there is one. An empty name, or one with '=',
 * is refused. */
int strings_set_env(struct strings *s, struct bytes name, struct bytes value,
		    struct err *err) NODISCARD;

const char *strings_env(const struct strings *s, const char *name); /* NULL: not there */
void strings_done(struct strings *s);
