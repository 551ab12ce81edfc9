/* test_node_table.c - sandboxes by id, by team and in order; their states; a create's text. */
#include "tests/unit/check.h"

#include "node/life/create_text.h"
#include "node/record/memory_watch.h"
#include "node/protocol.h"
#include "node/life/sandbox_table.h"

enum { MANY = 3000 };

static struct sandbox *add(struct sandbox_table *t, const char *id, const char *team, uint64_t ns)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	snprintf(s->info.id, sizeof(s->info.id), "%s", id);
	snprintf(s->info.team, sizeof(s->info.team), "%s", team);
	s->info.started_ns = ns;
	table_add(t, s);
	return s;
}

static void own(struct sandbox_table *t, struct sandbox *s)
{
	struct err err;

	assert_int_equal(table_own(t, s, &err), 0);
}

static void drop(struct sandbox_table *t, struct sandbox *s)
{
	table_remove(t, s);
	free(s);
}

static void each_is_found_by_its_id_until_it_is_removed(void **state)
{
	struct sandbox_table *t = calloc(1, sizeof(*t));
	struct sandbox *all[MANY];
	char id[32];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "i%d", i);
		all[i] = add(t, id, "team", 1);
	}
	assert_int_equal(t->n, MANY);
	for (int i = 0; i < MANY; i += 2)
		drop(t, all[i]);
	for (int i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "i%d", i);
		assert_ptr_equal(table_find(t, id), i % 2 ? all[i] : NULL);
	}
	assert_int_equal(t->n, MANY / 2);
	while (t->all)
		drop(t, t->all);
	assert_int_equal(t->n, 0);
	assert_null(table_find(t, ""));
	free(t);
}

static void a_team_sees_its_own_in_the_order_of_their_start(void **state)
{
	struct sandbox_table *t = calloc(1, sizeof(*t));
	static const struct {
		const char *id, *team;
		uint64_t ns;
	} rows[] = { { "c", "one", 30 },
		     { "a", "one", 10 },
		     { "x", "two", 5 },
		     { "b2", "one", 20 },
		     { "b1", "one", 20 } };
	static const char *const order[] = { "a", "b1", "b2", "c" };
	struct sandbox *const *list;
	size_t n;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		own(t, add(t, rows[i].id, rows[i].team, rows[i].ns));
	list = table_after(t, "one", 0, "", &n);
	assert_int_equal(n, COUNT(order));
	for (size_t i = 0; i < n; i++)
		assert_string_equal(list[i]->info.id, order[i]);
	list = table_after(t, "one", 20, "b1", &n);
	assert_int_equal(n, 2);
	assert_string_equal(list[0]->info.id, "b2");
	(void)table_after(t, "one", 30, "c", &n);
	assert_int_equal(n, 0);
	(void)table_after(t, "nobody", 0, "", &n);
	assert_int_equal(n, 0);
	table_disown(t, table_find(t, "b1"));
	table_disown(t, table_find(t, "b1")); /* a second time does nothing */
	list = table_after(t, "one", 10, "a", &n);
	assert_int_equal(n, 2);
	assert_string_equal(list[0]->info.id, "b2");
	while (t->all)
		drop(t, t->all);
	(void)table_after(t, "one", 0, "", &n);
	assert_int_equal(n, 0);
	free(t);
}

static void one_that_is_resumed_is_the_last_to_have_started(void **state)
{
	struct sandbox_table *t = calloc(1, sizeof(*t));
	struct sandbox *a = add(t, "a", "one", 10), *b = add(t, "b", "one", 20);
	struct sandbox *c = add(t, "c", "two", 30);
	struct sandbox *const *list;
	size_t n;

	(void)state;
	own(t, a);
	own(t, b);
	own(t, c);
	table_restarted(t, a, 25);
	list = table_after(t, "one", 0, "", &n);
	assert_int_equal(n, 2);
	assert_true(list[0] == b && list[1] == a && a->info.started_ns == 25);
	list = table_after(t, TABLE_EVERYONE, 0, "", &n);
	assert_int_equal(n, 3);
	assert_true(list[0] == b && list[1] == a && list[2] == c);
	table_restarted(t, c, 30); /* alone in its team */
	list = table_after(t, "two", 0, "", &n);
	assert_true(n == 1 && list[0] == c);
	drop(t, a);
	drop(t, b);
	drop(t, c);
	free(t);
}

