/* test_node_once.c - a request that is sent again is done once, and what is for nobody ends. */
#include "node/life/create_queue.h"
#include "tests/unit/node_scene.h"

#include "node/recovery/adopt.h"

enum { SOON_MS = 200, LONG_MS = 100000 };

static struct node_request with_token(enum node_verb verb, const char *token, uint64_t ms)
{
	struct node_request rq = request("a", "");

	rq.verb = verb;
	rq.count = 2; /* of a fork */
	rq.deadline_ns = clock_boot_ns() + ms * NSEC_PER_MSEC;
	snprintf(rq.token, sizeof(rq.token), "%s", token);
	return rq;
}

static struct node_request again(struct node_request rq)
{
	rq.flags |= NODE_AGAIN;
	return rq;
}

static void open_scene(void)
{
	scene_open();
	snprintf(s.n->base.id, sizeof(s.n->base.id), "base-1");
	s.n->onces.lost_ms = LONG_MS;
}

/* The gateway's end of the link is gone, and node knows. */
static void link_ends(void)
{
	close(s.sock);
	s.sock = knock();
	send_it((struct node_request){ .verb = NODE_STATUS }, "");
	assert_int_equal(hear().code, ERR_NONE); /* what came before was seen */
}

static void run_until_gone(size_t left)
{
	while (s.n->table.n != left)
		assert_true(loop_turn(s.n->loop));
}

static void expect_quiet(void)
{
	send_it((struct node_request){ .verb = NODE_STATUS }, "");
	assert_int_equal(hear().tag, s.tag);
}

static void give_up_of(const char *token)
{
	struct node_request rq = { .verb = NODE_GIVE_UP };

	snprintf(rq.token, sizeof(rq.token), "%s", token);
	send_it(rq, "");
}

/* --- again -------------------------------------------------------------------------------- */

static void a_create_sent_again_waits_for_the_first(void **state)
{
	struct node_request rq = with_token(NODE_CREATE, "t1", LONG_MS);
	struct sandbox *b;

	(void)state;
	open_scene();
	send_it(rq, "");
	run_until_waiting(1);
	link_ends();
	send_it(again(rq), "");
	expect_quiet();
	assert_int_equal(count_all(), 1);
	b = give();
	assert_string_equal(hear().sandbox.id, b->info.id);
	expect_quiet();
	assert_int_equal(s.n->table.n, 1);
	scene_end();
}

static void a_create_whose_answer_was_lost_is_found(void **state)
{
	struct node_request rq = with_token(NODE_CREATE, "t1", LONG_MS);
	struct sandbox *b;

	(void)state;
	open_scene();
	for (int lost = 0; lost < 2; lost++) { /* before the answer, and with it */
		snprintf(rq.token, sizeof(rq.token), "t%d", lost);
		send_it(rq, "");
		run_until_waiting(1);
		if (lost == 0)
			link_ends();
		b = give();
		if (lost == 1)
			link_ends();
		send_it(again(rq), "");
		assert_string_equal(hear().sandbox.id, b->info.id);
		assert_int_equal(count_all(), 0);
	}
	send_it(again(with_token(NODE_CREATE, "another", LONG_MS)), "");
	run_until_waiting(1);
	assert_int_equal(s.n->table.n, 2);
	scene_end();
}

/* Node died between the row and the answer. */
static void the_next_node_finds_what_was_made(void **state)
{
	struct node_request rq = with_token(NODE_CREATE, "t1", LONG_MS);
	struct journal_row row = { .state = JOURNAL_RUNNING, .token = "t1" };
	struct err err;

	(void)state;
	open_scene();
	row.end_boot_ns = clock_boot_ns() + LONG_MS * NSEC_PER_MSEC;
	snprintf(row.sandbox.id, sizeof(row.sandbox.id), "made");
	snprintf(row.sandbox.team, sizeof(row.sandbox.team), "team");
	row.sandbox.started_ns = clock_wall_ns();
	if (sandbox_load(s.n, &row, &err) < 0)
		fail_msg("%s", err.msg);
	send_it(again(rq), "");
	assert_string_equal(hear().sandbox.id, "made");
	send_it(with_token(NODE_CREATE, "t2", LONG_MS), "");
	run_until_waiting(1);
	scene_end();
}

static struct sandbox *box_of(const char *token)
{
	struct sandbox *b = box_new();

	snprintf(b->token, sizeof(b->token), "%s", token);
	box_runs(b);
	return b;
}

