/* test_node_injector.c - the link to the injector: workers, what it says of itself and unasked, its
 * end. */
#include "tests/unit/played_daemon.h"

#include <errno.h>
#include <fcntl.h>

#include "base/memory_file.h"
#include "base/fdmsg.h"
#include "node/links/injector_client.h"

enum { GUARD_MS = 20000, HEARD_MAX = 32 };

static struct scene {
	struct loop *loop;
	struct timer guard;
	struct played_daemon injector;
	struct injector_client keep;
	const char *facts;
	enum err_code code; /* of the next answers */
	struct injector_request heard[HEARD_MAX];
	size_t n_heard;
	int ups, gone, authorities, done;
	uint32_t gone_slot;
	char authority[64];
	struct link_call call;
	struct err answer;
	int came;
} s;

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

#define UNTIL(condition)     \
	while (!(condition)) \
	assert_true(loop_turn(s.loop))

/* --- the injector --------------------------------------------------------------------------- */

static void reply(uint64_t tag, uint32_t slot, int fd)
{
	struct injector_reply r = { .tag = tag, .slot = slot, .code = tag ? s.code : ERR_NONE };
	struct err err;

	if (s.code)
		snprintf(r.msg, sizeof(r.msg), "it said no");
	assert_int_equal(fdmsg_send(s.injector.sock, &r, sizeof(r), &fd, fd >= 0, &err), 0);
	auto_close(&fd);
}

static void on_asked(struct watch *w, unsigned int events)
{
	struct injector_request rq;
	struct err err = { 0 };
	int fd = -1;
	size_t n = 0;

	(void)w, (void)events;
	if (fdmsg_recv(s.injector.sock, &rq, sizeof(rq), &fd, 1, &n, &err) < 0) {
		if (err.sys != EAGAIN)
			played_daemon_hang_up(&s.injector);
		return;
	}
	assert_true(rq.tag != 0);
	assert_int_equal(n, rq.verb == INJECTOR_START);
	auto_close(&fd);
	assert_true(s.n_heard < HEARD_MAX);
	s.heard[s.n_heard++] = rq;
	if (rq.verb == INJECTOR_FACTS)
		reply(rq.tag, 0, memory_file_make("facts", bytes_str(s.facts), &err));
	else
		reply(rq.tag, rq.slot,
		      rq.verb == INJECTOR_START && !s.code ? open("/dev/null", O_RDONLY | O_CLOEXEC)
							   : -1);
}

/* --- the scene ---------------------------------------------------------------------------- */

static void on_up(struct injector_client *k)
{
	(void)k;
	s.ups++;
}

static void on_gone(struct injector_client *k, uint32_t slot)
{
	(void)k;
	s.gone++;
	s.gone_slot = slot;
}

static void on_authority(struct injector_client *k, struct bytes pem)
{
	(void)k;
	s.authorities++;
	assert_true(bytes_to_str(pem, s.authority, sizeof(s.authority)));
}

static void on_done(struct link_call *c, const struct link_reply *r)
{
	(void)c;
	s.done++;
	s.answer = r->err ? *r->err : (struct err){ 0 };
	s.came = link_reply_take_fd(r);
}

static void scene_open(bool exists)
{
	static const struct injector_client_ops ops = { on_up, on_gone, on_authority };
	struct err err;

	s = (struct scene){ .came = -1,
			    .facts = "{\"ca\":\"a certificate\",\"sealKey\":\"a key\"}" };
	assert_int_equal(loop_open(&s.loop, &err), 0);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	played_daemon_open(&s.injector, s.loop, "injector", INJECTOR_VERSION_MAX, on_asked);
	injector_client_open(&s.keep, s.loop, exists ? s.injector.path : "", &ops);
}

static void scene_end(void)
{
	timer_stop(&s.guard);
	injector_client_close(&s.keep);
	played_daemon_close(&s.injector);
	auto_close(&s.came);
	loop_free(s.loop);
}

static int start(uint32_t slot, struct err *err)
{
	const struct injector_sandbox of = { slot, "box", "team" };
	int rules = memory_file_make("rules", BYTES_LIT("{}"), err);

	assert_true(rules >= 0);
	return injector_start(&s.keep, &s.call, &of, rules, on_done, err);
}

