/* test_base.c - the vocabulary: bytes, bounded buffers, lists, errors, configuration, names. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/config.h"
#include "base/folder.h"
#include "base/list.h"
#include "base/random.h"
#include "base/read_all.h"

static void a_buffer_refuses_to_pass_its_maximum(void **state)
{
	AUTO(buf_done) struct buf b = BUF_MAX(300);
	struct err err = { 0 };
	uint8_t block[300] = { 0 };

	(void)state;
	assert_int_equal(buf_add(&b, (struct bytes){ block, 299 }, &err), 0);
	assert_int_equal(buf_add(&b, (struct bytes){ block, 2 }, &err), -1);
	assert_string_equal(err.msg, "buffer limit of 300 bytes reached");
	assert_int_equal(b.len, 299);
	assert_int_equal(buf_add(&b, (struct bytes){ block, 1 }, &err), 0);
	assert_int_equal(b.len, 300);
}

static void dropping_keeps_the_rest_in_order(void **state)
{
	AUTO(buf_done) struct buf b = BUF_MAX(64);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(buf_printf(&b, &err, "%s-%d", "abc", 7), 0);
	buf_drop(&b, 2);
	assert_true(bytes_eq(buf_view(&b), BYTES_LIT("c-7")));
	buf_drop(&b, 3);
	assert_int_equal(b.len, 0);
}

static void numbers_are_whole_and_bounded(void **state)
{
	static const struct {
		const char *name;
		struct bytes in;
		bool ok;
		uint64_t want;
	} rows[] = {
		{ "zero", BYTES_LIT("0"), true, 0 },
		{ "tens", BYTES_LIT("1030"), true, 1030 },
		{ "largest", BYTES_LIT("18446744073709551615"), true, UINT64_MAX },
		{ "one more", BYTES_LIT("18446744073709551616"), false, 0 },
		{ "nothing", { 0 }, false, 0 },
		{ "sign", BYTES_LIT("+1"), false, 0 },
		{ "blank", BYTES_LIT(" 1"), false, 0 },
		{ "hexadecimal", BYTES_LIT("0x1"), false, 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf again = BUF_MAX(20);
		struct err err = { 0 };
		uint64_t v = 0;

		assert_int_equal(bytes_to_u64(row->in, &v), row->ok);
		if (!row->ok)
			continue;
		assert_true(v == row->want);
		assert_int_equal(buf_add_u64(&again, v, &err), 0);
		assert_true(bytes_eq(buf_view(&again), row->in));
	}
}

static void pieces_are_cut_to_the_last(void **state)
{
	struct bytes rest = BYTES_LIT("a::bc"), piece;
	static const char *const want[] = { "a", "", "bc" };

	(void)state;
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_true(bytes_next(&rest, ':', &piece));
		assert_true(bytes_eq(piece, bytes_str(want[i])));
	}
	assert_false(bytes_next(&rest, ':', &piece));
}

static void an_error_reads_from_the_outside_in(void **state)
{
	struct err err = { 0 };
	char big[512];

	(void)state;
	assert_int_equal(err_set(&err, ERR_UNAVAILABLE, 2, "connect %s", "qmp.sock"), -1);
	assert_int_equal(err_wrap(&err, "start vm %s", "7f"), -1);
	assert_string_equal(err.msg, "start vm 7f: connect qmp.sock: No such file or directory");
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	err_wrap(&err, "%s", big);
	assert_string_equal(err.msg + sizeof(err.msg) - 4, "...");
}

static const char *const colours[] = { "red", "green", NULL };
static const struct config_param params[] = {
	{ "name", CONFIG_TEXT, "cell", .help = "a name" },
	{ "state_dir", CONFIG_PATH, "/var/lib/x", .help = "a folder" },
	{ "limit", CONFIG_NUMBER, "5", .min = 1, .max = 9, .help = "a count" },
	{ "on", CONFIG_FLAG, "no", .help = "a switch" },
	{ "colour", CONFIG_CHOICE, "red", .choices = colours, .help = "a colour" },
	{ "user", CONFIG_USER, "7", .help = "an account" },
};

static void configuration_is_strict(void **state)
{
	static const struct {
		const char *name;
		struct bytes text;
		const char *why;
	} rows[] = {
		{ "empty", { 0 }, "" },
		{ "comment and blank", BYTES_LIT("# hi\n\n  \t\n"), "" },
		{ "all", BYTES_LIT("name = a b\nlimit=9\non = yes\ncolour = green"), "" },
		{ "unknown", BYTES_LIT("\nnope = 1\n"),
		  "f:2: unknown key `nope`; --help has them all" },
		{ "twice", BYTES_LIT("on = no\non = no\n"), "f:2: on is given twice" },
		{ "no equals", BYTES_LIT("on yes\n"), "f:1: expected `key = value`" },
		{ "range", BYTES_LIT("limit = 10\n"), "f:1: limit must be a number from 1 to 9" },
		{ "flag", BYTES_LIT("on = true\n"), "f:1: on must be yes or no" },
		{ "choice", BYTES_LIT("colour = blue\n"), "f:1: colour must be one of red, green" },
		{ "path", BYTES_LIT("state_dir = x\n"), "f:1: state_dir must be an absolute path" },
		{ "NUL", BYTES_LIT("name = a\0b\n"), "f:1: name is longer than 2047 bytes" },
		{ "user", BYTES_LIT("user = no-such\n"), "f:1: user: no `no-such` in /etc/passwd" },
		{ "uid", BYTES_LIT("user = 4294967295\n"), "f:1: user is too large" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct config_value v[COUNT(params)];
		struct err err = { 0 };

		config_parse(params, COUNT(params), row->text, "f", v, &err) < 0
			? assert_string_equal(err.msg, row->why)
			: assert_string_equal("", row->why);
	}
}

static void configuration_values_land_by_index(void **state)
{
	struct config_value v[COUNT(params)];
	struct err err = { 0 };

	(void)state;
	assert_int_equal(config_parse(params, COUNT(params),
				      BYTES_LIT("colour = green\non=yes\nuser=root"), "f", v, &err),
			 0);
	assert_int_equal(v[4].number, 1);
	assert_true(v[4].set);
	assert_int_equal(v[3].number, 1);
	assert_int_equal(v[2].number, 5);
	assert_int_equal(v[5].number, 0);
	assert_false(v[2].set);
	assert_string_equal(v[1].text, "/var/lib/x");
}

static void names_are_long_and_differ(void **state)
{
	char a[33], b[33], hex[9];

	(void)state;
	random_name(a, 32);
	random_name(b, 32);
	assert_string_not_equal(a, b);
	assert_int_equal(strspn(a, "0123456789abcdefghijklmnopqrstuvwxyz"), 32);
	random_hex(hex, 4);
	assert_int_equal(strspn(hex, "0123456789abcdef"), 8);
}

static void a_file_is_read_to_its_end_or_its_limit(void **state)
{
	AUTO(auto_close) int fd = memfd_create("text", MFD_CLOEXEC);
	AUTO(buf_done) struct buf fits = BUF_MAX(5), narrow = BUF_MAX(4);
	char path[32], text[4];
	struct err err;

	(void)state;
	assert_int_equal(write(fd, "abcde", 5), 5);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(read_all(fd, &fits, &err), 0);
	assert_true(bytes_eq(buf_view(&fits), BYTES_LIT("abcde")));
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(read_all(fd, &narrow, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	assert_int_equal(read_text(AT_FDCWD, "/proc/self/comm", text, sizeof(text)), 3);
	assert_int_equal(strlen(text), 3);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/x", fd);
	assert_int_equal(read_text(AT_FDCWD, path, text, sizeof(text)), -1);
	assert_string_equal(text, "");
}

struct link {
	char name;
	struct link *next, **prev;
};

struct links {
	struct link *first, **last;
};

static void check_list(struct link *first, const char *names)
{
	struct link **at = &first;

	for (struct link *x = first; x; x = x->next, at = &(*at)->next) {
		assert_int_equal(x->name, *names++);
		assert_true(x == first || x->prev == at);
	}
	assert_int_equal(*names, '\0');
}

static void a_list_knows_where_each_element_is(void **state)
{
	struct link a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' }, *list = NULL;

	(void)state;
	list_add(&list, &b);
	list_add(&list, &a);
	list_add(&b.next, &c);
	check_list(list, "abc");
	list_remove(&b);
	assert_null(b.prev);
	assert_ptr_equal(b.next, &c); /* who stands at b may walk on */
	list_remove(&b);
	check_list(list, "ac");
	list_remove(&a);
	list_remove(&c);
	assert_null(list);
}

