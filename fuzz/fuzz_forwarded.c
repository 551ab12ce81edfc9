/* fuzz_forwarded.c - promises of forwarded: whatever a client writes in front of what listed
 * proxies add changes nothing; every hop that is believed was said by a listed one. */
#include "fuzz/must.h"
#include "gateway/parse/forwarded.h"

enum { FIELDS = 8 };

static struct ip ip_of(const char *text)
{
	struct ip ip;

	MUST(ip_parse(bytes_str(text), &ip));
	return ip;
}

static bool is_same(const struct ip *a, const struct ip *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The client's lines, then the one that the proxy before us adds. */
static void cut_fields(struct bytes in, struct http1_head *h, struct bytes last)
{
	struct bytes line;

	while (h->n_fields < FIELDS && bytes_next(&in, '\n', &line))
		h->fields[h->n_fields++] =
			(struct http1_field){ BYTES_LIT("X-Forwarded-For"), bytes_trim(line) };
	if (last.len > 0)
		h->fields[h->n_fields++] =
			(struct http1_field){ BYTES_LIT("x-forwarded-for"), last };
}

static void must_not_be_moved(struct bytes in, const struct forwarded_trust *t)
{
	static const char *const added[] = { "203.0.113.9", "203.0.113.9:80, 10.1.2.3",
					     "[2001:db8::7]:1,10.0.0.1 , 10.255.255.255" };

	for (size_t i = 0; i < COUNT(added); i++) {
		struct ip who = ip_of("10.0.0.1"),
			  want = ip_of(i < 2 ? "203.0.113.9" : "2001:db8::7");
		struct http1_head h = { 0 };

		cut_fields(in, &h, bytes_str(added[i]));
		MUST(forwarded_client(&h, t, &who));
		MUST(is_same(&who, &want));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct ip_range listed;
	const struct forwarded_trust t = { &listed, 1 };
	struct ip peer = ip_of("10.0.0.1"), who = peer, stranger = ip_of("192.0.2.7");
	struct http1_head h = { 0 };
	bool secure = false;

	MUST(ip_range_parse(BYTES_LIT("10.0.0.0/8"), &listed));
	must_not_be_moved(in, &t);
	cut_fields(in, &h, (struct bytes){ 0 });
	MUST(forwarded_client(&h, &t, &who) || is_same(&who, &peer));
	who = stranger; /* whose word is worth nothing */
	MUST(!forwarded_client(&h, &t, &who) && is_same(&who, &stranger));
	for (size_t i = 0; i < h.n_fields; i++)
		h.fields[i].name = BYTES_LIT("X-Forwarded-Proto");
	MUST(forwarded_proto(&h, &secure) == (h.n_fields > 0));
	if (forwarded_is_field(in))
		MUST(size >= sizeof("forwarded") - 1);
	return 0;
}