static void a_fork_is_found_when_it_is_whole(void **state)
{
	struct node_request rq = with_token(NODE_FORK, "t1", LONG_MS);
	struct node_reply r;

	(void)state;
	open_scene();
	snprintf(rq.id, sizeof(rq.id), "source");
	box_of("t1");
	box_of("t1");
	send_it(again(rq), "");
	r = hear();
	assert_int_equal(r.code, ERR_NONE);
	assert_int_equal(r.count, 2);
	assert_int_equal(r.text_len, 2 * sizeof(struct node_forked));
	assert_int_equal(s.n->table.n, 2);
	scene_end();
}

/* Nobody was told of some of the copies: they go, and it is done again. */
static void half_a_fork_ends(void **state)
{
	struct node_request rq = with_token(NODE_FORK, "t1", LONG_MS);

	(void)state;
	open_scene();
	snprintf(rq.id, sizeof(rq.id), "source");
	box_of("t1");
	box_of("t2");
	send_it(again(rq), "");
	assert_int_equal(hear().tag, 0);              /* traffic of the half ends */
	assert_int_equal(hear().code, ERR_NOT_FOUND); /* begun anew: there is no such source */
	run_until_gone(1);
	assert_string_equal(s.n->table.all->token, "t2");
	scene_end();
}

static struct snapshot *snapshot_of(const char *token, const char *name)
{
	struct journal_snapshot row = { .team = "team", .tag = "default" };
	struct snapshot *p;

	snprintf(row.id, sizeof(row.id), "snap-%s", token);
	snprintf(row.name, sizeof(row.name), "%s", name);
	snprintf(row.token, sizeof(row.token), "%s", token);
	p = snapshots_add(s.n, &row);
	assert_non_null(p);
	return p;
}

static void a_snapshot_is_found(void **state)
{
	struct node_request rq = with_token(NODE_SNAPSHOT, "t1", LONG_MS);

	(void)state;
	open_scene();
	snprintf(rq.id, sizeof(rq.id), "source");
	rq.template_id[0] = '\0';
	snapshot_of("t1", "");
	send_it(again(rq), "");
	assert_int_equal(hear().code, ERR_NONE);
	snprintf(rq.token, sizeof(rq.token), "t2");
	send_it(again(rq), "");
	assert_int_equal(hear().code, ERR_NOT_FOUND); /* begun: there is no such source */
	scene_end();
}

/* --- for nobody --------------------------------------------------------------------------- */

static void what_is_over_is_not_begun(void **state)
{
	struct node_request rq = with_token(NODE_CREATE, "t1", 0);

	(void)state;
	open_scene();
	send_it(rq, "");
	assert_int_equal(hear().code, ERR_TIMEOUT);
	assert_int_equal(count_all(), 0);
	scene_end();
}

static void a_create_waits_until_its_deadline(void **state)
{
	struct node_request rq;

	(void)state;
	open_scene();
	rq = with_token(NODE_CREATE, "t1", SOON_MS);
	rq.limits.sandboxes = 1;
	send_it(rq, "");
	run_until_waiting(1);
	assert_int_equal(hear().code, ERR_TIMEOUT);
	assert_int_equal(count_all(), 0);
	rq.deadline_ns = clock_boot_ns() + LONG_MS * NSEC_PER_MSEC;
	snprintf(rq.token, sizeof(rq.token), "t2");
	send_it(rq, ""); /* it counts no more */
	run_until_waiting(1);
	scene_end();
}

/* The gateway said 504 long ago. */
static void what_is_there_after_the_deadline_ends(void **state)
{
	struct create *c;
	struct sandbox *b;

	(void)state;
	open_scene();
	send_it(with_token(NODE_CREATE, "t1", SOON_MS), "");
	run_until_waiting(1);
	c = s.n->creates.first;
	creates_take(&s.n->creates, c); /* it has its machine, which takes long */
	while (door_wanted(c->asked))
		assert_true(loop_turn(s.n->loop));
	creates_enqueue(&s.n->creates, c, true);
	b = give();
	assert_string_equal(hear().sandbox.id, b->info.id);
	run_until_gone(0);
	scene_end();
}

static void a_gateway_that_is_lost_for_long_gets_nothing(void **state)
{
	(void)state;
	open_scene();
	s.n->onces.lost_ms = SOON_MS;
	send_it(with_token(NODE_CREATE, "t1", LONG_MS), "");
	run_until_waiting(1);
	link_ends();
	while (count_all() > 0) /* one that waits is not begun */
		assert_true(loop_turn(s.n->loop));
	send_it(with_token(NODE_CREATE, "t2", LONG_MS), "");
	run_until_waiting(1);
	link_ends();
	give();
	run_until_gone(0); /* one that is there ends */
	scene_end();
}

