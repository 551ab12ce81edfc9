/* known_names.h - which names a sandbox was given which addresses for, the newest.
 *
 * Where nothing on a connection says a name (SSH, SMTP, databases), the address it goes to decides,
 * and an address that was given for an allowed name is as good as that name.
 */
#pragma once

#include "wire/dns_answer.h"
#include "wire/json.h"

enum {
	KNOWN_NAMES_MAX = 512, /* pairs of a name and an address; the oldest goes first */
	KNOWN_TOLD_MAX = 64,   /* that survive a pause: the newest */
};

struct known_name {
	uint32_t ip;
	char *name;
};

struct known_names {            /* all zero: none */
	struct known_name *all; /* owned, the oldest first */
	size_t n;
};

/* What was known already is the newest again. Without memory it is not remembered. */
void known_names_add(struct known_names *k, const char *name, const struct dns_addresses *given);
/* The names of an address, the newest first: `at` counts from 0. NULL: no more. */
const char *known_names_of(const struct known_names *k, uint32_t ip, size_t at);
void known_names_done(struct known_names *k);

/* [["example.com","1.2.3.4"],...], the oldest first: to be told, and added again. */
int known_names_tell(const struct known_names *k, struct buf *out, struct err *err) NODISCARD;
/* Member "known" of a sandbox's rules, if any; nothing of it is added on failure. */
int known_names_read(struct known_names *k, const json_t *rules, struct err *err) NODISCARD;
