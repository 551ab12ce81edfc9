/* why.h - a guest asks whether it may reach a host, and who would have to change what: by asking
 * for the text (TXT) of HOST.why.hotcell.internal, or _PORT.HOST.why.hotcell.internal.
 *
 * It is told of its own rules and of the operator's as far as they hold for that host, and of what
 * kind an address is. Not which address, nor what else is listed, nor what others may.
 */
#pragma once

#include "egress/reach.h"
#include "wire/dns_text.h"

#define WHY_DOMAIN ".why" POLICY_SERVICE_DOMAIN

enum { WHY_SHOWN_MAX = 100 }; /* of a host's name in a line; a longer one is "it" */

struct why_question {
	char name[DOMAIN_SIZE]; /* empty: it is an address */
	uint32_t ip;
	uint16_t port; /* 0: none given */
};

bool is_why(const char *name); /* a normal one */
/* Of a name that is. False: neither a name of a host nor an address of IPv4. */
bool why_read(const char *name, struct why_question *ret);

/* Without a look at the addresses that the name has. */
struct policy_verdict why_decide(const struct policy *p, const struct known_names *k,
				 const struct why_question *q);
/* "yes" or "no", the reason, and who would have to change what. */
void why_tell(const struct policy *p, const struct why_question *q, const struct policy_verdict *v,
	      struct dns_lines *ret);
/* Who would have to change what for this one refusal, in one line. False: nobody can. */
bool why_fix(enum policy_cause cause, const char *host, char ret[static DNS_LINE_MAX + 1]);
