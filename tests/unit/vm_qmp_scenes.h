/* vm_qmp_scenes.h - conversations that must go the same way with a mock and with the real QEMU.
 *
 * Who includes this defines peer_start(), which gives the stream to a freshly started peer that
 * behaves as `qemu-system-x86_64 -machine none -S` does, and peer_end().
 */
#pragma once

#include "tests/unit/check.h"

#include "net/loop.h"
#include "net/timer.h"
#include "vm/qmp_link.h"

enum { SCENE_CALLS = 20, SCENE_MS = 20000, CALL_MS = 10000 };

struct scene;
struct scene_call {
	struct scene *scene;
	struct qmp_call call;
	int done; /* how often: must be 1 */
	bool failed, broken;
	char text[300]; /* the answer as JSON, or the error */
	struct err err;
	size_t order; /* 1 for the first that was done */
};

struct scene {
	struct loop *loop;
	struct qmp_link *link;
	struct qmp_link_user user;
	struct timer guard;
	int ready, gone;
	unsigned int major;
	size_t n_done, n_events;
	char event[64]; /* the last */
	struct err why;
	struct scene_call calls[SCENE_CALLS];
	bool close_when_done; /* from inside the callback of a call */
	bool (*until)(struct scene *s);
};

static void peer_start(struct scene *s, struct stream **ret);
static void peer_end(void);

static void scene_look(struct scene *s)
{
	if (s->until && s->until(s))
		loop_stop(s->loop);
}

static struct scene *of_user(struct qmp_link_user *u)
{
	return CONTAINER_OF(u, struct scene, user);
}

static void scene_ready(struct qmp_link_user *u, const struct qmp_message *hello)
{
	of_user(u)->ready++;
	of_user(u)->major = hello->major;
	scene_look(of_user(u));
}

static void scene_event(struct qmp_link_user *u, const struct qmp_message *event)
{
	of_user(u)->n_events++;
	assert_true(bytes_to_str(event->name, of_user(u)->event, sizeof(of_user(u)->event)));
	scene_look(of_user(u));
}

static void scene_gone(struct qmp_link_user *u, const struct err *err)
{
	of_user(u)->gone++;
	of_user(u)->why = *err;
	scene_look(of_user(u));
}

static void scene_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", SCENE_MS);
}

static void scene_open(struct scene *s)
{
	static const struct qmp_link_ops ops = { scene_ready, scene_event, scene_gone };
	struct stream *stream;
	struct err err;

	*s = (struct scene){ .user = { &ops } };
	assert_int_equal(loop_open(&s->loop, &err), 0);
	peer_start(s, &stream);
	timer_init(&s->guard, s->loop, scene_guard);
	assert_int_equal(qmp_link_open(stream, &s->user, &s->link, &err), 0);
}

static void scene_run(struct scene *s, bool (*until)(struct scene *s))
{
	s->until = until;
	if (until(s))
		return;
	timer_start(&s->guard, SCENE_MS);
	loop_run(s->loop);
	timer_stop(&s->guard);
	assert_true(until(s));
}

static void scene_end(struct scene *s)
{
	qmp_link_close(s->link);
	peer_end();
	loop_free(s->loop);
	for (size_t i = 0; i < SCENE_CALLS; i++)
		assert_true(s->calls[i].done <= 1);
	assert_true(s->ready <= 1 && s->gone <= 1);
}

static void scene_call_done(struct qmp_call *call, const json_t *ret, const struct err *err)
{
	struct scene_call *c = CONTAINER_OF(call, struct scene_call, call);
	AUTO(buf_done) struct buf text = BUF_MAX(64 * 1024);
	struct err unused;

	assert_true((ret == NULL) == (err != NULL));
	c->done++;
	c->order = ++c->scene->n_done;
	c->failed = err != NULL;
	if (err)
		c->err = *err;
	else if (json_encode(ret, &text, &unused) < 0)
		fail_msg("%s", unused.msg);
	snprintf(c->text, sizeof(c->text), "%.*s", err ? (int)sizeof(err->msg) : (int)text.len,
		 err ? err->msg : (const char *)text.ptr);
	if (c->scene->close_when_done) {
		qmp_link_close(c->scene->link);
		c->scene->link = NULL;
	}
	scene_look(c->scene);
}

static int scene_ask(struct scene *s, size_t i, const char *command, uint64_t ms)
{
	struct err err;

	s->calls[i].scene = s;
	return qmp_link_call(s->link, &s->calls[i].call, &(struct qmp_command){ command, NULL, ms },
			     scene_call_done, &err);
}

