/* test_wire_placeholder.c - what stands for something else in a header, and what means itself. */
#include "tests/unit/check.h"

#include "wire/placeholder.h"

static void placeholders_are_found(void **state)
{
	static const struct {
		const char *name;
		enum placeholder_kind kind;
		const char *before, *found, *secret, *rest;
	} rows[] = {
		{ "", PLACEHOLDER_NONE, "", "", "", "" },
		{ "plain", PLACEHOLDER_NONE, "plain", "", "", "" },
		{ "${HOME} $ {e2b.secrets.a}", PLACEHOLDER_NONE, "${HOME} $ {e2b.secrets.a}", "",
		  "", "" },
		{ "${e2b.other.a}", PLACEHOLDER_NONE, "${e2b.other.a}", "", "", "" },
		{ "Bearer ${e2b.secrets.Api-Key_1}!", PLACEHOLDER_SECRET, "Bearer ", "Api-Key_1",
		  "api-key_1", "!" },
		{ "${e2b.secrets. a }", PLACEHOLDER_SECRET, "", " a ", "a", "" },
		{ "${e2b.identity.tokens.aws}${e2b.secrets.a}", PLACEHOLDER_IDENTITY, "", "aws", "",
		  "${e2b.secrets.a}" },
		{ "${e2b.secrets.", PLACEHOLDER_BROKEN, "", "", "", NULL },
		{ "x${e2b.secrets.}", PLACEHOLDER_BROKEN, "x", "", "", NULL },
		{ "${e2b.secrets.a b}", PLACEHOLDER_BROKEN, "", "a b", NULL, NULL },
		{ "${e2b.secrets.sec_01}", PLACEHOLDER_BROKEN, "", "sec_01", NULL, NULL },
		{ "${e2b.secrets.${e2b.secrets.a}}", PLACEHOLDER_BROKEN, "", "${e2b.secrets.a",
		  NULL, NULL },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct bytes rest = bytes_str(row->name);
		struct placeholder p;

		assert_int_equal(placeholder_next(&rest, &p), row->kind);
		assert_true(bytes_eq(p.before, bytes_str(row->before)));
		if (row->kind != PLACEHOLDER_BROKEN)
			assert_true(bytes_eq(p.name, bytes_str(row->found)));
		if (row->secret)
			assert_string_equal(p.secret, row->secret);
		if (row->rest)
			assert_true(bytes_eq(rest, bytes_str(row->rest)));
	}
}

static void names_have_a_length(void **state)
{
	char text[SECRET_NAME_SIZE + 1], normal[SECRET_NAME_SIZE];

	(void)state;
	memset(text, 'A', sizeof(text));
	assert_true(secret_name_normal((struct bytes){ (uint8_t *)text, SECRET_NAME_MAX }, normal));
	assert_int_equal(strspn(normal, "a"), SECRET_NAME_MAX);
	assert_false(
		secret_name_normal((struct bytes){ (uint8_t *)text, SECRET_NAME_MAX + 1 }, normal));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placeholders_are_found),
		cmocka_unit_test(names_have_a_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
