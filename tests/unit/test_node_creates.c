/* test_node_creates.c - whose turn it is, how much one may have, and the same create twice. */
#include "node/life/create_queue.h"
#include "tests/unit/node_scene.h"

#include "node/life/limits.h"
#include "node/network/network_secrets.h"

enum { MANY = 40 };

/* --- turns -------------------------------------------------------------------------------- */

static struct create *of(const char *key, unsigned int number)
{
	struct create *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	snprintf(c->key_id, sizeof(c->key_id), "%s", key);
	c->timeout_s = number;
	return c;
}

/* The key and the number of who is next, as "a3". */
static void next(struct creates *q, char ret[static 80])
{
	struct create *c = q->first;

	assert_non_null(c);
	creates_take(q, c);
	snprintf(ret, 80, "%s%u", c->key_id, c->timeout_s);
	free(c);
}

static void expect(struct creates *q, const char *order)
{
	for (const char *at = order; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
		char got[80];

		next(q, got);
		if (strncmp(at, got, strlen(got)) != 0)
			fail_msg("%s comes, not %s", got, at);
	}
}

static void keys_take_turns(void **state)
{
	struct creates q = { 0 };

	(void)state;
	for (unsigned int i = 1; i <= 5; i++)
		creates_enqueue(&q, of("a", i), false);
	creates_enqueue(&q, of("b", 1), false);
	creates_enqueue(&q, of("b", 2), false);
	creates_enqueue(&q, of("c", 1), false);
	assert_int_equal(q.n, 8);
	expect(&q, "a1 b1 c1 a2 b2 a3");
	creates_enqueue(&q, of("d", 1), false);
	expect(&q, "d1 a4 a5");
	assert_int_equal(q.n, 0);
	assert_null(q.first);
}

/* One that asks one at a time is not always ahead of one that asked for many. */
static void who_asks_again_and_again_waits_too(void **state)
{
	struct creates q = { 0 };
	unsigned int many = 0;

	(void)state;
	for (unsigned int i = 1; i <= MANY; i++)
		creates_enqueue(&q, of("many", i), false);
	creates_enqueue(&q, of("b", 0), false);
	creates_enqueue(&q, of("c", 0), false);
	for (unsigned int turn = 0; many < MANY; turn++) {
		char got[80];

		next(&q, got);
		many += strncmp(got, "many", 4) == 0;
		if (got[0] != 'm')
			creates_enqueue(&q, of(got[0] == 'b' ? "b" : "c", 0), false);
		if (turn > 3 * MANY + 3)
			fail_msg("only %u of %d came", many, MANY);
	}
	while (q.first) {
		char got[80];

		next(&q, got);
	}
}

static void one_that_comes_back_is_first(void **state)
{
	struct creates q = { 0 };
	struct create *c;

	(void)state;
	creates_enqueue(&q, of("a", 1), false);
	creates_enqueue(&q, of("a", 2), false);
	creates_enqueue(&q, of("b", 1), false);
	c = q.first;
	creates_take(&q, c);
	creates_enqueue(&q, c, true); /* its sandbox failed */
	assert_int_equal(creates_waiting(&q, c), 2);
	expect(&q, "a1 b1 a2");
}

static void any_of_them_may_leave(void **state)
{
	struct creates q = { 0 };
	struct create *c[4];

	(void)state;
	for (unsigned int i = 0; i < COUNT(c); i++) {
		c[i] = of("a", i);
		creates_enqueue(&q, c[i], false);
	}
	creates_dequeue(&q, c[3]);
	creates_dequeue(&q, c[0]);
	creates_dequeue(&q, c[0]);
	assert_int_equal(q.n, 2);
	expect(&q, "a1 a2");
	free(c[0]);
	free(c[3]);
}

/* --- limits ------------------------------------------------------------------------------- */

