/* domain.h - names of hosts as rules, questions and greetings write them.
 *
 * ASCII letters, digits, - and _; labels of 1 to 63, 253 in all; compared in lower case, without
 * the dot that may end them. What a libc would read as an address, in whatever notation, is no
 * name: its last label is a number.
 */
#pragma once

#include "base/bytes.h"

enum { DOMAIN_MAX = 253, DOMAIN_SIZE = DOMAIN_MAX + 1 };

/* A name in the form in which all are compared. False: it is none. */
bool domain_normal(struct bytes text, char ret[static DOMAIN_SIZE]);

/* The same with a port behind it, or without: "name", "name:443". *ret_port is 0 without. */
bool domain_and_port(struct bytes text, char ret[static DOMAIN_SIZE], uint16_t *ret_port);

/* The same for a pattern: a name, *.name, or * alone. */
bool domain_pattern(struct bytes text, char ret[static DOMAIN_SIZE]);

/* Both normal. *.x is every name below x, at any depth, and not x itself. */
bool domain_match(const char *pattern, const char *name);

/* Of two patterns that match one name: is `a` the closer one? A name before a wildcard, a long
 * wildcard before a short one. */
bool domain_is_closer(const char *a, const char *b);
