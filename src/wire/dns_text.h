/* dns_text.h - lines of text in answers of a resolver: a TXT record (RFC 1035), and the reason why
 * a name is refused (RFC 8914).
 */
#pragma once

#include "wire/dns_answer.h"

enum {
	DNS_TYPE_TXT = 16,
	DNS_LINE_MAX = 255,
	DNS_LINES_MAX = 6,
	DNS_PLAIN_MAX = 512,  /* an answer to who does not say that it takes more */
	DNS_EDNS_MAX = 1232,  /* to who does: what fits into every path */
	DNS_REASON_MAX = 200, /* of a refusal; what is longer is cut */
};

struct dns_lines { /* all zero: none */
	char line[DNS_LINES_MAX][DNS_LINE_MAX + 1];
	size_t n;
};

/* One more; one too many, or the end of one that is too long, is left out. */
void dns_lines_add(struct dns_lines *l, const char *fmt, ...) PRINTF(2, 3);

/* Append the whole answer: one record with the lines, of which the last are left out where they do
 * not fit. None: the name has nothing of that type. */
int dns_write_lines(const struct dns_query *q, const struct dns_lines *l, struct buf *out,
		    struct err *err) NODISCARD;
/* The answer that there is no such name; with EDNS, the reason goes along. */
int dns_write_blocked(const struct dns_query *q, const char *why, struct buf *out,
		      struct err *err) NODISCARD;

/* Ask for the lines of a normal name. */
int dns_write_lines_query(uint16_t id, const char *name, struct buf *out,
			  struct err *err) NODISCARD;
/* `query` as it was written. Bytes that are not printable ASCII are read as '?'. False: no answer
 * to it, or none with lines. */
bool dns_read_lines(struct bytes in, struct bytes query, struct dns_lines *ret);
