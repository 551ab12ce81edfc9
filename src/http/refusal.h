/* refusal.h - a client is told in HTTP why what it asked for went nowhere: with a page where it
 * wants one, as a browser does, else with lines of text. Both are whole in themselves, and end the
 * conversation.
 */
#pragma once

#include "base/bytes.h"

enum { REFUSAL_MAX = 16 * 1024 }; /* of an answer; a longer one is an error */

struct refusal {
	unsigned int status; /* 502: could not be reached. Others: may not be */
	const char *host;    /* a name or an address; "": nobody said */
	const char *why;
	const char *fix; /* who would have to change what; NULL: nobody can */
};

enum refusal_form { REFUSAL_LINES, REFUSAL_PAGE };

/* What the client says it accepts. `first`: what it sent, head first; what is none wants lines. */
enum refusal_form refusal_form(struct bytes first);

/* Appended: the whole answer. Whatever the texts have in them is text in a page, too. */
int refusal_put(struct buf *out, const struct refusal *r, enum refusal_form form,
		struct err *err) NODISCARD;
