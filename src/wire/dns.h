/* dns.h - a resolver's question, and the answer that there is nothing: RFC 1035, RFC 6891.
 *
 * Strict: one question of the standard kind, its name spelled out, at most an OPT record after it,
 * and nothing behind. Everything else is unreadable.
 */
#pragma once

#include "base/bytes.h"

enum {
	DNS_HEADER_SIZE = 12,
	DNS_NAME_MAX = 255, /* on the wire: lengths, labels and the root */
	DNS_LABEL_MAX = 63,
	DNS_QUERY_MAX = 512, /* a datagram that asks */
	DNS_OPT_SIZE = 11,   /* without options, as in our answers */
	DNS_REPLY_MAX = DNS_HEADER_SIZE + DNS_NAME_MAX + 4 + DNS_OPT_SIZE,
};

enum dns_rcode { DNS_NOERROR, DNS_FORMERR, DNS_SERVFAIL, DNS_NXDOMAIN };

struct dns_query {
	uint16_t id;
	bool recursion; /* was asked for, and is said in the answer */
	bool edns;      /* an OPT record came along, so one goes back */
	uint16_t type, class;
	struct bytes question; /* name, type and class as they were sent; borrowed */
};

enum dns_verdict {
	DNS_ASKS,       /* all of *ret is filled */
	DNS_UNREADABLE, /* somebody asks, not in a way we read: id and recursion alone are filled */
	DNS_SILENCE,    /* not a question at all; an answer could start an endless exchange */
};

/* All of a datagram. */
enum dns_verdict dns_read_query(struct bytes in, struct dns_query *ret);

/* Append the whole answer, which holds no records. One to an unreadable query is DNS_FORMERR and
 * has no question either. */
int dns_write_refusal(const struct dns_query *q, enum dns_rcode code, struct buf *out,
		      struct err *err) NODISCARD;
