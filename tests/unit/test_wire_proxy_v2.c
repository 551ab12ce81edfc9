/* test_wire_proxy_v2.c - headers of the PROXY protocol: whole, in pieces, for nobody, and broken.
 */
#include "tests/unit/check.h"

#include "wire/proxy_v2.h"

#define BEGIN "\r\n\r\n\0\r\nQUIT\n"
#define V4    "\xc0\x00\x02\x07\x0a\x00\x00\x01\x12\x67\x01\xbb" /* 192.0.2.7:4711 to 10.0.0.1:443 */
#define V6                                           \
	"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07" \
	"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x12\x67\x01\xbb"
#define TLS   "\x20\x00\x05\x01\0\0\0\0" /* spoken, nothing verified */
#define PLAIN "\x20\x00\x05\x00\0\0\0\0"
#define NAME           \
	"\x02\x00\x03" \
	"a.b"

static struct ip ip_of(const char *text)
{
	struct ip ip;

	assert_true(ip_parse(bytes_str(text), &ip));
	return ip;
}

static void a_client_is_named_when_the_header_is_whole(void **state)
{
	static const struct {
		struct bytes in;
		const char *client; /* NULL: none */
		bool tls;
	} rows[] = {
		{ BYTES_LIT(BEGIN "\x21\x11\x00\x0c" V4), "192.0.2.7", false },
		{ BYTES_LIT(BEGIN "\x21\x21\x00\x24" V6), "2001:db8::7", false },
		{ BYTES_LIT(BEGIN "\x21\x11\x00\x14" V4 TLS), "192.0.2.7", true },
		{ BYTES_LIT(BEGIN "\x21\x11\x00\x14" V4 PLAIN), "192.0.2.7", false },
		{ BYTES_LIT(BEGIN "\x21\x11\x00\x1a" V4 NAME TLS), "192.0.2.7", true },
		{ BYTES_LIT(BEGIN "\x20\x00\x00\x00"), NULL, false },
		{ BYTES_LIT(BEGIN "\x20\x11\x00\x0c" V4), NULL, false },
		{ BYTES_LIT(BEGIN "\x21\x00\x00\x00"), NULL, false },
		{ BYTES_LIT(BEGIN "\x21\x00\x00\x03"
				  "abc"),
		  NULL, false },
	};
	struct proxy_v2 got;
	struct err err;
	size_t n;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		for (size_t k = 0; k < rows[i].in.len; k++) {
			assert_int_equal(proxy_v2_read(bytes_head(rows[i].in, k), &got, &n, &err),
					 DECODE_MORE);
			assert_int_equal(n,
					 (k < PROXY_V2_HEAD ? PROXY_V2_HEAD : rows[i].in.len) - k);
		}
		assert_int_equal(proxy_v2_read(rows[i].in, &got, &n, &err), DECODE_OK);
		assert_int_equal(n, rows[i].in.len);
		assert_int_equal(got.has_client, rows[i].client != NULL);
		assert_int_equal(got.tls, rows[i].tls);
		if (rows[i].client) {
			struct ip want = ip_of(rows[i].client);

			assert_memory_equal(&got.client, &want, sizeof(want));
			assert_int_equal(got.port, 4711);
		}
	}
}

static void what_follows_is_not_of_it(void **state)
{
	struct bytes in = BYTES_LIT(BEGIN "\x21\x11\x00\x0c" V4 "GET / HTTP/1.1\r\n");
	struct proxy_v2 got;
	struct err err;
	size_t n;

	(void)state;
	assert_int_equal(proxy_v2_read(in, &got, &n, &err), DECODE_OK);
	assert_int_equal(n, 28);
}

static void a_broken_one_is_refused_and_it_is_said_why(void **state)
{
	static const struct {
		struct bytes in;
		const char *why;
	} rows[] = {
		{ BYTES_LIT("GET / HTTP/1.1\r\n"), "no PROXY header" },
		{ BYTES_LIT("\x16\x03\x01"), "no PROXY header" },
		{ BYTES_LIT("PROXY TCP4 192.0"), "version 1" },
		{ BYTES_LIT("\r\n\r\nx"), "no PROXY header" },
		{ BYTES_LIT(BEGIN "\x11"), "unknown version" },
		{ BYTES_LIT(BEGIN "\x31"), "unknown version" },
		{ BYTES_LIT(BEGIN "\x22"), "unknown command" },
		{ BYTES_LIT(BEGIN "\x21\x11\x07\xf1"), "too long" }, /* one byte over */
		{ BYTES_LIT(BEGIN "\x21\x11\xff\xff"), "too long" },
		{ BYTES_LIT(BEGIN "\x21\x12\x00\x0c" V4), "else than a stream" },
		{ BYTES_LIT(BEGIN "\x21\x41\x00\x0c" V4), "else than a stream" },
		{ BYTES_LIT(BEGIN "\x21\x11\x00\x00"), "shorter" },
		{ BYTES_LIT(BEGIN "\x21\x21\x00\x0c" V4), "shorter" },
		{ BYTES_LIT(BEGIN "\x21\x31\x00\x0c" V4), "shorter" },
		{ BYTES_LIT(BEGIN "\x21\x11\x00\x0e" V4 "\x20\x00"), "cut off" },
		{ BYTES_LIT(BEGIN "\x21\x11\x00\x10" V4 "\x04\x00\x02x"), "cut off" },
		{ BYTES_LIT(BEGIN "\x21\x11\x00\x10" V4 "\x20\x00\x01\x01"), "about TLS" },
	};
	struct proxy_v2 got;
	struct err err;
	size_t n;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		err.msg[0] = '\0';
		assert_int_equal(proxy_v2_read(rows[i].in, &got, &n, &err), DECODE_BAD);
		if (!strstr(err.msg, rows[i].why))
			fail_msg("row %zu: %s", i, err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_is_named_when_the_header_is_whole),
		cmocka_unit_test(what_follows_is_not_of_it),
		cmocka_unit_test(a_broken_one_is_refused_and_it_is_said_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
