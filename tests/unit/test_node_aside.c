/* test_node_aside.c - who asks for what is set aside is told so, if it is theirs. */
#include "tests/unit/check.h"

#include "node/node.h"

static struct node *n;

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
	aside_close(n);
	free(n);
	return 0;
}

static void check_told(enum lost_kind kind, const char *team, const char *id, const char *words)
{
	struct err err = { 0 };

	assert_int_equal(aside_tells(n, kind, team, id, &err), words != NULL);
	if (!words)
		return;
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.msg, words));
	assert_non_null(strstr(err.msg, id));
}

static void until_node_has_looked_all_are_told_to_ask_again(void **state)
{
	struct orphan all[] = { { "c", LOST_SANDBOX, false, false },
				{ "ended", LOST_SANDBOX, true, false },
				{ "wished", LOST_SANDBOX, false, true },
				{ "a", LOST_SNAPSHOT, false, false } };

	(void)state;
	aside_expect(n, &(struct orphans){ all, COUNT(all) });
	check_told(LOST_SANDBOX, "t", "c", "ask again");
	check_told(LOST_SANDBOX, "", "c", "ask again");
	check_told(LOST_SNAPSHOT, "t", "a", "ask again");
	check_told(LOST_SANDBOX, "t", "a", NULL);
	check_told(LOST_SANDBOX, "t", "ended", NULL);
	check_told(LOST_SANDBOX, "t", "wished", NULL);
	check_told(LOST_SANDBOX, "t", "b", NULL);
	check_told(LOST_SANDBOX, "t", "", NULL);
}

static void then_its_team_is_told_and_nobody_else(void **state)
{
	struct lost_entry all[] = { { .kind = LOST_SANDBOX, .id = "s", .team = "t" },
				    { .kind = LOST_SANDBOX, .id = "unknown" },
				    { .kind = LOST_DISK, .id = "d", .team = "t" },
				    { .kind = LOST_SNAPSHOT, .id = "p", .team = "t" } };
	struct orphan before = { "before", LOST_SANDBOX, false, false };

	(void)state;
	aside_expect(n, &(struct orphans){ &before, 1 });
	aside_learn(n, &(struct lost_list){ .all = all, .n = COUNT(all) });
	check_told(LOST_SANDBOX, "t", "s", "set aside");
	check_told(LOST_SANDBOX, "", "s", "set aside");
	check_told(LOST_SNAPSHOT, "t", "p", "set aside");
	check_told(LOST_SANDBOX, "u", "s", NULL);
	check_told(LOST_SNAPSHOT, "u", "p", NULL);
	check_told(LOST_SANDBOX, "t", "unknown", NULL);
	check_told(LOST_SANDBOX, "t", "d", NULL); /* its tombstone tells */
	check_told(LOST_SANDBOX, "t", "before", NULL);
}

static void what_is_moved_there_is_told_at_once(void **state)
{
	(void)state;
	aside_add(n, LOST_SANDBOX, "s", "t");
	aside_add(n, LOST_SANDBOX, "r", "u");
	check_told(LOST_SANDBOX, "t", "s", "set aside");
	check_told(LOST_SANDBOX, "u", "s", NULL);
	check_told(LOST_SANDBOX, "u", "r", "set aside");
	aside_forget(n, "s");
	check_told(LOST_SANDBOX, "t", "s", NULL);
}

static void what_is_back_or_dropped_is_not_told(void **state)
{
	struct lost_entry all[] = { { .kind = LOST_SANDBOX, .id = "a", .team = "t" },
				    { .kind = LOST_SANDBOX, .id = "b", .team = "t" },
				    { .kind = LOST_SANDBOX, .id = "b", .team = "t" },
				    { .kind = LOST_SANDBOX, .id = "c", .team = "t" } };

	(void)state;
	aside_forget(n, "b");
	aside_learn(n, &(struct lost_list){ .all = all, .n = COUNT(all) });
	aside_forget(n, "b");
	aside_forget(n, "none");
	check_told(LOST_SANDBOX, "t", "a", "set aside");
	check_told(LOST_SANDBOX, "t", "b", NULL);
	check_told(LOST_SANDBOX, "t", "c", "set aside");
	aside_learn(n, &(struct lost_list){ 0 });
	check_told(LOST_SANDBOX, "t", "a", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(until_node_has_looked_all_are_told_to_ask_again,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(then_its_team_is_told_and_nobody_else, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_moved_there_is_told_at_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_back_or_dropped_is_not_told, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
