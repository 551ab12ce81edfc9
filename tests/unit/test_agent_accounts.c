/* test_agent_accounts.c - /etc/passwd and /etc/group, also when somebody hostile wrote them. */
#include "tests/unit/check.h"

#include "agent/accounts.h"

#define PASSWD                                   \
	"root:x:0:0:root:/root:/bin/bash\n"      \
	"user:x:1000:1000::/home/user:/bin/sh\n" \
	"last:x:7:8::/:/bin/sh"

static void users_are_found_by_their_whole_name(void **state)
{
	static const struct {
		const char *name;
		struct bytes passwd, who;
		bool found;
		uid_t uid;
		gid_t gid;
		const char *home;
	} rows[] = {
		{ "first", BYTES_LIT(PASSWD), BYTES_LIT("root"), true, 0, 0, "/root" },
		{ "second", BYTES_LIT(PASSWD), BYTES_LIT("user"), true, 1000, 1000, "/home/user" },
		{ "no newline at the end", BYTES_LIT(PASSWD), BYTES_LIT("last"), true, 7, 8, "/" },
		{ "missing", BYTES_LIT(PASSWD), BYTES_LIT("nobody") },
		{ "a prefix", BYTES_LIT(PASSWD), BYTES_LIT("use") },
		{ "longer", BYTES_LIT(PASSWD), BYTES_LIT("user1") },
		{ "nobody asked for", BYTES_LIT(":x:0:0::/:/x\n"), { 0 } },
		{ "empty file", { 0 }, BYTES_LIT("root") },
		{ "too few fields", BYTES_LIT("u:x:1:1::/h\n"), BYTES_LIT("u") },
		{ "too many fields", BYTES_LIT("u:x:1:1::/h:/s:/t\n"), BYTES_LIT("u") },
		{ "name in another field", BYTES_LIT("a:u:1:1::/h:/s\n"), BYTES_LIT("u") },
		{ "colon in the name asked for", BYTES_LIT("u:x:0:0::/:/s\n"), BYTES_LIT("u:x") },
		{ "newline in the name asked for", BYTES_LIT(PASSWD), BYTES_LIT("user\nroot") },
		{ "uid is a word", BYTES_LIT("u:x:zero:1::/h:/s\n"), BYTES_LIT("u") },
		{ "uid is empty", BYTES_LIT("u:x::1::/h:/s\n"), BYTES_LIT("u") },
		{ "uid is negative", BYTES_LIT("u:x:-1:1::/h:/s\n"), BYTES_LIT("u") },
		{ "uid with a blank", BYTES_LIT("u:x: 0:1::/h:/s\n"), BYTES_LIT("u") },
		{ "uid is no uid", BYTES_LIT("u:x:4294967295:1::/h:/s\n"), BYTES_LIT("u") },
		{ "uid wraps to 0", BYTES_LIT("u:x:4294967296:1::/h:/s\n"), BYTES_LIT("u") },
		{ "gid is no gid", BYTES_LIT("u:x:1:4294967295::/h:/s\n"), BYTES_LIT("u") },
		{ "largest uid", BYTES_LIT("u:x:4294967294:1::/h:/s\n"), BYTES_LIT("u"), true,
		  4294967294u, 1, "/h" },
		{ "a broken line is skipped", BYTES_LIT("u:x:0\nu:x:5:6::/h:/s\n"), BYTES_LIT("u"),
		  true, 5, 6, "/h" },
		{ "the first good line counts", BYTES_LIT("u:x:5:6::/a:/s\nu:x:0:0::/b:/s\n"),
		  BYTES_LIT("u"), true, 5, 6, "/a" },
		{ "no home", BYTES_LIT("u:x:5:6:::/s\n"), BYTES_LIT("u"), true, 5, 6, "/" },
		{ "relative home", BYTES_LIT("u:x:5:6::../etc:/s\n"), BYTES_LIT("u"), true, 5, 6,
		  "/" },
		{ "NUL in the home", BYTES_LIT("u:x:5:6::/a\0b:/s\n"), BYTES_LIT("u") },
		{ "NUL in the name", BYTES_LIT("u\0x:x:5:6::/a:/s\n"), BYTES_LIT("u") },
		{ "NIS line", BYTES_LIT("+::::::\n"), BYTES_LIT("+") },
		{ "carriage return", BYTES_LIT("u:x:5:6::/a:/s\r\n"), BYTES_LIT("u"), true, 5, 6,
		  "/a" },
		{ "only newlines", BYTES_LIT("\n\n\n"), BYTES_LIT("u") },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct account a = { 0 };
		struct err err = { 0 };

		assert_int_equal(
			account_parse(row->passwd, (struct bytes){ 0 }, row->who, &a, &err),
			row->found ? 0 : -1);
		if (!row->found) {
			assert_int_equal(err.code, ERR_NOT_FOUND);
			continue;
		}
		assert_true(a.uid == row->uid && a.gid == row->gid);
		assert_string_equal(a.home, row->home);
		assert_int_equal(a.n_groups, 1);
		assert_true(a.groups[0] == row->gid);
	}
}

