/* test_gateway_once.c - what is sent again is known by its token, and what nobody waits for is
 * given up.
 */
#include "tests/unit/link_scene.h"

#include "base/clock.h"

static const struct {
	const char *name;
	enum node_verb verb;
} once[] = { { "create", NODE_CREATE }, { "fork", NODE_FORK }, { "snapshot", NODE_SNAPSHOT } };

/* What must not be done twice is known by its token. */
static void what_is_sent_again_has_the_same_token(void **state)
{
	char first[COUNT(once)][NODE_ID_MAX + 1];
	struct node_request rq;

	(void)state;
	scene_open_with_node();
	for (size_t i = 0; i < COUNT(once); i++) {
		ask(i, once[i].verb);
		hear(&rq);
		assert_int_equal(strlen(rq.token), NODE_TOKEN_LENGTH);
		assert_int_equal(rq.flags, 0);
		memcpy(first[i], rq.token, sizeof(first[i]));
	}
	assert_string_not_equal(first[0], first[1]);
	node_dies();
	node_starts();
	node_accepts();
	for (size_t i = 0; i < COUNT(once); i++) {
		reply(&(struct node_reply){ .tag = hear(&rq) });
		assert_int_equal(rq.flags, NODE_AGAIN);
		for (size_t k = 0; k < COUNT(once); k++)
			if (rq.verb == once[k].verb)
				assert_string_equal(rq.token, first[k]);
	}
	run_until(&s.n_done, COUNT(once));
	for (size_t i = 0; i < COUNT(once); i++)
		assert_int_equal(s.calls[i].err.code, ERR_NONE);
	scene_end();
}

static void a_restart_of_node_is_not_seen(void **state)
{
	static const enum node_verb again[CALLS] = { NODE_CREATE,  NODE_GET,     NODE_KILL,
						     NODE_TIMEOUT, NODE_CONNECT, NODE_LIST,
						     NODE_SOCKETS, NODE_STATUS };
	struct node_request rq;
	unsigned int heard = 0;

	(void)state;
	scene_open_with_node();
	for (size_t i = 0; i < CALLS; i++)
		ask(i, again[i]);
	for (size_t i = 0; i < CALLS; i++)
		hear(&rq);
	node_dies();
	node_starts();
	node_accepts();
	for (size_t i = 0; i < CALLS; i++) {
		reply(&(struct node_reply){ .tag = hear(&rq) });
		heard |= 1u << rq.verb;
	}
	run_until(&s.n_done, CALLS);
	for (size_t i = 0; i < CALLS; i++) {
		assert_int_equal(s.calls[i].err.code, ERR_NONE);
		assert_true(heard & 1u << again[i]);
	}
	assert_int_equal(s.n_down, 1);
	assert_int_equal(s.n_up, 2);
	scene_end();
}

static void node_knows_until_when_somebody_waits(void **state)
{
	uint64_t before = clock_boot_ns();
	struct node_request rq;

	(void)state;
	scene_open_with_node();
	ask_ms(0, NODE_CREATE, MS);
	ask_ms(1, NODE_GET, MS);
	for (size_t i = 0; i < 2; i++) {
		reply(&(struct node_reply){ .tag = hear(&rq) });
		assert_true(rq.deadline_ns >= before + MS * NSEC_PER_MSEC);
		assert_true(rq.deadline_ns <= clock_boot_ns() + MS * NSEC_PER_MSEC);
		assert_int_equal(rq.token[0] != '\0', rq.verb == NODE_CREATE);
	}
	run_until(&s.n_done, 2);
	scene_end();
}

static void expect_given_up(const char *token)
{
	struct node_request rq;

	reply(&(struct node_reply){ .tag = hear(&rq) });
	assert_int_equal(rq.verb, NODE_GIVE_UP);
	assert_string_equal(rq.token, token);
}

/* Late, cancelled, sent too often: nobody hears what became of it, and node is told so. */
static void what_ends_without_an_answer_is_given_up(void **state)
{
	struct node_request rq;

	(void)state;
	FOR_ROWS(row, once) {
		scene_open_with_node();
		ask_ms(0, row->verb, 30);
		hear(&rq);
		run_until(&s.n_done, 1);
		assert_int_equal(s.calls[0].err.code, ERR_TIMEOUT);
		expect_given_up(rq.token);
		ask(1, row->verb);
		hear(&rq);
		link_cancel(&s.calls[1].call);
		expect_given_up(rq.token);
		ask(2, row->verb);
		for (size_t i = 0; i < NODE_SENDS_MAX; i++) {
			if (i > 0)
				node_accepts();
			hear(&rq);
			close(take_fd(&s.peer));
		}
		run_until(&s.n_done, 2);
		assert_int_equal(s.calls[2].err.code, ERR_UNAVAILABLE);
		node_accepts();
		expect_given_up(rq.token);
		ask(3, row->verb); /* answered, and cancelled after: nothing to say */
		reply(&(struct node_reply){ .tag = hear(&rq) });
		run_until(&s.n_done, 3);
		link_cancel(&s.calls[3].call);
		ask(4, NODE_GET);
		reply(&(struct node_reply){ .tag = hear(&rq) });
		assert_int_equal(rq.verb, NODE_GET);
		run_until(&s.n_done, 4);
		scene_end();
	}
}

static void a_node_that_is_away_hears_of_it_later(void **state)
{
	struct node_request rq;
	char token[NODE_ID_MAX + 1];

	(void)state;
	scene_open_with_node();
	ask(0, NODE_CREATE);
	hear(&rq);
	memcpy(token, rq.token, sizeof(token));
	node_dies();
	run_until(&s.n_down, 1);
	link_cancel(&s.calls[0].call);
	ask(1, NODE_CREATE); /* never sent: there is nothing to give up */
	link_cancel(&s.calls[1].call);
	node_starts();
	node_accepts();
	expect_given_up(token);
	ask(2, NODE_GET);
	reply(&(struct node_reply){ .tag = hear(&rq) });
	assert_int_equal(rq.verb, NODE_GET);
	run_until(&s.n_done, 1);
	ask(3, NODE_CREATE);
	hear(&rq);
	link_cancel(&s.calls[3].call); /* it is closed with this under way */
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent_again_has_the_same_token),
		cmocka_unit_test(a_restart_of_node_is_not_seen),
		cmocka_unit_test(node_knows_until_when_somebody_waits),
		cmocka_unit_test(what_ends_without_an_answer_is_given_up),
		cmocka_unit_test(a_node_that_is_away_hears_of_it_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
