/* test_vm_checksum.c - CRC-32C: published values, both ways equal, holes for nothing. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "vm/checksum.h"
#include "base/crc32c.h"

static const atomic_bool go_on = false;

static int make_file(void)
{
	int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = memfd_create("checksum", MFD_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* RFC 3720 section B.4, and the catalogue's check value. */
static void published_values(void **state)
{
	uint8_t zeros[32] = { 0 }, ones[32], rising[32], falling[32];
	const struct {
		const char *name;
		struct bytes in;
		uint32_t want;
	} rows[] = {
		{ "nothing", { 0 }, 0 },
		{ "123456789", BYTES_LIT("123456789"), 0xe3069283 },
		{ "32 zeros", { zeros, 32 }, 0x8a9136aa },
		{ "32 times 0xff", { ones, 32 }, 0x62a8ab43 },
		{ "0 to 31", { rising, 32 }, 0x46dd794e },
		{ "31 to 0", { falling, 32 }, 0x113fdb5c },
	};

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	for (uint8_t i = 0; i < 32; i++) {
		rising[i] = i;
		falling[i] = (uint8_t)(31 - i);
	}
	FOR_ROWS(row, rows) {
		assert_int_equal(crc32c_slow(0, row->in), row->want);
		if (crc32c_has_fast())
			assert_int_equal(crc32c_fast(0, row->in), row->want);
	}
}

static void the_fast_way_equals_the_slow(void **state)
{
	uint8_t data[600];

	(void)state;
	if (!crc32c_has_fast())
		skip();
	random_fill(data, sizeof(data));
	for (size_t from = 0; from < 9; from++)
		for (size_t len = 0; len < sizeof(data) - 9; len++) {
			struct bytes b = { data + from, len };

			assert_int_equal(crc32c_fast((uint32_t)len, b),
					 crc32c_slow((uint32_t)len, b));
		}
}

/* Long enough for stretches side by side, and for what is left after them. */
static void the_fast_way_is_right_for_much(void **state)
{
	static const size_t lengths[] = { 12287, 12288, 12289, 24576, 24583, 50000 };
	static uint8_t data[50003];

	(void)state;
	if (!crc32c_has_fast())
		skip();
	random_fill(data, sizeof(data));
	for (size_t i = 0; i < COUNT(lengths); i++)
		for (size_t from = 0; from < 3; from++) {
			struct bytes b = { data + from, lengths[i] };

			assert_int_equal(crc32c_fast(7, b), crc32c_slow(7, b));
		}
}

static void pieces_equal_the_whole(void **state)
{
	uint8_t data[300];
	struct bytes all = { data, sizeof(data) };

	(void)state;
	random_fill(data, sizeof(data));
	for (size_t n = 0; n <= all.len; n++)
		assert_int_equal(crc32c(crc32c(0, bytes_head(all, n)), bytes_tail(all, n)),
				 crc32c(0, all));
}

static void skipped_zeros_equal_real_ones(void **state)
{
	static const uint8_t zeros[5000];

	(void)state;
	for (size_t n = 0; n < sizeof(zeros); n += 1 + n / 7) {
		uint32_t start = (uint32_t)(n * 2654435761u);

		assert_int_equal(crc32c_zeros(start, n), crc32c(start, (struct bytes){ zeros, n }));
	}
	/* x^8 has the order 2^31 - 1: that many leave the remainder as it was */
	assert_int_equal(crc32c_zeros(0x12345678, INT32_MAX), 0x12345678);
}

static void write_at(int fd, off_t at, const void *data, size_t n)
{
	assert_int_equal(pwrite(fd, data, n, at), (ssize_t)n);
}

/* Holes at the beginning, between and at the end give what reading every byte gives. */
static void holes_count_as_zeros(void **state)
{
	AUTO(auto_close) int fd = make_file();
	AUTO(auto_free) uint8_t *all = calloc(1, 4 << 20);
	struct checksum sum;
	struct err err;

	(void)state;
	assert_non_null(all);
	random_fill(all + (1 << 20), 70000);
	random_fill(all + (3 << 20) + 5, 100);
	write_at(fd, 1 << 20, all + (1 << 20), 70000);
	write_at(fd, (3 << 20) + 5, all + (3 << 20) + 5, 100);
	assert_int_equal(ftruncate(fd, 4 << 20), 0);
	assert_int_equal(checksum_file(fd, &go_on, &sum, &err), 0);
	assert_int_equal(sum.length, 4 << 20);
	assert_int_equal(sum.crc, crc32c_slow(0, (struct bytes){ all, 4 << 20 }));
}

static void nothing_and_only_a_hole(void **state)
{
	AUTO(auto_close) int fd = make_file();
	struct checksum sum = { 1, 1 };
	struct err err;

	(void)state;
	assert_int_equal(checksum_file(fd, &go_on, &sum, &err), 0);
	assert_int_equal(sum.length, 0);
	assert_int_equal(sum.crc, 0);
	assert_int_equal(ftruncate(fd, 32), 0);
	assert_int_equal(checksum_file(fd, &go_on, &sum, &err), 0);
	assert_int_equal(sum.crc, 0x8a9136aa);
}

/* 512 MiB of which 100 MB are data, spread: the size of a template's memory. */
static void a_templates_memory_is_quick(void **state)
{
	enum { EXTENTS = 100, EXTENT = 1000 * 1000 };
	AUTO(auto_close) int fd = make_file();
	AUTO(auto_free) uint8_t *data = malloc(EXTENT);
	uint64_t began, took;
	struct checksum sum;
	struct err err;

	(void)state;
	assert_non_null(data);
	random_fill(data, EXTENT);
	for (off_t i = 0; i < EXTENTS; i++)
		write_at(fd, i * (5 << 20), data, EXTENT);
	assert_int_equal(ftruncate(fd, 512 << 20), 0);
	began = clock_mono_ns();
	assert_int_equal(checksum_file(fd, &go_on, &sum, &err), 0);
	took = (clock_mono_ns() - began) / NSEC_PER_MSEC;
	print_message("    512 MiB with 100 MB of data: %llu ms\n", (unsigned long long)took);
	assert_true(took < 1000);
}

static void folders_and_a_stop_are_refused(void **state)
{
	AUTO(auto_close) int file = make_file();
	AUTO(auto_close) int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const atomic_bool stop = true;
	struct checksum sum;
	struct err err;

	(void)state;
	assert_int_equal(checksum_file(folder, &go_on, &sum, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	write_at(file, 0, "x", 1);
	assert_int_equal(checksum_file(file, &stop, &sum, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_values),
		cmocka_unit_test(the_fast_way_equals_the_slow),
		cmocka_unit_test(the_fast_way_is_right_for_much),
		cmocka_unit_test(pieces_equal_the_whole),
		cmocka_unit_test(skipped_zeros_equal_real_ones),
		cmocka_unit_test(holes_count_as_zeros),
		cmocka_unit_test(nothing_and_only_a_hole),
		cmocka_unit_test(a_templates_memory_is_quick),
		cmocka_unit_test(folders_and_a_stop_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