static void groups_are_those_that_list_the_user(void **state)
{
	static const struct {
		const char *name;
		struct bytes group;
		size_t n;
		gid_t last;
	} rows[] = {
		{ "none", { 0 }, 1, 1000 },
		{ "alone", BYTES_LIT("sudo:x:27:user\n"), 2, 27 },
		{ "first of several", BYTES_LIT("sudo:x:27:user,a,b\n"), 2, 27 },
		{ "last of several", BYTES_LIT("sudo:x:27:a,b,user\n"), 2, 27 },
		{ "no newline", BYTES_LIT("sudo:x:27:a,user"), 2, 27 },
		{ "the primary again", BYTES_LIT("user:x:1000:user\n"), 1, 1000 },
		{ "twice the same", BYTES_LIT("a:x:27:user\nb:x:27:user\n"), 2, 27 },
		{ "prefix of a member", BYTES_LIT("sudo:x:27:users,use\n"), 1, 1000 },
		{ "user is the group's name", BYTES_LIT("user:x:27:\n"), 1, 1000 },
		{ "gid is no gid", BYTES_LIT("a:x:4294967295:user\n"), 1, 1000 },
		{ "gid is a word", BYTES_LIT("a:x:zero:user\n"), 1, 1000 },
		{ "too few fields", BYTES_LIT("a:x:27\n"), 1, 1000 },
		{ "too many fields", BYTES_LIT("a:x:27:user:user\n"), 1, 1000 },
		{ "broken, then good", BYTES_LIT("a:x:27\nb:x:28:user\n"), 2, 28 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct account a = { 0 };
		struct err err = { 0 };

		assert_int_equal(
			account_parse(BYTES_LIT(PASSWD), row->group, BYTES_LIT("user"), &a, &err),
			0);
		assert_int_equal(a.n_groups, row->n);
		assert_true(a.groups[0] == 1000 && a.groups[a.n_groups - 1] == row->last);
	}
}

static void lists_without_end_are_bounded(void **state)
{
	AUTO(buf_done) struct buf many = BUF_MAX(1024 * 1024), passwd = BUF_MAX(1024 * 1024);
	struct account a = { 0 };
	struct err err = { 0 };

	(void)state;
	for (int i = 0; i < 4 * ACCOUNT_GROUPS_MAX; i++)
		assert_int_equal(buf_printf(&many, &err, "g%d:x:%d:a,user,b\n", i, 5000 + i), 0);
	assert_int_equal(
		account_parse(BYTES_LIT(PASSWD), buf_view(&many), BYTES_LIT("user"), &a, &err), 0);
	assert_int_equal(a.n_groups, ACCOUNT_GROUPS_MAX);

	assert_int_equal(buf_printf(&passwd, &err, "u:x:1:1::/"), 0);
	for (int i = 0; i < ACCOUNT_HOME_MAX; i++)
		assert_int_equal(buf_printf(&passwd, &err, "h"), 0);
	assert_int_equal(buf_printf(&passwd, &err, ":/s\n"), 0);
	assert_int_equal(
		account_parse(buf_view(&passwd), (struct bytes){ 0 }, BYTES_LIT("u"), &a, &err),
		-1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users_are_found_by_their_whole_name),
		cmocka_unit_test(groups_are_those_that_list_the_user),
		cmocka_unit_test(lists_without_end_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
