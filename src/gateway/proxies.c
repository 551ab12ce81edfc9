/* proxies.c - see proxies.h. */
#include "gateway/proxies.h"

#include "base/log.h"
#include "wire/proxy_v2.h"

static_assert((int)PROXY_V2_MAX <= (int)INTRODUCTION_MAX, "a header must fit");
static_assert((int)IP_SIZE == (int)ADDR_KEY, "both are all of an address");

/* --- the list ------------------------------------------------------------------------------ */

static int add(struct proxies *p, struct bytes text, struct err *err)
{
	struct ip_range *r = &p->at[p->n];

	if (p->n == PROXIES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "proxies: more than %d", PROXIES_MAX);
	if (!ip_range_parse(text, r))
		return err_set(err, ERR_INVALID, 0,
			       "proxies: `%.*s` is no address and no range such as 192.0.2.0/24",
			       (int)bytes_head(text, ADDR_TEXT_MAX).len, (const char *)text.ptr);
	if (r->bits == 0 || r->bits == 96)
		return err_set(err, ERR_INVALID, 0, "proxies: `%.*s` would believe everybody",
			       (int)text.len, (const char *)text.ptr);
	p->n++;
	return 0;
}

int proxies_parse(struct proxies *p, const char *list, struct err *err)
{
	struct bytes rest = bytes_str(list), one;

	while (bytes_next(&rest, ' ', &one))
		if (one.len > 0 && add(p, one, err) < 0)
			return -1;
	return 0;
}

static bool is_listed(const struct proxies *p, const struct addr *who, struct ip *ret)
{
	const struct forwarded_trust trust = { p->at, p->n };

	return addr_octets(who, ret->at) && forwarded_trusts(&trust, ret);
}

/* --- connections --------------------------------------------------------------------------- */

enum listener_peer proxies_kind_of(const struct proxies *p, const struct addr *peer)
{
	struct ip ip;

	if (p->n == 0 || !is_listed(p, peer, &ip))
		return LISTENER_CLIENT;
	return p->introduce ? LISTENER_INTRODUCES : LISTENER_PROXY;
}

int proxies_read_introduction(struct bytes so_far, struct net_peer *who, size_t *ret_more,
			      struct err *err)
{
	struct proxy_v2 said;

	switch (proxy_v2_read(so_far, &said, ret_more, err)) {
	case DECODE_MORE:
		return 0;
	case DECODE_BAD:
		return -1;
	case DECODE_OK:
		break;
	}
	*ret_more = 0;
	if (said.has_client)
		addr_of_octets(said.client.at, said.port, &who->at);
	who->secure = said.tls;
	who->proxied = true;
	return 0;
}

void proxies_refused(struct proxies *p, const struct addr *proxy, const struct err *why,
		     uint64_t now_ms)
{
	char text[ADDR_TEXT_MAX];

	if (p->said_ms != 0 && now_ms - p->said_ms < PROXIES_SAY_MS) {
		p->unsaid++;
		return;
	}
	addr_text(proxy, text);
	log_warn("a connection of proxy %s is closed: %s (%llu more since this was last said)",
		 text, why->msg, (unsigned long long)p->unsaid);
	p->said_ms = now_ms;
	p->unsaid = 0;
}

/* --- requests ------------------------------------------------------------------------------ */

/* False: too many, or no memory to count one more. */
static bool count(struct proxies *p, struct http_request *rq, const struct addr *who)
{
	struct address_count *of;

	if (p->requests_max == 0)
		return true;
	of = address_counts_add(&p->requests, who);
	if (of && of->n <= p->requests_max) {
		http_request_count(rq, of);
		return true;
	}
	address_count_drop(of);
	http_fail(rq, 429,
		  "too many requests at once from one address: end some, or ask the operator to "
		  "raise address_connections_max");
	return false;
}

bool proxies_admit(struct proxies *p, struct http_request *rq)
{
	const struct forwarded_trust trust = { p->at, p->n };
	const struct http1_head *h = http_request_head(rq);
	const struct addr *peer = http_request_peer(rq);
	struct net_peer who = { .secure = http_request_secure(rq), .proxied = true };
	struct ip ip;

	if (p->n == 0 || !peer || !is_listed(p, peer, &ip))
		return true;
	who.at = *peer;
	(void)forwarded_proto(h, &who.secure);
	if (forwarded_client(h, &trust, &ip))
		addr_of_octets(ip.at, 0, &who.at);
	who.unnamed = forwarded_trusts(&trust, &ip);
	http_request_came_from(rq, &who);
	/* nobody but a listed proxy is known: it is not counted as one address */
	return who.unnamed || count(p, rq, &who.at);
}