static void states_are_counted_by_their_only_writer(void **state)
{
	struct sandbox_table *t = calloc(1, sizeof(*t));
	static const enum sandbox_state life[] = {
		SANDBOX_SLOT,     SANDBOX_STARTING,  SANDBOX_RESTORING, SANDBOX_WAITING,
		SANDBOX_NAMING,   SANDBOX_SETTLING,  SANDBOX_RUNNING,   SANDBOX_PAUSING,
		SANDBOX_RUNNING,  SANDBOX_PAUSING,   SANDBOX_PARKING,   SANDBOX_PAUSED,
		SANDBOX_SLOT,     SANDBOX_PARKING,   SANDBOX_PAUSED,    SANDBOX_SLOT,
		SANDBOX_STARTING, SANDBOX_RESTORING, SANDBOX_WAKING,    SANDBOX_RUNNING,
		SANDBOX_ENDING,
	};
	struct sandbox *s = add(t, "a", "team", 0);

	(void)state;
	assert_int_equal(t->in_state[SANDBOX_NOTED], 1);
	for (size_t i = 0; i < COUNT(life); i++) {
		size_t all = 0;

		sandbox_enter(t, s, life[i]);
		assert_int_equal(t->in_state[life[i]], 1);
		for (int k = 0; k < SANDBOX_STATES; k++)
			all += t->in_state[k];
		assert_int_equal(all, 1);
	}
	drop(t, s);
	assert_int_equal(t->in_state[SANDBOX_ENDING], 0);
	for (int i = 0; i < SANDBOX_STATES; i++)
		assert_true(sandbox_state_name((enum sandbox_state)i)[0] != '?');
	free(t);
}

