/* test_vm_package_hosts.c - what a guest says about its package managers becomes a list of hosts.
 */
#include "tests/unit/check.h"

#include "vm/package_hosts.h"

static void hosts_are_read_out_of_what_was_said(void **state)
{
	static const struct {
		const char *name, *said, *hosts;
	} rows[] = {
		{ "nothing", "", "" },
		{ "a URL", "http://deb.example.org/debian", "deb.example.org" },
		{ "a name alone", "sum.example.org\n", "sum.example.org" },
		{ "port and path", "https://mirror.example:8081/a/b\n", "mirror.example" },
		{ "a password", "https://me:s3cret@mirror.example/x", "mirror.example" },
		{ "an @ in it", "https://me:s@cret@mirror.example", "mirror.example" },
		{ "an address", "http://192.0.2.7:3142", "192.0.2.7" },
		{ "twice", "https://a.example\nhttp://A.Example./x\nb.example",
		  "a.example b.example" },
		{ "blanks", "https://a.example  https://b.example \n", "a.example b.example" },
		{ "sparse", "sparse+https://index.example/", "index.example" },
		{ "a sentence", "*** no-such_thing: here\n", "no-such_thing here" },
		{ "no host", "https:///x\n://\n@:/\nhttp://[::1]/\n", "" },
		{ "other notations", "http://0x7f000001 http://017700000001 http://127.1", "" },
		{ "too long a label",
		  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		  "aaaaaaaaaa.example",
		  "" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char got[PACKAGE_HOSTS_TEXT_MAX + 1];

		package_hosts_read(bytes_str(row->said), got);
		assert_string_equal(got, row->hosts);
	}
}

static size_t words(const char *text)
{
	struct bytes rest = bytes_str(text), word;
	size_t n = 0;

	while (bytes_next(&rest, ' ', &word))
		n++;
	return n;
}

static void there_is_an_end_to_it(void **state)
{
	AUTO(buf_done) struct buf said = BUF_MAX(1 << 20);
	char got[PACKAGE_HOSTS_TEXT_MAX + 1];
	struct err err;

	(void)state;
	for (int i = 0; i < 10000; i++)
		assert_int_equal(buf_printf(&said, &err, "h%d.example\n", i), 0);
	package_hosts_read(buf_view(&said), got);
	assert_int_equal(words(got), PACKAGE_HOSTS_MAX);
	said.len = 0;
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_printf(&said, &err, "a%060d.b%060d.example\n", i, i), 0);
	package_hosts_read(buf_view(&said), got);
	assert_true(words(got) > 10);
	assert_true(strlen(got) > PACKAGE_HOSTS_TEXT_MAX - 200);
}

/* The whole script is in the program, and names no host itself. */
static void the_script_is_the_one_of_the_guest(void **state)
{
	struct bytes s = package_hosts_script();

	(void)state;
	assert_non_null(memmem(s.ptr, s.len, "# package-hosts - ", 18));
	assert_non_null(memmem(s.ptr, s.len, "[^/\"'\\''<>,; )]+'; }\n", 21));
	assert_true(s.len > 7 && memcmp(s.ptr + s.len - 7, "exit 0\n", 7) == 0);
	assert_null(memmem(s.ptr, s.len, ".org", 4));
	assert_null(memmem(s.ptr, s.len, ".com", 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_are_read_out_of_what_was_said),
		cmocka_unit_test(there_is_an_end_to_it),
		cmocka_unit_test(the_script_is_the_one_of_the_guest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
