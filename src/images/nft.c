/* nft.c - see nft.h. */
#include "images/nft.h"

#include <arpa/inet.h>

#include "net/addr.h"
#include "wire/ip.h"
#include "wire/ip_range.h"

enum { V4_FIRST = 12, V4_BITS = 96, RANGE_TEXT = INET6_ADDRSTRLEN + 4 };

static bool is_v4(const struct ip_range *r)
{
	static const uint8_t mapped[V4_FIRST] = { [10] = 0xff, [11] = 0xff };

	return r->bits >= V4_BITS && memcmp(r->first.at, mapped, sizeof(mapped)) == 0;
}

/* "ip daddr 10.0.0.0/8" */
static int match(const struct ip_range *r, struct buf *out, struct err *err)
{
	char text[RANGE_TEXT];
	bool v4 = is_v4(r);

	if (!inet_ntop(v4 ? AF_INET : AF_INET6, r->first.at + (v4 ? V4_FIRST : 0), text,
		       sizeof(text)))
		return err_set(err, ERR_INVALID, 0, "an address of another kind");
	return buf_printf(out, err, "\t\t%s daddr %s/%d", v4 ? "ip" : "ip6", text,
			  v4 ? r->bits - V4_BITS : r->bits);
}

static int let(struct bytes text, const char *name, const char *what, struct buf *out,
	       struct err *err)
{
	struct ip_range r;

	if (!ip_range_parse(text, &r))
		return err_set(err, ERR_INVALID, 0, "%s: not an address or a range: %.*s", name,
			       (int)text.len, (const char *)text.ptr);
	if (match(&r, out, err) < 0)
		return -1;
	return buf_printf(out, err, " %s accept\n", what);
}

static int let_words(const char *words, const char *name, const char *what, struct buf *out,
		     struct err *err)
{
	struct bytes rest = bytes_str(words), word;

	while (bytes_next(&rest, ' ', &word)) {
		word = bytes_trim(word);
		if (word.len > 0 && let(word, name, what, out, err) < 0)
			return -1;
	}
	return 0;
}

#define ASK_NAMES "meta l4proto { tcp, udp } th dport 53"

/* What cannot be read there is not let out. */
static int let_resolv_conf(struct bytes text, struct buf *out, struct err *err)
{
	static const char word[] = "nameserver";
	struct bytes line;
	struct ip_range r;

	while (bytes_next(&text, '\n', &line)) {
		if (!bytes_starts(line, BYTES_LIT(word)))
			continue;
		line = bytes_trim(bytes_tail(line, sizeof(word) - 1));
		if (ip_range_parse(line, &r) && let(line, word, ASK_NAMES, out, err) < 0)
			return -1;
	}
	return 0;
}

static int let_proxy(const char *text, struct buf *out, struct err *err)
{
	uint8_t octets[ADDR_KEY];
	struct ip_range r = { .bits = 8 * IP_SIZE };
	struct addr at;

	if (!text[0])
		return 0;
	if (addr_parse(bytes_str(text), &at, err) < 0 || !addr_octets(&at, octets))
		return err_set(err, ERR_INVALID, 0, "proxy: not address:port");
	memcpy(r.first.at, octets, sizeof(r.first.at));
	if (match(&r, out, err) < 0)
		return -1;
	return buf_printf(out, err, " tcp dport %u accept\n", addr_port(&at));
}

/* The rest of the host's own networks, and what is no TCP. */
static int drop_rest(struct buf *out, struct err *err)
{
	if (buf_printf(out, err, "\t\tip daddr { ") < 0 || ip4_special_put(out, err) < 0)
		return -1;
	return buf_printf(
		out, err,
		" } counter reject\n"
		"\t\tfib daddr type { local, broadcast, multicast, anycast } counter reject\n"
		"\t\tip6 daddr != 2000::/3 counter reject\n"
		"\t\tmeta l4proto != tcp counter reject\n"
		"\t}\n");
}

int nft_rules(uid_t uid, const struct config_value *set, struct bytes resolv_conf, struct buf *out,
	      struct err *err)
{
	bool named = set[SET_RESOLVERS].text[0];

	/* made, removed and made again: the first time there is nothing to remove */
	if (buf_printf(out, err,
		       "table inet " NFT_TABLE "\ndelete table inet " NFT_TABLE
		       "\ntable inet " NFT_TABLE " {\n\tchain locked {\n") < 0 ||
	    (named ? let_words(set[SET_RESOLVERS].text, "resolvers", ASK_NAMES, out, err)
		   : let_resolv_conf(resolv_conf, out, err)) < 0 ||
	    let_words(set[SET_NETWORKS].text, "networks", "meta l4proto tcp", out, err) < 0 ||
	    let_proxy(set[SET_PROXY].text, out, err) < 0 || drop_rest(out, err) < 0)
		return -1;
	return buf_printf(out, err,
			  "\tchain out {\n"
			  "\t\ttype filter hook output priority filter; policy accept;\n"
			  "\t\tmeta skuid %u goto locked\n"
			  "\t}\n}\n",
			  uid);
}
