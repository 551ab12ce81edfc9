/* test_node_builder.c - sandboxes of node's own: who knows of them, what counts, how they end. */
#include "tests/unit/node_scene.h"

#include "node/life/admission.h"
#include "node/life/builder.h"

static struct {
	struct builder b;
	int running, ended;
	struct err why;
	bool end_at_once;
} t;

static void on_running(struct builder *b)
{
	t.running++;
	if (t.end_at_once)
		builder_end(b);
}

static void on_ended(struct builder *b, const struct err *why)
{
	(void)b;
	t.ended++;
	t.why = *why;
}

static const struct builder_ops ops = { on_running, on_ended };

static void begin(void)
{
	struct err err;

	if (builder_begin(&t.b, s.n, &(struct builder_spec){ .team = "team", .boot = true }, &ops,
			  &err) < 0)
		fail_msg("%s", err.msg);
}

static void open_all(void)
{
	scene_open();
	memset(&t, 0, sizeof(t));
}

/* As on_settled() does. */
static struct sandbox *it_runs(void)
{
	struct create *c = s.n->creates.first;
	struct sandbox *b = box_new();

	creates_take(&s.n->creates, c);
	s.n->creates.claimed++;
	b->create = c;
	b->info.flags = c->flags & ~(uint32_t)NODE_BOOT;
	b->info.started_ns = 0;
	sandbox_enter(&s.n->table, b, SANDBOX_RUNNING);
	sandbox_set_deadline(b);
	creates_done(b);
	return b;
}

static void a_wish_that_is_given_up_is_forgotten(void **state)
{
	(void)state;
	open_all();
	begin();
	assert_int_equal(s.n->creates.n, 1);
	assert_true(create_is_own(s.n->creates.first));
	builder_end(&t.b);
	assert_int_equal(s.n->creates.n, 0);
	assert_int_equal(count_all(), 0);
	builder_end(&t.b); /* a second time does nothing */
	begin();
	builder_end(&t.b);
	assert_int_equal(t.running + t.ended, 0);
	scene_end();
}

static void what_cannot_be_is_told_once(void **state)
{
	struct err err;

	(void)state;
	open_all();
	begin();
	err_set(&err, ERR_UNAVAILABLE, 0, "node is being stopped");
	creates_refuse_all(s.n, &err);
	assert_int_equal(t.ended, 1);
	assert_int_equal(t.why.code, ERR_UNAVAILABLE);
	assert_string_equal(t.why.msg, "node is being stopped");
	assert_int_equal(count_all(), 0);
	builder_end(&t.b);
	s.n->stopping = true;
	assert_int_equal(
		builder_begin(&t.b, s.n, &(struct builder_spec){ .team = "team" }, &ops, &err), -1);
	assert_int_equal(t.ended, 1);
	scene_end();
}

/* On its way: what was begun for it ends, and nobody is told. */
static void one_that_starts_is_ended(void **state)
{
	struct create *c;
	struct sandbox *b;

	(void)state;
	open_all();
	begin();
	c = s.n->creates.first;
	b = box_new();
	creates_take(&s.n->creates, c);
	s.n->creates.claimed++;
	s.n->creates.bound++;
	b->create = c;
	b->info.started_ns = 0;
	builder_end(&t.b);
	assert_int_equal(b->state, SANDBOX_ENDING);
	assert_null(b->create);
	assert_int_equal(s.n->creates.claimed + s.n->creates.bound, 0);
	assert_int_equal(count_all(), 0);
	assert_int_equal(t.running + t.ended, 0);
	scene_end();
}

static void no_client_knows_of_it(void **state)
{
	struct node_request rq = request("key", "");
	struct sandbox *b;

	(void)state;
	open_all();
	begin();
	b = it_runs();
	assert_int_equal(t.running, 1);
	assert_string_equal(builder_id(&t.b), b->info.id);
	assert_false(b->timer.active); /* no deadline */
	memcpy(rq.id, b->info.id, sizeof(rq.id));
	for (unsigned int i = 0; i < 2; i++) { /* also when it ends */
		static const uint32_t verbs[] = { NODE_GET, NODE_KILL, NODE_PAUSE };

		for (size_t v = 0; v < COUNT(verbs); v++) {
			rq.verb = verbs[v];
			send_it(rq, "");
			assert_int_equal(hear().code, ERR_NOT_FOUND);
		}
		rq.verb = NODE_LIST;
		send_it(rq, "");
		assert_int_equal(hear().count, 0);
		if (i == 0)
			sandbox_end(b, NODE_VMM_CRASH, "its VM has ended");
	}
	assert_int_equal(t.ended, 1);
	assert_non_null(strstr(t.why.msg, "its VM has ended"));
	scene_end();
}