static bool until_ready(struct scene *s)
{
	return s->ready > 0;
}

static bool until_gone(struct scene *s)
{
	return s->gone > 0;
}

static bool until_three_done(struct scene *s)
{
	return s->n_done >= 3;
}

static bool until_one_done(struct scene *s)
{
	return s->n_done >= 1;
}

static bool until_event(struct scene *s)
{
	return s->n_events >= 1 && s->n_done >= 1;
}

/* --- the scenes --------------------------------------------------------------------------- */

static void it_greets(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	scene_run(&s, until_ready);
	assert_true(s.major >= 7);
	assert_int_equal(s.gone, 0);
	scene_end(&s);
}

static void commands_sent_before_the_greeting_are_answered_in_order(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	assert_int_equal(scene_ask(&s, 0, "query-status", CALL_MS), 0);
	assert_int_equal(scene_ask(&s, 1, "query-name", CALL_MS), 0);
	assert_int_equal(scene_ask(&s, 2, "query-status", CALL_MS), 0);
	scene_run(&s, until_three_done);
	assert_int_equal(s.ready, 1);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(s.calls[i].order, i + 1);
		assert_false(s.calls[i].failed);
	}
	assert_non_null(strstr(s.calls[0].text, "\"prelaunch\""));
	assert_string_equal(s.calls[1].text, "{}");
	scene_end(&s);
}

static void an_error_is_the_commands_own(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	assert_int_equal(scene_ask(&s, 0, "no-such-command", CALL_MS), 0);
	assert_int_equal(scene_ask(&s, 1, "query-status", CALL_MS), 0);
	assert_int_equal(scene_ask(&s, 2, "query-status", CALL_MS), 0);
	scene_run(&s, until_three_done);
	if (!strstr(s.calls[0].text, "no-such-command: CommandNotFound: The command"))
		fail_msg("%s", s.calls[0].text);
	assert_int_equal(s.calls[0].err.code, ERR_INVALID);
	assert_false(s.calls[1].failed);
	assert_int_equal(s.gone, 0);
	scene_end(&s);
}

static void an_event_arrives(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	scene_run(&s, until_ready);
	assert_int_equal(scene_ask(&s, 0, "cont", CALL_MS), 0);
	scene_run(&s, until_event);
	assert_string_equal(s.event, "RESUME");
	scene_end(&s);
}

static void an_end_fails_what_waits(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	scene_run(&s, until_ready);
	assert_int_equal(scene_ask(&s, 0, "quit", CALL_MS), 0);
	scene_run(&s, until_gone);
	assert_int_equal(s.why.code, ERR_UNAVAILABLE);
	assert_int_equal(s.calls[0].done, 1);
	assert_int_equal(scene_ask(&s, 1, "query-status", CALL_MS), -1);
	scene_end(&s);
}

static void closing_from_a_callback_ends_everything(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	assert_int_equal(scene_ask(&s, 0, "query-status", CALL_MS), 0);
	assert_int_equal(scene_ask(&s, 1, "query-status", CALL_MS), 0);
	s.close_when_done = true;
	scene_run(&s, until_one_done);
	assert_null(s.link);
	assert_int_equal(s.calls[1].done, 0);
	scene_end(&s);
}

static void closing_at_once_is_fine(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	assert_int_equal(scene_ask(&s, 0, "query-status", CALL_MS), 0);
	scene_end(&s);
	assert_int_equal(s.calls[0].done, 0);
}

static void more_commands_than_allowed_are_refused(void **state)
{
	struct scene s;
	size_t taken = 0;

	(void)state;
	scene_open(&s);
	while (taken < SCENE_CALLS && scene_ask(&s, taken, "query-status", CALL_MS) == 0)
		taken++;
	assert_int_equal(taken, QMP_LINK_CALLS_MAX - 1); /* one is the capabilities */
	scene_run(&s, until_three_done);
	assert_int_equal(s.gone, 0);
	scene_end(&s);
}

#define QMP_SCENES                                                                             \
	cmocka_unit_test(it_greets),                                                           \
		cmocka_unit_test(commands_sent_before_the_greeting_are_answered_in_order),     \
		cmocka_unit_test(an_error_is_the_commands_own),                                \
		cmocka_unit_test(an_event_arrives), cmocka_unit_test(an_end_fails_what_waits), \
		cmocka_unit_test(closing_from_a_callback_ends_everything),                     \
		cmocka_unit_test(closing_at_once_is_fine),                                     \
		cmocka_unit_test(more_commands_than_allowed_are_refused)
