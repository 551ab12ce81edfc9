/* test_node_telling.c - a sandbox's rules on their way to the injector and to egress, while they
 * are changed again. */
#include "tests/unit/played_daemon.h"

#include <errno.h>
#include <fcntl.h>

#include "base/memory_file.h"
#include "base/fdmsg.h"
#include "node/network/network_text.h"
#include "node/node.h"

enum { GUARD_MS = 20000, SLOT = 3 };

struct fake { /* one of the two daemons; it answers at once, or when it is let */
	struct played_daemon it;
	bool holds;
	uint64_t held; /* a tag; 0: none */
};

static struct scene {
	struct node *n;
	struct sandbox *box;
	struct timer guard;
	struct fake egress, injector;
	struct buf rules; /* the last that egress was told */
	int done;
} s;

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

#define UNTIL(condition)     \
	while (!(condition)) \
	assert_true(loop_turn(s.n->loop))

/* --- egress ------------------------------------------------------------------------------- */

static void on_egress_asked(struct watch *w, unsigned int events)
{
	struct egress_reply r = { 0 };
	struct egress_request rq;
	int fds[EGRESS_DOORS];
	size_t n = 0;
	struct err err;

	(void)w, (void)events;
	if (fdmsg_recv(s.egress.it.sock, &rq, sizeof(rq), fds, EGRESS_DOORS, &n, &err) < 0)
		return;
	if (rq.verb == EGRESS_RULE) {
		buf_clear(&s.rules);
		assert_int_equal(memory_file_read(fds[0], &s.rules, &err), 0);
	}
	while (n > 0)
		close(fds[--n]);
	r.tag = rq.tag;
	assert_int_equal(fdmsg_send(s.egress.it.sock, &r, sizeof(r), NULL, 0, &err), 0);
}

/* --- the injector --------------------------------------------------------------------------- */

static void injector_answers(uint64_t tag, int fd)
{
	struct injector_reply r = { .tag = tag };
	struct err err;

	assert_int_equal(fdmsg_send(s.injector.it.sock, &r, sizeof(r), &fd, fd >= 0, &err), 0);
	auto_close(&fd);
}

static void on_injector_asked(struct watch *w, unsigned int events)
{
	struct injector_request rq;
	struct err err;
	int fd = -1;
	size_t n = 0;

	(void)w, (void)events;
	if (fdmsg_recv(s.injector.it.sock, &rq, sizeof(rq), &fd, 1, &n, &err) < 0)
		return;
	auto_close(&fd);
	if (rq.verb == INJECTOR_FACTS)
		injector_answers(rq.tag,
				 memory_file_make("facts",
						  BYTES_LIT("{\"ca\":\"\",\"sealKey\":\"k\"}"),
						  &err));
	else if (rq.verb == INJECTOR_START && s.injector.holds)
		s.injector.held = rq.tag;
	else
		injector_answers(rq.tag, rq.verb == INJECTOR_START
						 ? open("/dev/null", O_RDONLY | O_CLOEXEC)
						 : -1);
}

/* --- the scene ---------------------------------------------------------------------------- */

static void nothing(struct link *k)
{
	(void)k;
}

static void nothing_either(struct injector_client *k)
{
	(void)k;
}

static int set_up(void **state)
{
	static const struct link_ops egress_ops = { .on_hello = egress_on_hello,
						    .on_up = nothing,
						    .on_down = nothing };
	static const struct injector_client_ops injector_ops = { nothing_either,
								 network_worker_gone, NULL };
	struct err err;

	(void)state;
	s = (struct scene){ .n = calloc(1, sizeof(*s.n)),
			    .box = calloc(1, sizeof(*s.box)),
			    .rules = BUF_MAX(NETWORK_RULES_MAX) };
	assert_int_equal(loop_open(&s.n->loop, &err), 0);
	timer_init(&s.guard, s.n->loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	played_daemon_open(&s.egress.it, s.n->loop, "telling-egress", EGRESS_VERSION_MAX,
			   on_egress_asked);
	played_daemon_open(&s.injector.it, s.n->loop, "telling-injector", INJECTOR_VERSION_MAX,
			   on_injector_asked);
	link_open(&s.n->egress, s.n->loop, s.egress.it.path, &egress_words, &egress_ops);
	injector_client_open(&s.n->injector, s.n->loop, s.injector.it.path, &injector_ops);
	s.box->node = s.n;
	s.box->slot = SLOT;
	snprintf(s.box->info.id, sizeof(s.box->info.id), "box");
	snprintf(s.box->info.team, sizeof(s.box->info.team), "team");
	table_add(&s.n->table, s.box);
	s.box->state = SANDBOX_RUNNING;
	UNTIL(s.n->egress.up && s.n->injector.seal_key);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	timer_stop(&s.guard);
	network_done(s.box);
	link_close(&s.n->egress);
	injector_client_close(&s.n->injector);
	played_daemon_close(&s.egress.it);
	played_daemon_close(&s.injector.it);
	buf_done(&s.rules);
	free(s.box->text);
	loop_free(s.n->loop);
	free(s.box);
	free(s.n);
	return 0;
}

static void on_done(struct network_telling *t, const struct err *err)
{
	(void)t;
	assert_null(err);
	s.done++;
}

static void change(const char *text)
{
	free(s.box->text);
	s.box->text = strdup(text);
	s.box->network.changes++;
}

static bool egress_has(const char *text)
{
	return s.rules.len > 0 && memmem(s.rules.ptr, s.rules.len, text, strlen(text));
}

#define WIDE   "{\"network\":{\"allowOut\":[\"a.test\"],\"rules\":{\"a.test\":[]}}}"
#define NARROW "{\"network\":{\"denyOut\":[\"0.0.0.0/0\"]}}"

/* --- the tests ---------------------------------------------------------------------------- */

/* The first has to wait for a worker, the second has not: what was said last counts. */
static void rules_of_before_do_not_come_after_those_of_now(void **state)
{
	struct network_telling first = { 0 }, second = { 0 };
	struct err err;

	(void)state;
	s.injector.holds = true;
	change(WIDE);
	assert_int_equal(network_telling_begin(&first, s.box, s.box->text, on_done, &err), 0);
	UNTIL(s.injector.held);
	change(NARROW);
	assert_int_equal(network_telling_begin(&second, s.box, s.box->text, on_done, &err), 0);
	UNTIL(s.done == 1);
	assert_true(egress_has("denyOut"));
	injector_answers(s.injector.held, open("/dev/null", O_RDONLY | O_CLOEXEC));
	UNTIL(s.done == 2);
	assert_true(egress_has("denyOut"));
	assert_false(egress_has("a.test"));
}

static void a_worker_that_ends_twice_is_missed_once(void **state)
{
	(void)state;
	s.box->network.opened = true;
	network_worker_gone(&s.n->injector, SLOT);
	network_worker_gone(&s.n->injector, SLOT);
	network_cancel(s.box);
	assert_false(s.box->network.again.active); /* and no timer is left in the loop */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(rules_of_before_do_not_come_after_those_of_now),
		TEST(a_worker_that_ends_twice_is_missed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
