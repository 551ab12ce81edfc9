/* known_names.h - which names a sandbox was given which addresses for, the newest.
 *
 * Where nothing on a connection says a name (SSH, SMTP, databases), the address it goes to decides,
 * and an address that was given for an allowed name is as good as that name.
 */
#pragma once

#include "wire/dns_answer.h"

enum { KNOWN_NAMES_MAX = 512 }; /* pairs of a name and an address; the oldest goes first */

struct known_name {
	uint32_t ip;
	char *name;
};

struct known_names {            /* all zero: none */
	struct known_name *all; /* owned, a ring */
	size_t n, next;
};

/* Without memory it is not remembered. */
void known_names_add(struct known_names *k, const char *name, const struct dns_addresses *given);
/* The names of an address, the newest first: `at` counts from 0. NULL: no more. */
const char *known_names_of(const struct known_names *k, uint32_t ip, size_t at);
void known_names_done(struct known_names *k);
