/* test_wire_tar.c - headers of tar files: of ustar, GNU and pax, and broken ones. */
#include "tests/unit/check.h"

#include "wire/tar.h"

static struct err err;

static void set_sum(uint8_t *b)
{
	unsigned int sum = 0;

	memset(b + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += b[i];
	snprintf((char *)b + 148, 8, "%06o", sum);
}

static void header(uint8_t *b, const char *name, uint64_t size, char type)
{
	memset(b, 0, TAR_BLOCK);
	snprintf((char *)b, 100, "%s", name);
	snprintf((char *)b + 124, 12, "%011lo", size);
	b[156] = (uint8_t)type;
	memcpy(b + 257,
	       "ustar\0"
	       "00",
	       8);
	set_sum(b);
}

static void test_files(void **state)
{
	uint8_t b[TAR_BLOCK];
	struct tar t = { 0 };
	enum tar_step step;

	(void)state;
	header(b, "a/b", 1000, '0');
	assert_int_equal(tar_block(&t, b, &step, &err), 0);
	assert_int_equal(step, TAR_FILE);
	assert_string_equal(t.name, "a/b");
	assert_int_equal(t.size, 1000);
	assert_int_equal(tar_padded(t.size), 1024);
	memcpy(b + 345, "over", 5);
	set_sum(b);
	assert_int_equal(tar_block(&t, b, &step, &err), 0);
	assert_string_equal(t.name, "over/a/b");
	header(b, "dir/", 77, '5');
	assert_int_equal(tar_block(&t, b, &step, &err), 0);
	assert_int_equal(step, TAR_SKIP);
	assert_int_equal(t.size, 0);
	header(b, "link", 77, '2');
	memcpy(b + 157, "../x", 5);
	set_sum(b);
	assert_int_equal(tar_block(&t, b, &step, &err), 0);
	assert_int_equal(step, TAR_FILE);
	assert_string_equal(t.link, "../x");
	assert_true(t.symbolic);
	assert_int_equal(t.size, 0);
	memset(b, 0, sizeof(b));
	assert_int_equal(tar_block(&t, b, &step, &err), 0);
	assert_int_equal(step, TAR_END);
}

static void test_long_names(void **state)
{
	uint8_t b[TAR_BLOCK];
	struct tar t = { 0 };
	enum tar_step step;

	(void)state;
	header(b, "x", 9, 'L');
	assert_int_equal(tar_block(&t, b, &step, &err), 0);
	assert_int_equal(step, TAR_TEXT);
	assert_int_equal(tar_text(&t, BYTES_LIT("longname\0"), &err), 0);
	header(b, "short", 1, '0');
	assert_int_equal(tar_block(&t, b, &step, &err), 0);
	assert_string_equal(t.name, "longname");
	assert_int_equal(tar_block(&t, b, &step, &err), 0);
	assert_string_equal(t.name, "short");
	header(b, "x", 9, 'x');
	assert_int_equal(tar_block(&t, b, &step, &err), 0);
	assert_int_equal(tar_text(&t, BYTES_LIT("10 path=q\n12 size=4096\n9 other=1\n"), &err), -1);
	assert_int_equal(tar_text(&t, BYTES_LIT("10 path=q\n13 size=4096\n11 other=1\n"), &err), 0);
	header(b, "short", 1, '0');
	assert_int_equal(tar_block(&t, b, &step, &err), 0);
	assert_string_equal(t.name, "q");
	assert_int_equal(t.size, 4096);
	header(b, "x", TAR_TEXT_MAX + 1, 'x');
	assert_int_equal(tar_block(&t, b, &step, &err), -1);
}

static void test_broken(void **state)
{
	static const char *const texts[] = { "x",       "5 a\n",  "99 a=b\n",    "6 a=b!",
					     "0 a=b\n", " a=b\n", "10 size=x\n", "7 path=\n" };
	uint8_t b[TAR_BLOCK];
	struct tar t = { .kind = 'x' };
	enum tar_step step;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_int_equal(tar_text(&t, bytes_str(texts[i]), &err), -1);
	header(b, "a", 1, '0');
	b[0] = 'b';
	assert_int_equal(tar_block(&t, b, &step, &err), -1);
	header(b, "a", 1, '0');
	memset(b + 124, 0xff, 12); /* a negative size */
	set_sum(b);
	assert_int_equal(tar_block(&t, b, &step, &err), -1);
	header(b, "a", 1, '0');
	memset(b + 124, 0, 12);
	b[124] = 0x80;
	b[130] = 0x7f; /* far more than there can be */
	set_sum(b);
	assert_int_equal(tar_block(&t, b, &step, &err), -1);
	b[130] = 0;
	b[134] = 0x10;
	set_sum(b);
	assert_int_equal(tar_block(&t, b, &step, &err), 0);
	assert_int_equal(t.size, 0x1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
