/* test_node_steps.c - steps of builds: who finds them, who sees them, which of them go. */
#include "tests/unit/node_scene.h"

#include "node/life/snapshot_steps.h"

enum { MIB = 1024 * 1024 };

static struct snapshot *add(const char *id, const char *team, enum journal_kind kind,
			    const char *key, uint64_t mib)
{
	struct journal_snapshot row = { .created_ns = s.n->snapshots.n + 1,
					.kind = kind,
					.disk_bytes = mib * MIB };
	struct snapshot *p;

	snprintf(row.id, sizeof(row.id), "%s", id);
	snprintf(row.team, sizeof(row.team), "%s", team);
	snprintf(row.key, sizeof(row.key), "%s", key);
	snprintf(row.tag, sizeof(row.tag), "default");
	p = snapshots_add(s.n, &row);
	assert_non_null(p);
	return p;
}

static struct snapshot *step_of(const char *id, const char *team, uint64_t mib)
{
	return add(id, team, JOURNAL_STEP, id, mib);
}

static void run_until_left(size_t n)
{
	while (s.n->snapshots.n != n)
		assert_true(loop_turn(s.n->loop));
}

static void a_step_is_found_by_team_and_key(void **state)
{
	struct snapshot *p;

	(void)state;
	scene_open();
	add("a", "t1", JOURNAL_STEP, "k1", 1);
	add("b", "t2", JOURNAL_STEP, "k1", 1);
	add("c", "t1", JOURNAL_BUILD, "k2", 1);
	add("d", "t1", JOURNAL_STEP, "k3", 1)->missing = true;
	p = add("e", "t1", JOURNAL_STEP, "k1", 1); /* made by a second build at the same time */
	assert_ptr_equal(snapshots_by_key(s.n, "t1", "k1"), p);
	assert_true(p->used_ns > p->row.created_ns);
	assert_string_equal(snapshots_by_key(s.n, "t2", "k1")->row.id, "b");
	assert_null(snapshots_by_key(s.n, "t1", "k2"));
	assert_null(snapshots_by_key(s.n, "t1", "k3"));
	assert_null(snapshots_by_key(s.n, "t3", "k1"));
	scene_end();
}

/* Nobody's hold is the end of one, as it is of a fork's. */
static void a_step_stays_when_nothing_uses_it(void **state)
{
	struct snapshot *p, *q;
	struct err err;

	(void)state;
	scene_open();
	p = step_of("a", "t1", 1);
	q = add("b", "t1", JOURNAL_BUILD, "", 1);
	snapshot_release(snapshot_hold(p));
	snapshot_release(snapshot_hold(q));
	assert_false(p->going || q->going);
	snapshot_hold(q);
	assert_int_equal(snapshot_remove(q, &err), -1);
	snapshot_release(q);
	assert_int_equal(snapshot_remove(q, &err), 0);
	run_until_left(1);
	assert_null(snapshots_by_id(s.n, "b"));
	scene_end();
}

static void the_longest_unused_go_first(void **state)
{
	struct snapshot *used, *newest;

	(void)state;
	scene_open();
	s.n->set[SET_STEPS_MIB].number = 200; /* of a team: 100 */
	step_of("a", "t1", 40);
	used = snapshot_hold(step_of("b", "t1", 30));
	step_of("c", "t1", 20);
	step_of("d", "t2", 90);
	assert_non_null(snapshots_by_key(s.n, "t1", "a"));
	newest = step_of("e", "t1", 25);
	snapshots_trim_steps(newest); /* 115 of t1: c goes, whose turn it is; then 95 */
	run_until_left(4);
	assert_null(snapshots_by_id(s.n, "c"));
	newest = step_of("f", "t3", 90); /* of all 275: d, which is older than what was found */
	snapshots_trim_steps(newest);
	run_until_left(4);
	assert_null(snapshots_by_id(s.n, "d"));
	newest = step_of("g", "t3", 300); /* all that may go goes, itself not */
	snapshots_trim_steps(newest);
	run_until_left(2);
	assert_non_null(snapshots_by_id(s.n, "b"));
	assert_non_null(snapshots_by_id(s.n, "g"));
	snapshot_release(used);
	scene_end();
}

static void there_are_not_too_many(void **state)
{
	char id[32];

	(void)state;
	scene_open();
	s.n->set[SET_STEPS_MIB].number = 1000;
	for (int i = 0; i <= STEPS_KEPT_MAX / STEPS_TEAM_PART; i++) {
		snprintf(id, sizeof(id), "step%d", i);
		step_of(id, "t1", 0);
	}
	snapshots_trim_steps(snapshots_by_id(s.n, id));
	run_until_left(STEPS_KEPT_MAX / STEPS_TEAM_PART);
	assert_null(snapshots_by_id(s.n, "step0"));
	scene_end();
}

static void a_step_that_is_made_again_replaces_the_first(void **state)
{
	struct snapshot *newest, *used;

	(void)state;
	scene_open();
	s.n->set[SET_STEPS_MIB].number = 1000;
	add("a", "t1", JOURNAL_STEP, "k", 1);
	used = snapshot_hold(add("b", "t1", JOURNAL_STEP, "k", 1));
	add("c", "t2", JOURNAL_STEP, "k", 1);
	newest = add("d", "t1", JOURNAL_STEP, "k", 1);
	snapshots_trim_steps(newest);
	run_until_left(3);
	assert_null(snapshots_by_id(s.n, "a"));
	assert_ptr_equal(snapshots_by_key(s.n, "t1", "k"), newest);
	snapshot_release(used);
	scene_end();
}

/* A build that is the newest of a template no more. */
static void what_is_hidden_goes_with_its_last_user(void **state)
{
	struct snapshot *p, *q;

	(void)state;
	scene_open();
	p = snapshot_hold(add("a", "t1", JOURNAL_BUILD, "", 1));
	q = add("b", "t1", JOURNAL_BUILD, "", 1);
	snapshot_hide(p);
	snapshot_hide(q);
	assert_true(q->going);
	run_until_left(1);
	assert_false(p->going);
	snapshot_release(p);
	run_until_left(0);
	scene_end();
}

static void no_list_of_a_team_shows_them(void **state)
{
	struct node_request rq = { .verb = NODE_SNAPSHOTS, .team = "t1" };
	char text[HEARD_MAX];

	(void)state;
	scene_open();
	step_of("aaa", "t1", 1);
	add("bbb", "t1", JOURNAL_BUILD, "", 1);
	add("ccc", "t1", JOURNAL_SNAPSHOT, "", 1);
	send_it(rq, "");
	assert_int_equal(hear_text(text).code, 0);
	assert_non_null(strstr(text, "\"ccc\""));
	assert_null(strstr(text, "\"aaa\""));
	assert_null(strstr(text, "\"bbb\""));
	rq.team[0] = '\0'; /* an operator's */
	send_it(rq, "");
	hear_text(text);
	assert_non_null(strstr(text, "\"kind\":\"step\""));
	assert_non_null(strstr(text, "\"kind\":\"build\""));
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_found_by_team_and_key),
		cmocka_unit_test(a_step_stays_when_nothing_uses_it),
		cmocka_unit_test(the_longest_unused_go_first),
		cmocka_unit_test(there_are_not_too_many),
		cmocka_unit_test(a_step_that_is_made_again_replaces_the_first),
		cmocka_unit_test(what_is_hidden_goes_with_its_last_user),
		cmocka_unit_test(no_list_of_a_team_shows_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
