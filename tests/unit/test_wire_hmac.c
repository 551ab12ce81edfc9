/* test_wire_hmac.c - the vectors of RFC 4231. */
#include "tests/unit/check.h"

#include "wire/hmac.h"

static void check(struct bytes key, struct bytes text, const char *want)
{
	uint8_t digest[SHA256_SIZE];
	char hex[SHA256_HEX + 1];

	hmac_sha256(key, text, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(hex, want);
}

static void vectors(void **state)
{
	uint8_t key[131], text[50];

	(void)state;
	memset(key, 0x0b, sizeof(key));
	check((struct bytes){ key, 20 }, BYTES_LIT("Hi There"),
	      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	check(BYTES_LIT("Jefe"), BYTES_LIT("what do ya want for nothing?"),
	      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	memset(text, 0xdd, sizeof(text));
	check((struct bytes){ key, 20 }, (struct bytes){ text, sizeof(text) },
	      "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	check((struct bytes){ key, sizeof(key) },
	      BYTES_LIT("Test Using Larger Than Block-Size Key - Hash Key First"),
	      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

/* However a text is cut. */
static void pieces(void **state)
{
	const struct bytes text = BYTES_LIT("what do ya want for nothing?");
	uint8_t whole[SHA256_SIZE], cut[SHA256_SIZE];

	(void)state;
	hmac_sha256(BYTES_LIT("Jefe"), text, whole);
	for (size_t i = 0; i <= text.len; i++) {
		const struct bytes parts[] = { bytes_head(text, i), { 0 }, bytes_tail(text, i) };

		hmac_sha256_pieces(BYTES_LIT("Jefe"), parts, COUNT(parts), cut);
		assert_memory_equal(whole, cut, sizeof(whole));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(vectors), cmocka_unit_test(pieces) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
