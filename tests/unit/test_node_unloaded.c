/* test_node_unloaded.c - what is saved and could not be loaded is told until it was. */
#include "tests/unit/check.h"

#include "node/node.h"

static struct node *n;

static void add(const char *id)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	snprintf(s->info.id, sizeof(s->info.id), "%s", id);
	table_add(&n->table, s);
}

static int set_up(void **state)
{
	(void)state;
	n = calloc(1, sizeof(*n));
	assert_non_null(n);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	while (n->table.all) {
		struct sandbox *s = n->table.all;

		table_remove(&n->table, s);
		free(s);
	}
	free(n);
	return 0;
}

static void note(const char *id, enum err_code code, const char *why)
{
	struct err err;

	err_set(&err, code, 0, "%s", why);
	unloaded_note(n, LOST_SANDBOX, id, &err);
}

/* "ID why" of each, in order. */
static void check_told(const char *want)
{
	AUTO(json_decrefp) json_t *all = unloaded_json(n);
	char said[4096] = "";
	const json_t *one;
	size_t i, at = 0;

	json_array_foreach(all, i, one)
	{
		at += (size_t)snprintf(said + at, sizeof(said) - at, "%s %s;",
				       json_string_value(json_object_get(one, "id")),
				       json_string_value(json_object_get(one, "why")));
		assert_string_equal(json_string_value(json_object_get(one, "kind")), "sandbox");
	}
	assert_string_equal(said, want);
}

static void one_is_told_until_it_was_loaded(void **state)
{
	(void)state;
	add("a");
	add("b");
	note("a", ERR_INTERNAL, "damaged");
	note("b", ERR_UNAVAILABLE, "EIO");
	note("a", ERR_INTERNAL, "still damaged");
	check_told("b EIO;a still damaged;");
	unloaded_note(n, LOST_SNAPSHOT, "a", NULL); /* another kind of thing */
	check_told("b EIO;a still damaged;");
	unloaded_note(n, LOST_SANDBOX, "b", NULL);
	check_told("a still damaged;");
}

static void what_is_told_elsewhere_is_not_told_here(void **state)
{
	static const enum err_code codes[] = { ERR_BASE_LOST, ERR_NO_FILES, ERR_NO_SPACE,
					       ERR_EXHAUSTED };

	(void)state;
	add("a");
	for (size_t i = 0; i < COUNT(codes); i++) {
		note("a", codes[i], "elsewhere");
		check_told("");
	}
}

static void what_was_saved_elsewhere_is_told(void **state)
{
	(void)state;
	add("a");
	note("a", ERR_MISMATCH, "another QEMU");
	check_told("a another QEMU;");
}

static void one_that_is_no_more_is_not_told(void **state)
{
	(void)state;
	note("gone", ERR_INTERNAL, "damaged");
	check_told("");
}

static void of_too_many_the_oldest_is_forgotten(void **state)
{
	char id[16];

	(void)state;
	add("i0");
	add("i1");
	for (int i = 0; i <= UNLOADED_MAX; i++) {
		snprintf(id, sizeof(id), "i%d", i);
		note(id, ERR_INTERNAL, "damaged");
	}
	assert_int_equal(n->unloaded.n, UNLOADED_MAX);
	check_told("i1 damaged;");
}

static void a_long_reason_is_cut(void **state)
{
	char why[2 * UNLOADED_WHY_MAX];

	(void)state;
	memset(why, 'x', sizeof(why));
	why[sizeof(why) - 1] = '\0';
	note("a", ERR_INTERNAL, why);
	assert_int_equal(strlen(n->unloaded.all[0].why), UNLOADED_WHY_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_is_told_until_it_was_loaded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_told_elsewhere_is_not_told_here, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_was_saved_elsewhere_is_told, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(one_that_is_no_more_is_not_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_too_many_the_oldest_is_forgotten, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_long_reason_is_cut, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
