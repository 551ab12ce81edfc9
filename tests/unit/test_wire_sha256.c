/* test_wire_sha256.c - vectors of FIPS 180-4, every way to cut the input, and the block's edges. */
#include "tests/unit/check.h"

#include "wire/sha256.h"

static void known_vectors(void **state)
{
	static const struct {
		const char *name;
		struct bytes text;
		const char *hex;
	} rows[] = {
		{ "empty", BYTES_LIT(""),
		  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", BYTES_LIT("abc"),
		  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "two blocks",
		  BYTES_LIT("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char hex[SHA256_HEX + 1];

		sha256_hex_of(row->text, hex);
		assert_string_equal(hex, row->hex);
	}
}

static void edges_of_the_block(void **state)
{
	static const struct {
		const char *name;
		size_t n;
		const char *hex;
	} rows[] = {
		{ "55", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
		{ "56", 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
		{ "63", 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
		{ "64", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
		{ "65", 65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0" },
		{ "119", 119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb" },
		{ "120", 120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c" },
	};
	uint8_t text[128];

	(void)state;
	memset(text, 'a', sizeof(text));
	FOR_ROWS(row, rows) {
		char hex[SHA256_HEX + 1];

		sha256_hex_of((struct bytes){ text, row->n }, hex);
		assert_string_equal(hex, row->hex);
	}
}

static void a_million_letters(void **state)
{
	static const uint8_t want[SHA256_SIZE] = {
		0xcd, 0xc7, 0x6e, 0x5c, 0x99, 0x14, 0xfb, 0x92, 0x81, 0xa1, 0xc7,
		0xe2, 0x84, 0xd7, 0x3e, 0x67, 0xf1, 0x80, 0x9a, 0x48, 0xa4, 0x97,
		0x20, 0x0e, 0x04, 0x6d, 0x39, 0xcc, 0xc7, 0x11, 0x2c, 0xd0,
	};
	uint8_t piece[1000], sum[SHA256_SIZE];
	struct sha256 s;

	(void)state;
	memset(piece, 'a', sizeof(piece));
	sha256_init(&s);
	for (int i = 0; i < 1000; i++)
		sha256_add(&s, (struct bytes){ piece, sizeof(piece) });
	sha256_end(&s, sum);
	assert_memory_equal(sum, want, sizeof(sum));
}

static void pieces_do_not_matter(void **state)
{
	uint8_t text[200], whole[SHA256_SIZE], cut[SHA256_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i % 251);
	sha256_of((struct bytes){ text, sizeof(text) }, whole);
	for (size_t at = 0; at <= sizeof(text); at++) {
		struct sha256 s;

		sha256_init(&s);
		sha256_add(&s, (struct bytes){ text, at });
		sha256_add(&s, (struct bytes){ text + at, sizeof(text) - at });
		sha256_end(&s, cut);
		assert_memory_equal(cut, whole, sizeof(cut));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_vectors),
		cmocka_unit_test(edges_of_the_block),
		cmocka_unit_test(a_million_letters),
		cmocka_unit_test(pieces_do_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
