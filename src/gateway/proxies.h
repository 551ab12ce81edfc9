/* proxies.h - somebody else's proxies before us: whose word is believed of who a client is.
 *
 * What a listed address says of its clients is believed, in one of two ways: at the beginning of a
 * connection, before TLS and HTTP (the PROXY protocol), or in fields of each request. What anybody
 * else says of that kind is not read, and does not reach guests. A listed proxy brings the clients
 * of many, so limits per address hold for those that it names and not for itself; what holds for
 * all together holds for it as well.
 */
#pragma once

#include "gateway/parse/forwarded.h"
#include "http/request.h"
#include "net/listen.h"

enum {
	PROXIES_MAX = 64,           /* addresses and ranges */
	PROXIES_SAY_MS = 60 * 1000, /* how often it is logged that one was refused */
};

struct proxies { /* embedded by its owner; all zero: none are listed */
	struct ip_range at[PROXIES_MAX];
	size_t n;
	bool introduce;                 /* they speak the PROXY protocol */
	size_t requests_max;            /* at once, of one address that they name; 0: any number */
	struct address_counts requests; /* those */
	uint64_t said_ms, unsaid;       /* when the last refusal was logged, how many were not */
};

/* Addresses and ranges, with spaces between them. */
int proxies_parse(struct proxies *p, const char *list, struct err *err) NODISCARD;

/* For a listener (listener_ops). */
enum listener_peer proxies_kind_of(const struct proxies *p, const struct addr *peer);
int proxies_read_introduction(struct bytes so_far, struct net_peer *who, size_t *ret_more,
			      struct err *err) NODISCARD;
void proxies_refused(struct proxies *p, const struct addr *proxy, const struct err *why,
		     uint64_t now_ms);

/* For each request, before anything else: sets who asks. False: that is one more of its address
 * than may be, and it was answered. */
bool proxies_admit(struct proxies *p, struct http_request *rq);
