/* test_node_memory.c - how much memory may be promised, and what is refused for it. */
#include "tests/unit/node_scene.h"

#include "node/life/admission.h"
#include "node/life/resume.h"

enum { RESERVE = 512, GIB = 1024 };

/* Nobody's turn to be resumed comes. */
static void open_host(uint64_t spare_mib)
{
	scene_open();
	turns_open(&s.n->resumes, s.n->loop, 0);
	s.n->memory.reserve_mib = RESERVE;
	s.n->memory.available_mib = RESERVE + spare_mib;
}

static void end_host(void)
{
	turns_close(&s.n->resumes);
	scene_end();
}

static struct sandbox *paused(uint64_t saved_mib)
{
	struct sandbox *b = box_new();

	box_runs(b);
	box_rests(b);
	b->saved_bytes = saved_mib << 20;
	return b;
}

static struct node_request resume_of(const struct sandbox *b)
{
	struct node_request rq = request("key", "");

	rq.verb = NODE_RESUME;
	memcpy(rq.id, b->info.id, sizeof(rq.id));
	return rq;
}

static void refused(struct node_request rq, const char *says)
{
	struct node_reply r;

	send_it(rq, "");
	r = hear();
	assert_int_equal(r.code, ERR_EXHAUSTED);
	if (!strstr(r.msg, says))
		fail_msg("`%s` says nothing of `%s`", r.msg, says);
}

static void resumes(struct sandbox *b)
{
	struct err err;

	if (resume_begin(b, 60, true, &err) < 0)
		fail_msg("%s", err.msg);
}

static void a_resume_needs_what_was_saved(void **state)
{
	struct sandbox *b;
	struct err err;

	(void)state;
	open_host(700);
	b = paused(8 * GIB);
	refused(resume_of(b), "1212 MiB of memory left, 8768 are needed");
	assert_int_equal(b->state, SANDBOX_PAUSED);
	assert_int_equal(resume_begin(b, 60, false, &err), 0); /* it boots: nothing is loaded */
	resumes(paused(700 - 2 * MEMORY_SANDBOX_MIB));
	end_host();
}

static void what_is_not_measured_yet_counts_together(void **state)
{
	struct sandbox *first;

	(void)state;
	open_host(1000);
	first = paused(400);
	resumes(first);
	resumes(paused(400));
	refused(resume_of(paused(10)), "1512 MiB of memory left, 1514 are needed");
	send_it(request("key", ""), ""); /* 64 */
	run_until_waiting(1);
	refused(request("key", ""), "1568 are needed");
	resume_cancel(first);
	assert_int_equal(s.n->resuming_mib, 464);
	send_it(request("key", ""), "");
	run_until_waiting(2);
	end_host();
}

static void no_more_is_promised_than_the_setting_says(void **state)
{
	const struct node_request status = { .verb = NODE_STATUS };
	char text[HEARD_MAX];
	struct sandbox *b;

	(void)state;
	open_host(512 * GIB);
	s.n->memory.total_mib = RESERVE + GIB; /* two of 512 MiB */
	b = box_new();
	box_runs(b);
	send_it(request("key", ""), ""); /* one runs, one waits */
	run_until_waiting(1);
	refused(request("key", ""), "1024 MiB of memory are promised to sandboxes, 512 more are "
				    "asked for, and this host may promise 1024 "
				    "(memory_overcommit = 100)");
	box_rests(b); /* a paused one is promised nothing */
	send_it(request("key", ""), "");
	run_until_waiting(2);
	refused(resume_of(b), "memory_overcommit");
	s.n->set[SET_MEMORY_OVERCOMMIT].number = 150;
	resumes(b);
	send_it(status, "");
	assert_int_equal(hear_text(text).code, ERR_NONE);
	assert_non_null(strstr(text, "\"memoryPromisedMB\":1536"));
	assert_non_null(strstr(text, "\"memoryPromisedMaxMB\":1536"));
	end_host();
}

/* Of the pool, or on the way to it. */
static void one_that_is_begun_is_promised_once(void **state)
{
	(void)state;
	open_host(512 * GIB);
	s.n->memory.total_mib = RESERVE + 512;
	assert_true(admission_pool(s.n, &s.n->pools.base));
	pools_begun(box_new(), &s.n->pools.base);
	assert_int_equal(admission_promised_mib(s.n), 512);
	assert_false(admission_pool(s.n, &s.n->pools.base));
	send_it(request("key", ""), "");
	run_until_waiting(1);
	assert_int_equal(admission_promised_mib(s.n), 512);
	refused(request("key", ""), "memory_overcommit");
	end_host();
}

/* 500 idle sandboxes of 512 MiB on a host with 24 GiB, of which its kernel shows a little less. */
static void the_default_allows_what_is_specified(void **state)
{
	const struct memory_watch m = { .total_mib = 24 * GIB - 600, .reserve_mib = RESERVE };
	uint64_t percent = strtoul(settings_table[SET_MEMORY_OVERCOMMIT].fallback, NULL, 10);

	(void)state;
	assert_true(memory_promise_max(&m, percent) >= 500 * 512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_resume_needs_what_was_saved),
		cmocka_unit_test(what_is_not_measured_yet_counts_together),
		cmocka_unit_test(no_more_is_promised_than_the_setting_says),
		cmocka_unit_test(one_that_is_begun_is_promised_once),
		cmocka_unit_test(the_default_allows_what_is_specified),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