static void a_queue_keeps_its_order(void **state)
{
	struct link a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' };
	struct links q = { 0 }, other = { 0 };

	(void)state;
	queue_init(&q);
	queue_init(&other);
	queue_add(&q, &a);
	queue_add(&q, &b);
	queue_remove(&q, &b);
	queue_remove(&q, &b);
	queue_add(&q, &c);
	check_list(q.first, "ac");
	queue_add(&other, &b);
	queue_move(&other, &q);
	queue_move(&other, &q);
	assert_null(queue_take(&q));
	check_list(other.first, "bac");
	assert_ptr_equal(queue_take(&other), &b);
	assert_ptr_equal(queue_take(&other), &a);
	queue_move(&q, &other);
	assert_ptr_equal(queue_take(&q), &c);
	assert_null(queue_take(&q));
	queue_add(&q, &a);
	check_list(q.first, "a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_refuses_to_pass_its_maximum),
		cmocka_unit_test(dropping_keeps_the_rest_in_order),
		cmocka_unit_test(numbers_are_whole_and_bounded),
		cmocka_unit_test(pieces_are_cut_to_the_last),
		cmocka_unit_test(an_error_reads_from_the_outside_in),
		cmocka_unit_test(configuration_is_strict),
		cmocka_unit_test(configuration_values_land_by_index),
		cmocka_unit_test(names_are_long_and_differ),
		cmocka_unit_test(a_file_is_read_to_its_end_or_its_limit),
		cmocka_unit_test(a_list_knows_where_each_element_is),
		cmocka_unit_test(a_queue_keeps_its_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
