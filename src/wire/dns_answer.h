/* dns_answer.h - addresses of names: asked for, read, and told on (RFC 1035, RFC 6891).
 *
 * What an answer says is believed only as far as it answers the question: the same id, the same
 * question, spelled the same, and addresses that its own aliases lead to.
 */
#pragma once

#include "wire/dns.h"
#include "wire/domain.h"

enum {
	DNS_ANSWER_MAX = 4096,  /* a datagram of a resolver, or its message over TCP */
	DNS_ADDRESSES_MAX = 16, /* kept of one answer */
	DNS_RECORDS_MAX = 128,  /* looked at */
	DNS_ALIASES_MAX = 8,    /* followed */
	DNS_TYPE_A = 1,
	DNS_CLASS_INTERNET = 1,
	DNS_RESOLVED_MAX = DNS_REPLY_MAX + DNS_ADDRESSES_MAX * 16,
};

struct dns_addresses {
	uint32_t ip[DNS_ADDRESSES_MAX];
	size_t n;
	uint32_t ttl_s; /* the shortest on the way to them */
};

/* The name asked for, as rules have it. False: no host has such a name. */
bool dns_query_name(const struct dns_query *q, char ret[static DOMAIN_SIZE]);

/* Ask for the addresses of a normal name. `caps`: which of its letters are sent as capitals, which
 * a forger has to guess too. */
int dns_write_query(uint16_t id, const char *name, uint64_t caps, struct buf *out,
		    struct err *err) NODISCARD;

enum dns_reading {
	DNS_ANSWERED, /* *ret is filled; none: the name has no address */
	DNS_NO_NAME,  /* there is no such name */
	DNS_CUT,      /* it has to be asked for again, over TCP */
	DNS_FAILED,   /* the resolver says that it cannot tell */
	DNS_NOT_OURS, /* it answers something else, or nothing */
};

/* `query` as it was written. */
enum dns_reading dns_read_answer(struct bytes in, struct bytes query, struct dns_addresses *ret);

/* To a guest: what it may know. None: the name has nothing of that type. */
int dns_write_answer(const struct dns_query *q, const struct dns_addresses *a, struct buf *out,
		     struct err *err) NODISCARD;