/* --- the tests ---------------------------------------------------------------------------- */

static void it_forgets_all_and_says_what_it_is(void **state)
{
	(void)state;
	scene_open(true);
	UNTIL(s.authorities);
	assert_int_equal(s.ups, 1);
	assert_int_equal(s.heard[0].verb, INJECTOR_RESET);
	assert_int_equal(s.heard[1].verb, INJECTOR_FACTS);
	assert_string_equal(s.authority, "a certificate");
	assert_string_equal(s.keep.seal_key, "a key");
	played_daemon_hang_up(&s.injector); /* and again when it is back */
	UNTIL(s.authorities == 2);
	assert_int_equal(s.ups, 2);
	scene_end();
}

static void a_worker_comes_with_its_end(void **state)
{
	struct err err;

	(void)state;
	scene_open(true);
	UNTIL(s.authorities);
	assert_int_equal(start(7, &err), 0);
	UNTIL(s.done);
	assert_int_equal(s.answer.code, ERR_NONE);
	assert_true(s.came >= 0);
	assert_int_equal(s.heard[2].verb, INJECTOR_START);
	assert_int_equal(s.heard[2].slot, 7);
	assert_string_equal(s.heard[2].id, "box");
	assert_string_equal(s.heard[2].team, "team");
	injector_stop(&s.keep, 7);
	UNTIL(s.n_heard == 4);
	assert_int_equal(s.heard[3].verb, INJECTOR_STOP);
	scene_end();
}

static void a_refusal_has_its_words(void **state)
{
	struct err err;

	(void)state;
	scene_open(true);
	UNTIL(s.authorities);
	s.code = ERR_INVALID;
	assert_int_equal(start(7, &err), 0);
	UNTIL(s.done);
	assert_int_equal(s.answer.code, ERR_INVALID);
	assert_string_equal(s.answer.msg, "injector: it said no");
	assert_int_equal(s.came, -1);
	scene_end();
}

static void it_says_unasked_that_a_worker_ended(void **state)
{
	(void)state;
	scene_open(true);
	UNTIL(s.authorities);
	reply(0, 9, -1);
	UNTIL(s.gone);
	assert_int_equal(s.gone_slot, 9);
	reply(77, 9, -1); /* but an answer to nothing ends the connection */
	UNTIL(s.ups == 2);
	assert_int_equal(s.gone, 1);
	scene_end();
}

static void whoever_waits_is_told_of_its_end(void **state)
{
	struct err err;

	(void)state;
	scene_open(true);
	UNTIL(s.authorities);
	assert_int_equal(start(7, &err), 0);
	played_daemon_hang_up(&s.injector);
	UNTIL(s.done);
	assert_int_equal(s.answer.code, ERR_UNAVAILABLE);
	assert_int_equal(start(8, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	scene_end();
}

static void nonsense_about_itself_is_not_believed(void **state)
{
	static const char *const facts[] = { "[]", "{", "{\"ca\":1,\"sealKey\":\"k\"}",
					     "{\"ca\":\"c\"}" };
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(facts); i++) {
		scene_open(true);
		s.facts = facts[i];
		UNTIL(s.n_heard == 2);
		assert_int_equal(start(7, &err), 0);
		UNTIL(s.done);
		assert_int_equal(s.authorities, 0);
		assert_null(s.keep.seal_key);
		scene_end();
	}
}

static void without_one_nothing_is_asked(void **state)
{
	struct err err;

	(void)state;
	scene_open(false);
	UNTIL(s.keep.link.up);
	assert_int_equal(start(7, &err), -1);
	injector_stop(&s.keep, 7);
	assert_int_equal(s.ups, 0);
	scene_end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_forgets_all_and_says_what_it_is),
		cmocka_unit_test(a_worker_comes_with_its_end),
		cmocka_unit_test(a_refusal_has_its_words),
		cmocka_unit_test(it_says_unasked_that_a_worker_ended),
		cmocka_unit_test(whoever_waits_is_told_of_its_end),
		cmocka_unit_test(nonsense_about_itself_is_not_believed),
		cmocka_unit_test(without_one_nothing_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