static void its_owner_may_end_it_as_soon_as_it_runs(void **state)
{
	struct sandbox *b;

	(void)state;
	open_all();
	t.end_at_once = true;
	begin();
	b = it_runs();
	assert_int_equal(t.running, 1);
	assert_int_equal(t.ended, 0);
	assert_int_equal(b->state, SANDBOX_ENDING);
	scene_end();
}

/* Neither one that waits nor one that runs. Of the host it takes memory. */
static void no_limit_of_the_team_counts_it(void **state)
{
	struct node_request rq = request("key", "");
	struct builder other = { 0 };
	uint64_t promised;
	struct err err;

	(void)state;
	open_all();
	rq.team_limits.sandboxes = 1;
	promised = admission_promised_mib(s.n);
	begin();
	assert_int_equal(admission_promised_mib(s.n), promised + 512);
	it_runs();
	if (builder_begin(&other, s.n,
			  &(struct builder_spec){
				  .team = "team", .boot = true, .vcpus = 1, .memory_mib = 2048 },
			  &ops, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(admission_promised_mib(s.n), promised + 512 + 2048);
	send_it(rq, "");
	run_until_waiting(2);
	send_it(rq, ""); /* the second of the team */
	assert_int_equal(hear().code, ERR_EXHAUSTED);
	builder_end(&other);
	s.n->memory.total_mib = 1024;
	assert_int_equal(builder_begin(&other, s.n,
				       &(struct builder_spec){ .team = "team",
							       .boot = true,
							       .vcpus = 1,
							       .memory_mib = 2048 },
				       &ops, &err),
			 -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	scene_end();
}

/* What it will have counts while it waits, too: two of these are too much for the team. */
static void a_create_counts_with_the_sizes_it_will_have(void **state)
{
	struct node_request rq = request("key", "");

	(void)state;
	open_all();
	rq.team_limits.memory_mib = 1000;
	rq.flags = NODE_BOOT;
	send_it(rq, "{\"sizes\":{\"vcpus\":1,\"memoryMib\":600}}");
	run_until_waiting(1);
	send_it(rq, "{\"sizes\":{\"vcpus\":1,\"memoryMib\":600}}");
	assert_int_equal(hear().code, ERR_EXHAUSTED);
	send_it(rq, "{\"sizes\":{\"vcpus\":1,\"memoryMib\":300}}");
	run_until_waiting(2);
	scene_end();
}

static void sizes_are_read_of_one_that_boots_alone(void **state)
{
	static const char *const bad[] = {
		"{\"sizes\":{\"vcpus\":0,\"memoryMib\":600}}",
		"{\"sizes\":{\"vcpus\":65,\"memoryMib\":600}}",
		"{\"sizes\":{\"vcpus\":1,\"memoryMib\":63}}",
		"{\"sizes\":{\"vcpus\":1,\"memoryMib\":1048577}}",
		"{\"sizes\":{\"vcpus\":1}}",
		"{\"sizes\":3}",
	};
	struct node_request rq = request("key", "");

	(void)state;
	open_all();
	send_it(rq, bad[0]);
	run_until_waiting(1);
	assert_false(create_is_own(s.n->creates.first));
	rq.flags = NODE_BOOT;
	for (size_t i = 0; i < COUNT(bad); i++) {
		send_it(rq, bad[i]);
		assert_int_equal(hear().code, ERR_INVALID);
	}
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wish_that_is_given_up_is_forgotten),
		cmocka_unit_test(what_cannot_be_is_told_once),
		cmocka_unit_test(one_that_starts_is_ended),
		cmocka_unit_test(no_client_knows_of_it),
		cmocka_unit_test(its_owner_may_end_it_as_soon_as_it_runs),
		cmocka_unit_test(no_limit_of_the_team_counts_it),
		cmocka_unit_test(a_create_counts_with_the_sizes_it_will_have),
		cmocka_unit_test(sizes_are_read_of_one_that_boots_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
