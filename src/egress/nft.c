/* nft.c - see nft.h. */
#include "egress/nft.h"

#include <netdb.h>

/* `protocols`: "tcp" or "tcp, udp". */
static int let(const struct addr *to, const char *protocols, struct buf *out, struct err *err)
{
	char ip[NI_MAXHOST], port[NI_MAXSERV];

	if (getnameinfo((const struct sockaddr *)&to->at, to->len, ip, sizeof(ip), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return err_set(err, ERR_INVALID, 0, "an address of another kind");
	return buf_printf(out, err, "\t\t%s daddr %s meta l4proto { %s } th dport %s accept\n",
			  to->at.ss_family == AF_INET6 ? "ip6" : "ip", ip, protocols, port);
}

static int let_services(const struct policy_ground *g, struct buf *out, struct err *err)
{
	char ip[IP4_TEXT_MAX];
	struct addr to;

	for (size_t i = 0; i < g->n_services; i++) {
		ip4_text(g->services[i].ip, ip);
		if (addr_ip(ip, g->services[i].port, &to, err) < 0 || let(&to, "tcp", out, err) < 0)
			return -1;
	}
	return 0;
}

static int let_resolvers(const struct question_servers *s, struct buf *out, struct err *err)
{
	for (size_t i = 0; i < s->n; i++)
		if (let(&s->all[i], "tcp, udp", out, err) < 0)
			return -1;
	return 0;
}

/* Addresses of the host itself are dropped though they may be public. */
static int drop_rest(struct buf *out, struct err *err)
{
	if (buf_printf(out, err, "\t\tip daddr { ") < 0 || ip4_special_put(out, err) < 0)
		return -1;
	return buf_printf(
		out, err,
		" } counter drop\n"
		"\t\tfib daddr type { local, broadcast, multicast, anycast } counter drop\n"
		"\t\tmeta nfproto ipv6 counter drop\n"
		"\t}\n");
}

/* Who is meant is said by what must match: what the kernel sends itself, a reset or a neighbour's
 * question, is nobody's, and does not match "another user" either. */
static int for_user(uid_t uid, struct buf *out, struct err *err)
{
	return buf_printf(out, err,
			  "\tchain out {\n"
			  "\t\ttype filter hook output priority filter; policy accept;\n"
			  "\t\tmeta skuid %u goto locked\n"
			  "\t}\n}\n",
			  uid);
}

int nft_rules(uid_t uid, const struct policy_ground *g, const struct question_servers *resolvers,
	      const struct addr *proxy, struct buf *out, struct err *err)
{
	/* made, removed and made again: the first time there is nothing to remove */
	if (buf_printf(out, err,
		       "table inet " NFT_TABLE "\ndelete table inet " NFT_TABLE
		       "\ntable inet " NFT_TABLE " {\n\tchain locked {\n") < 0 ||
	    let_resolvers(resolvers, out, err) < 0 || let_services(g, out, err) < 0 ||
	    (proxy && let(proxy, "tcp", out, err) < 0) || drop_rest(out, err) < 0)
		return -1;
	return for_user(uid, out, err);
}