static void no_more_than_the_limit_running_and_waiting(void **state)
{
	static const struct {
		const char *name;
		struct node_limits limits;
		const char *says;
	} rows[] = {
		{ "sandboxes",
		  { .sandboxes = 2 },
		  "you have reached the maximum number of concurrent sandboxes (2)" },
		{ "processors", { .vcpus = 5 }, "vCPUs (5)" },
		{ "memory", { .memory_mib = 1024 }, "memory (1024 MiB)" },
		{ "disk", { .disk_mib = 2999 }, "disk (2999 MiB)" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct node_request rq = request("key", "");
		struct sandbox *first;
		struct node_reply r;

		scene_open();
		rq.limits = row->limits;
		send_it(rq, "");
		run_until_waiting(1);
		first = give(); /* one runs */
		assert_int_equal(hear().code, ERR_NONE);
		send_it(rq, "");
		run_until_waiting(1); /* and one waits */
		send_it(rq, "");
		r = hear();
		assert_int_equal(r.code, ERR_EXHAUSTED);
		assert_int_equal(r.retry_s, 0);
		if (!strstr(r.msg, row->says))
			fail_msg("`%s` says nothing of `%s`", r.msg, row->says);
		assert_int_equal(count_all(), 1);
		rq = request("another", "");
		rq.limits = row->limits;
		send_it(rq, ""); /* another key has its own */
		run_until_waiting(2);
		rq = request("key", "");
		rq.limits = row->limits;
		first->info.state = NODE_PAUSED; /* does not count */
		send_it(rq, "");
		run_until_waiting(3);
		scene_end();
	}
}

/* Whatever keys they were made by; besides the limits of each key. */
static void no_more_than_the_limit_of_the_team(void **state)
{
	static const struct {
		const char *name;
		struct node_limits limits;
		const char *says;
	} rows[] = {
		{ "sandboxes",
		  { .sandboxes = 2 },
		  "your team has reached the maximum number of concurrent sandboxes (2)" },
		{ "processors", { .vcpus = 5 }, "vCPUs (5)" },
		{ "memory", { .memory_mib = 1024 }, "memory (1024 MiB)" },
		{ "disk", { .disk_mib = 2999 }, "disk (2999 MiB)" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct node_request rq = request("a", "");
		struct node_reply r;

		scene_open();
		rq.team_limits = row->limits;
		send_it(rq, "");
		run_until_waiting(1);
		give(); /* one runs */
		assert_int_equal(hear().code, ERR_NONE);
		rq = request("b", "");
		rq.team_limits = row->limits;
		send_it(rq, "");
		run_until_waiting(1); /* and one waits */
		rq = request("c", "");
		rq.team_limits = row->limits;
		send_it(rq, "");
		r = hear();
		assert_int_equal(r.code, ERR_EXHAUSTED);
		if (!strstr(r.msg, row->says))
			fail_msg("`%s` says nothing of `%s`", r.msg, row->says);
		snprintf(rq.team, sizeof(rq.team), "another");
		send_it(rq, ""); /* another team has its own */
		run_until_waiting(2);
		scene_end();
	}
}

static void no_create_when_no_more_may_be_paused(void **state)
{
	static const struct {
		const char *name;
		uint32_t of_key, of_team;
		uint64_t of_host;
		const char *says;
		bool others; /* may another key? */
	} rows[] = {
		{ "of the key", 1, 0, 100, "maximum number of paused sandboxes (1)", true },
		{ "of the team", 0, 1, 100,
		  "your team has reached the maximum number of paused sandboxes (1)", false },
		{ "of the host", 0, 0, 1, "this host holds 1 paused sandboxes", false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct node_request rq = request("key", "");
		struct sandbox *b;
		struct node_reply r;
		struct err err;

		scene_open();
		s.n->set[SET_PAUSED_MAX].number = row->of_host;
		rq.limits.paused = row->of_key;
		rq.team_limits.paused = row->of_team;
		send_it(rq, "");
		run_until_waiting(1);
		b = give();
		assert_int_equal(hear().code, ERR_NONE);
		assert_int_equal(limits_allow_paused(s.n, rq.team, &rq, &err), 0);
		send_it(rq, ""); /* what runs does not count */
		run_until_waiting(1);
		box_rests(b);
		assert_int_equal(limits_allow_paused(s.n, rq.team, &rq, &err), -1);
		send_it(rq, "");
		r = hear();
		assert_int_equal(r.code, ERR_EXHAUSTED);
		assert_int_equal(r.retry_s, 0);
		if (!strstr(r.msg, row->says))
			fail_msg("`%s` says nothing of `%s`", r.msg, row->says);
		snprintf(rq.key_id, sizeof(rq.key_id), "another");
		assert_int_equal(limits_allow_paused(s.n, rq.team, &rq, &err),
				 row->others ? 0 : -1);
		scene_end();
	}
}

static void a_full_host_says_when_to_come_again(void **state)
{
	struct node_reply r;

	(void)state;
	scene_open();
	s.n->set[SET_SANDBOXES_MAX].number = 1;
	send_it(request("a", ""), "");
	run_until_waiting(1);
	send_it(request("b", ""), "");
	r = hear();
	assert_int_equal(r.code, ERR_EXHAUSTED);
	assert_true(r.retry_s > 0);
	scene_end();
}

static void a_full_disk_is_said_before_anybody_waits(void **state)
{
	struct node_reply r;

	(void)state;
	scene_open();
	keep_free(1ull << 40);
	send_it(request("a", ""), "");
	r = hear();
	assert_int_equal(r.code, ERR_NO_SPACE);
	assert_non_null(strstr(r.msg, s.dir));
	assert_int_equal(r.retry_s, 0);
	assert_int_equal(s.n->creates.n, 0);
	scene_end();
}

static void one_key_does_not_fill_the_queue(void **state)
{
	struct node_reply r;

	(void)state;
	scene_open();
	s.n->set[SET_SANDBOXES_MAX].number = NODE_SANDBOXES_MAX;
	for (size_t i = 0; i < CREATES_KEY_MAX; i++) {
		send_it(request("a", ""), "");
		run_until_waiting(i + 1);
	}
	send_it(request("a", ""), "");
	r = hear();
	assert_int_equal(r.code, ERR_EXHAUSTED);
	assert_true(r.retry_s > CREATE_RETRY_S);
	send_it(request("b", ""), "");
	run_until_waiting(CREATES_KEY_MAX + 1);
	scene_end();
}

static void too_long_a_life_is_refused(void **state)
{
	struct node_request rq = request("a", "");
	struct node_reply r;

	(void)state;
	scene_open();
	rq.timeout_s = 3601;
	send_it(rq, "");
	r = hear();
	assert_int_equal(r.code, ERR_INVALID);
	assert_string_equal(r.msg, "Timeout cannot be greater than 1 hours");
	scene_end();
}

/* --- again -------------------------------------------------------------------------------- */

static void the_same_create_is_the_same_sandbox(void **state)
{
	struct journal_row row = { 0 };
	struct node_request other;
	struct sandbox *b;
	struct node_reply r;

	(void)state;
	scene_open();
	for (int i = 0; i < 3; i++)
		send_it(request("a", "name"), "{\"metadata\":{}}");
	send_it(request("a", "other"), "{\"metadata\":{}}");
	run_until_waiting(2); /* two names: the others wait for the first */
	b = give();
	for (int i = 0; i < 3; i++) {
		r = hear();
		assert_int_equal(r.code, ERR_NONE);
		assert_string_equal(r.sandbox.id, b->info.id);
	}
	send_it(request("a", "name"), "{\"metadata\":{}}"); /* and later */
	assert_string_equal(hear().sandbox.id, b->info.id);
	send_it(request("a", "name"), "{\"metadata\":{\"x\":\"y\"}}");
	assert_int_equal(hear().code, ERR_EXISTS);
	other = request("a", "name");
	other.timeout_s++;
	send_it(other, "{\"metadata\":{}}");
	assert_int_equal(hear().code, ERR_EXISTS);
	other = request("a", "name");
	snprintf(other.team, sizeof(other.team), "strangers");
	send_it(other, "{\"metadata\":{}}"); /* names are a team's own */
	run_until_waiting(2);
	idempotency_note(b, &row);
	assert_string_equal(row.idempotency, "name");
	idempotency_forget(b); /* it ended: another is made */
	send_it(request("a", "name"), "{\"metadata\":{}}");
	run_until_waiting(3);
	scene_end();
}

static void who_waits_for_a_create_that_fails_is_told(void **state)
{
	struct err why;

	(void)state;
	scene_open();
	send_it(request("a", "name"), "");
	send_it(request("a", "name"), "");
	run_until_waiting(1);
	send_it(request("b", ""), ""); /* after it: the two were taken */
	run_until_waiting(2);
	err_set(&why, ERR_TIMEOUT, 0, "no luck");
	creates_refuse_all(s.n, &why);
	for (int i = 0; i < 3; i++) {
		struct node_reply r = hear();

		assert_int_equal(r.code, ERR_TIMEOUT);
		assert_string_equal(r.msg, "no luck");
	}
	send_it(request("a", "name"), ""); /* the name is free */
	run_until_waiting(1);
	scene_end();
}

static void no_more_than_so_many_wait_for_one(void **state)
{
	(void)state;
	scene_open();
	for (int i = 0; i < 1 + REPEAT_WAITS_MAX + 1; i++)
		send_it(request("a", "name"), "");
	assert_int_equal(hear().code, ERR_EXHAUSTED);
	scene_end();
}

static void the_journal_remembers_it_for_a_day(void **state)
{
	struct journal_row row = { .idempotency = "name" };
	struct node_request rq = request("a", "name");
	struct sandbox *b;
	struct err err;

	(void)state;
	scene_open();
	b = box_new();
	snprintf(row.sandbox.id, sizeof(row.sandbox.id), "%s", b->info.id);
	snprintf(row.sandbox.team, sizeof(row.sandbox.team), "team");
	row.request_print = idempotency_print(&rq, BYTES_LIT("{}"));
	b->info.started_ns = clock_wall_ns() - 23 * 3600 * NSEC_PER_SEC;
	assert_int_equal(idempotency_load(b, &row, &err), 0);
	send_it(rq, "{}");
	assert_string_equal(hear().sandbox.id, b->info.id);
	b->info.started_ns -= 3600 * NSEC_PER_SEC;
	send_it(rq, "{}");
	run_until_waiting(1);
	assert_null(b->repeat);
	scene_end();
}

/* --- what fails on the way ------------------------------------------------------------------ */

/* It found its template: whatever is missing then, or in the way, is the host's, and no reason for
 * a 404. */
static void what_the_host_lacks_is_not_what_was_asked_for(void **state)
{
	static const struct {
		const char *name;
		enum err_code said, told;
	} rows[] = {
		{ "a file of the template", ERR_NOT_FOUND, ERR_INTERNAL },
		{ "a name that is taken", ERR_EXISTS, ERR_INTERNAL },
		{ "a folder that may not be read", ERR_DENIED, ERR_INTERNAL },
		{ "variables that its agent does not take", ERR_INVALID, ERR_INVALID },
		{ "memory", ERR_EXHAUSTED, ERR_EXHAUSTED },
		{ "warden", ERR_UNAVAILABLE, ERR_UNAVAILABLE },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct node_reply reply;
		struct sandbox *b;
		struct err err;

		scene_open();
		send_it(request("a", ""), "{}");
		run_until_waiting(1);
		b = box_new();
		b->create = s.n->creates.first;
		b->create->tries = CREATE_TRIES_MAX;
		creates_take(&s.n->creates, b->create);
		s.n->creates.claimed = s.n->creates.bound = 1;
		err_set(&err, row->said, 0, "open the template's memory");
		creates_failed(b, &err);
		reply = hear();
		assert_int_equal(reply.code, row->told);
		assert_non_null(strstr(reply.msg, "open the template's memory"));
		scene_end();
	}
}

/* Who reads its log learns it; no SDK shows a field of an answer. */
static void a_secret_that_does_not_exist_is_in_the_log(void **state)
{
	struct sandbox *b;

	(void)state;
	scene_open();
	b = box_new();
	secrets_note_missing(b);
	assert_int_equal(b->record.events.n, 0);
	b->text = strdup("{\"network\":{\"rules\":{\"a.test\":[{\"transform\":{\"headers\":{\"X\":"
			 "\"${e2b.secrets.nosuch}\"}}}]}},\"sealed\":{}}");
	secrets_note_missing(b);
	assert_int_equal(b->record.events.n, 1);
	assert_int_equal(b->record.events.at[0].level, EVENT_WARN);
	assert_string_equal(b->record.events.at[0].message,
			    "Rules name a secret that does not exist: nosuch");
	scene_end();
}

/* Nothing is stopped and copied for those who may not have it. */
static void a_fork_over_the_limit_copies_nothing(void **state)
{
	struct node_request rq = request("a", "");
	struct node_forked all[2];
	char text[HEARD_MAX];
	struct node_reply reply;
	struct sandbox *b;

	(void)state;
	scene_open();
	b = box_new();
	snprintf(b->key_id, sizeof(b->key_id), "a");
	box_runs(b);
	rq.verb = NODE_FORK;
	snprintf(rq.id, sizeof(rq.id), "%s", b->info.id);
	rq.limits.sandboxes = 1;
	rq.count = COUNT(all);
	send_it(rq, "");
	reply = hear_bytes(text);
	assert_int_equal(reply.code, ERR_NONE);
	assert_int_equal(reply.count, COUNT(all));
	memcpy(all, text, sizeof(all));
	for (size_t i = 0; i < COUNT(all); i++) {
		assert_int_equal(all[i].code, ERR_EXHAUSTED);
		assert_non_null(strstr(all[i].msg, "maximum number of concurrent sandboxes (1)"));
	}
	assert_int_equal(b->state, SANDBOX_RUNNING);
	assert_null(b->pausing);
	assert_null(s.n->forks);
	assert_int_equal(s.n->figures.limited, COUNT(all));
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_take_turns),
		cmocka_unit_test(who_asks_again_and_again_waits_too),
		cmocka_unit_test(one_that_comes_back_is_first),
		cmocka_unit_test(any_of_them_may_leave),
		cmocka_unit_test(no_more_than_the_limit_running_and_waiting),
		cmocka_unit_test(no_more_than_the_limit_of_the_team),
		cmocka_unit_test(no_create_when_no_more_may_be_paused),
		cmocka_unit_test(a_full_host_says_when_to_come_again),
		cmocka_unit_test(a_full_disk_is_said_before_anybody_waits),
		cmocka_unit_test(one_key_does_not_fill_the_queue),
		cmocka_unit_test(too_long_a_life_is_refused),
		cmocka_unit_test(the_same_create_is_the_same_sandbox),
		cmocka_unit_test(who_waits_for_a_create_that_fails_is_told),
		cmocka_unit_test(no_more_than_so_many_wait_for_one),
		cmocka_unit_test(the_journal_remembers_it_for_a_day),
		cmocka_unit_test(what_the_host_lacks_is_not_what_was_asked_for),
		cmocka_unit_test(a_secret_that_does_not_exist_is_in_the_log),
		cmocka_unit_test(a_fork_over_the_limit_copies_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