static void a_text_is_split(void **state)
{
	static const struct {
		const char *name, *in, *text;
		size_t n_env; /* SIZE_MAX: refused */
	} rows[] = {
		{ "nothing", "", "{}", 0 },
		{ "empty", "{}", "{}", 0 },
		{ "both", "{\"metadata\":{\"k\":\"v\"},\"envVars\":{\"A\":\"1\",\"B\":\"\"}}",
		  "{\"metadata\":{\"k\":\"v\"}}", 2 },
		{ "null", "{\"envVars\":null,\"x\":[1]}", "{\"x\":[1]}", 0 },
		{ "a number", "{\"envVars\":{\"A\":1}}", "", SIZE_MAX },
		{ "a list", "{\"envVars\":[\"A\"]}", "", SIZE_MAX },
		{ "no name", "{\"envVars\":{\"\":\"1\"}}", "", SIZE_MAX },
		{ "not a name", "{\"envVars\":{\"A=B\":\"1\"}}", "", SIZE_MAX },
		{ "an array", "[]", "", SIZE_MAX },
		{ "half", "{\"envVars\":", "", SIZE_MAX },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(json_decrefp) json_t *env = NULL;
		AUTO(auto_free) char *text = NULL;
		struct err err = { 0 };
		int rc = create_text_split(bytes_str(row->in), NODE_TEXT_MAX, &env, &text, &err);

		if (row->n_env == SIZE_MAX) {
			assert_int_equal(rc, -1);
			assert_int_equal(err.code, ERR_INVALID);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_int_equal(json_object_size(env), row->n_env);
		assert_string_equal(text, row->text);
	}
}

static void guarded_ports_are_remembered(void **state)
{
	AUTO(auto_free) char *text = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(create_text_guard(&text, "9222/devtools", NODE_TEXT_MAX, &err), 0);
	assert_string_equal(text, "{\"guardedPorts\":\"9222/devtools\"}");
	/* in place of what was there, as in a copy of a sandbox */
	assert_int_equal(create_text_guard(&text, "1", NODE_TEXT_MAX, &err), 0);
	assert_string_equal(text, "{\"guardedPorts\":\"1\"}");
	assert_int_equal(create_text_guard(&text, "2", 8, &err), -1);
	assert_string_equal(text, "{\"guardedPorts\":\"1\"}");
}

static void that_refusals_are_pages_is_remembered(void **state)
{
	AUTO(auto_free) char *text = strdup("{\"metadata\":{}}");
	struct err err = { 0 };

	(void)state;
	assert_int_equal(create_text_show_pages(&text, NODE_TEXT_MAX, &err), 0);
	assert_int_equal(create_text_show_pages(&text, NODE_TEXT_MAX, &err), 0);
	assert_string_equal(text, "{\"metadata\":{},\"refusalPages\":true}");
	assert_int_equal(create_text_show_pages(&text, 8, &err), -1);
}

static void available_memory_is_read(void **state)
{
	static const char real[] = "MemTotal:       26215168 kB\nMemFree:        18000000 kB\n"
				   "MemAvailable:   23552000 kB\nBuffers:           12345 kB\n";
	struct memory_watch m = { .available_mib = 1000, .reserve_mib = 500 };
	uint64_t mib = 0;
	struct err err;

	(void)state;
	assert_int_equal(memory_parse(real, "MemAvailable", &mib, &err), 0);
	assert_int_equal(mib, 23000);
	assert_int_equal(memory_parse(real, "MemTotal", &mib, &err), 0);
	assert_int_equal(mib, 25600);
	assert_int_equal(memory_parse("MemTotal: 1 kB\n", "MemAvailable", &mib, &err), -1);
	assert_int_equal(memory_parse("MemTotal: many kB\n", "MemTotal", &mib, &err), -1);
	assert_int_equal(memory_watch_allow(&m, 500, &err), 0);
	assert_int_equal(memory_watch_allow(&m, 501, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
}

/* A team has a place from its first sandbox to its last; the others are counted together. */
static void teams_are_counted_up_to_a_number(void **state)
{
	struct sandbox_table *t = calloc(1, sizeof(*t));
	struct sandbox *all[TABLE_PLACES + 2];
	char id[32];

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		snprintf(id, sizeof(id), "%zu", i);
		all[i] = add(t, id, id, 1);
		own(t, all[i]);
		sandbox_enter(t, all[i], SANDBOX_RUNNING);
	}
	assert_int_equal(t->in_place[0][SANDBOX_RUNNING], 1);
	assert_string_equal(t->places[TABLE_PLACES - 1], "63");
	assert_int_equal(t->in_place[TABLE_PLACES][SANDBOX_RUNNING], 2);
	assert_int_equal(t->in_place[TABLE_PLACES][SANDBOX_NOTED], 0);
	drop(t, all[3]); /* its place is the next one's */
	assert_string_equal(t->places[3], "");
	all[3] = add(t, "new", "new", 2);
	own(t, all[3]);
	assert_string_equal(t->places[3], "new");
	while (t->all)
		drop(t, t->all);
	for (size_t i = 0; i <= TABLE_PLACES; i++)
		for (int s = 0; s < SANDBOX_STATES; s++)
			assert_int_equal(t->in_place[i][s], 0);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_found_by_its_id_until_it_is_removed),
		cmocka_unit_test(a_team_sees_its_own_in_the_order_of_their_start),
		cmocka_unit_test(one_that_is_resumed_is_the_last_to_have_started),
		cmocka_unit_test(states_are_counted_by_their_only_writer),
		cmocka_unit_test(teams_are_counted_up_to_a_number),
		cmocka_unit_test(a_text_is_split),
		cmocka_unit_test(guarded_ports_are_remembered),
		cmocka_unit_test(that_refusals_are_pages_is_remembered),
		cmocka_unit_test(available_memory_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