static void what_is_given_up_ends(void **state)
{
	(void)state;
	open_scene();
	send_it(with_token(NODE_CREATE, "t1", LONG_MS), "");
	run_until_waiting(1);
	give_up_of("t1");
	assert_int_equal(hear().code, ERR_TIMEOUT);
	assert_int_equal(hear().code, ERR_NONE);
	assert_int_equal(count_all(), 0);
	send_it(with_token(NODE_CREATE, "t2", LONG_MS), "");
	run_until_waiting(1);
	give(); /* the answer and the gateway's word cross each other */
	assert_int_equal(hear().code, ERR_NONE);
	box_of("t3");
	give_up_of("t2");
	assert_int_equal(hear().tag, 0); /* traffic of it ends */
	assert_int_equal(hear().code, ERR_NONE);
	run_until_gone(1);
	assert_string_equal(s.n->table.all->token, "t3");
	give_up_of("unknown");
	assert_int_equal(hear().code, ERR_NONE);
	scene_end();
}

/* It may be asked for again by its name. */
static void a_create_with_a_name_stays(void **state)
{
	struct node_request rq = with_token(NODE_CREATE, "t1", LONG_MS);
	struct sandbox *b;

	(void)state;
	open_scene();
	s.n->onces.lost_ms = 0;
	snprintf(rq.idempotency, sizeof(rq.idempotency), "name");
	send_it(rq, "");
	run_until_waiting(1);
	give_up_of("t1");
	assert_int_equal(hear().code, ERR_NONE);
	link_ends();
	expect_quiet();
	b = give();
	expect_quiet();
	give_up_of("t1");
	assert_int_equal(hear().code, ERR_NONE);
	snprintf(rq.token, sizeof(rq.token), "t2");
	send_it(again(rq), "");
	assert_string_equal(hear().sandbox.id, b->info.id);
	assert_int_equal(s.n->table.n, 1);
	scene_end();
}

/* One of two that wait for the same name has time left. */
static void a_name_is_waited_for_as_long_as_anybody_does(void **state)
{
	struct node_request rq;

	(void)state;
	open_scene();
	rq = with_token(NODE_CREATE, "t1", 5 * SOON_MS);
	snprintf(rq.idempotency, sizeof(rq.idempotency), "name");
	send_it(rq, "");
	run_until_waiting(1);
	rq.deadline_ns += 5 * SOON_MS * NSEC_PER_MSEC;
	snprintf(rq.token, sizeof(rq.token), "t2");
	send_it(rq, "");
	while (door_wanted(s.n->creates.first->asked))
		assert_true(loop_turn(s.n->loop));
	assert_int_equal(count_all(), 1);
	assert_int_equal(hear().code, ERR_TIMEOUT);
	assert_int_equal(hear().code, ERR_TIMEOUT);
	assert_true(clock_boot_ns() >= rq.deadline_ns);
	assert_int_equal(count_all(), 0);
	scene_end();
}

static void a_snapshot_that_nobody_knows_goes(void **state)
{
	struct snapshot *used;

	(void)state;
	open_scene();
	snapshot_of("t1", "");
	snapshot_of("t2", "name");
	used = snapshot_hold(snapshot_of("t3", ""));
	for (int i = 1; i <= 3; i++) {
		char token[8];

		snprintf(token, sizeof(token), "t%d", i);
		give_up_of(token);
		assert_int_equal(hear().code, ERR_NONE);
	}
	while (s.n->snapshots.n != 2)
		assert_true(loop_turn(s.n->loop));
	assert_null(snapshots_by_id(s.n, "snap-t1"));
	assert_false(used->going);
	assert_false(snapshots_by_id(s.n, "snap-t2")->going);
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_create_sent_again_waits_for_the_first),
		cmocka_unit_test(a_create_whose_answer_was_lost_is_found),
		cmocka_unit_test(the_next_node_finds_what_was_made),
		cmocka_unit_test(a_fork_is_found_when_it_is_whole),
		cmocka_unit_test(half_a_fork_ends),
		cmocka_unit_test(a_snapshot_is_found),
		cmocka_unit_test(what_is_over_is_not_begun),
		cmocka_unit_test(a_create_waits_until_its_deadline),
		cmocka_unit_test(what_is_there_after_the_deadline_ends),
		cmocka_unit_test(a_gateway_that_is_lost_for_long_gets_nothing),
		cmocka_unit_test(what_is_given_up_ends),
		cmocka_unit_test(a_create_with_a_name_stays),
		cmocka_unit_test(a_name_is_waited_for_as_long_as_anybody_does),
		cmocka_unit_test(a_snapshot_that_nobody_knows_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
