/* fuzz_proxy_v2.c - promises of proxy_v2: who reads only what is asked for has read the header and
 * no byte of what follows it; how it was cut into pieces, and what follows, changes nothing. */
#include "fuzz/must.h"
#include "wire/proxy_v2.h"

/* As a connection is read: never more than was asked for. */
static enum decode read_as_asked(struct bytes in, size_t *ret_used, struct proxy_v2 *ret,
				 struct err *err)
{
	enum decode d;
	size_t n, have = 0;

	for (;;) {
		d = proxy_v2_read(bytes_head(in, have), ret, &n, err);
		if (d != DECODE_MORE)
			break;
		MUST(n > 0 && have + n <= PROXY_V2_MAX);
		if (have == in.len)
			break;
		have = have + n < in.len ? have + n : in.len;
	}
	*ret_used = have;
	return d;
}

static bool is_same(const struct proxy_v2 *a, const struct proxy_v2 *b)
{
	return a->has_client == b->has_client && a->port == b->port && a->tls == b->tls &&
	       memcmp(&a->client, &b->client, sizeof(a->client)) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct proxy_v2 whole, pieces, part;
	struct err err, why;
	size_t n, used;
	enum decode d = proxy_v2_read(in, &whole, &n, &err);

	if (d == DECODE_BAD)
		must_say_why(&err);
	/* what follows a broken beginning may never be asked for, but it stays broken */
	MUST(read_as_asked(in, &used, &pieces, &why) == d);
	for (size_t k = 0; k < size && k <= PROXY_V2_MAX; k++) {
		enum decode before = proxy_v2_read(bytes_head(in, k), &part, &n, &why);

		MUST(before == DECODE_MORE || before == d);
		MUST(before != DECODE_OK || k >= used);
	}
	if (d != DECODE_OK)
		return 0;
	(void)proxy_v2_read(in, &whole, &n, &err);
	MUST(n == used && n >= PROXY_V2_HEAD && n <= PROXY_V2_MAX && n <= size);
	MUST(is_same(&whole, &pieces));
	MUST(whole.has_client || whole.port == 0);
	return 0;
}
