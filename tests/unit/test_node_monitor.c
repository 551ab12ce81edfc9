/* test_node_monitor.c - a QEMU that fell silent is listened to again. */
/* clang-format off */
#include "node/life/end.h"
#include "tests/unit/vm_mock_qemu.h"
#include "tests/unit/node_scene.h" /* its `s` comes after */
/* clang-format on */

#include <sys/stat.h>

static struct sandbox *box;

static void make_folder(const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", s.dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void open_scene(struct mock_qemu *q)
{
	struct err err;

	scene_open();
	snprintf(s.n->set[SET_STATE_DIR].text, sizeof(s.n->set[SET_STATE_DIR].text), "%s", s.dir);
	s.n->reconcile.ask.link =
		&s.n->warden.link; /* a look is under way: nobody begins another */
	box = box_new();
	box_runs(box);
	make_folder("vms");
	make_folder("vms/box1");
	assert_int_equal(monitor_path(box, &err), 0);
	snprintf(q->path, sizeof(q->path), "%.100s", box->qmp_path);
	mock_qemu_start(q, s.n->loop);
	monitor_adopt(box);
}

static void close_scene(struct mock_qemu *q)
{
	mock_qemu_end(q);
	s.n->reconcile.ask.link = NULL;
	scene_end();
}

static void run_until_up(void)
{
	while (!box->monitor.up)
		assert_true(loop_turn(s.n->loop));
}

static void run_until_connected(const struct mock_qemu *q, size_t n)
{
	while (q->n_connections < n)
		assert_true(loop_turn(s.n->loop));
}

/* Node was started on a host that crawled. This takes as long as node waits for a greeting. */
static void silent_once_it_is_heard_later(void **state)
{
	struct mock_qemu q = { .silent = 1, .again = true, .status = "running" };

	(void)state;
	open_scene(&q);
	run_until_up();
	assert_int_equal(q.n_connections, 2);
	mock_qemu_event(&q, "SHUTDOWN", "{\"guest\": true, \"reason\": \"guest-shutdown\"}");
	while (s.n->table.n > 0) /* its end is seen */
		assert_true(loop_turn(s.n->loop));
	close_scene(&q);
}

static void it_is_dialled_less_and_less_often(void **state)
{
	struct mock_qemu q = { .again = true, .die_at = "query-status", .status = "running" };
	uint64_t begun, second;

	(void)state;
	open_scene(&q);
	run_until_connected(&q, 1);
	begun = clock_mono_ns();
	run_until_connected(&q, 2);
	second = clock_mono_ns();
	assert_true(second - begun >= (MONITOR_AGAIN_MS - 100) * NSEC_PER_MSEC);
	monitor_adopt(box); /* looks find it meanwhile */
	run_until_connected(&q, 3);
	assert_true(clock_mono_ns() - second >= (2 * MONITOR_AGAIN_MS - 100) * NSEC_PER_MSEC);
	q.die_at = NULL;
	run_until_up();
	assert_int_equal(box->monitor.again_ms, 0); /* the next time it begins anew */
	close_scene(&q);
}

/* What ends is not dialled any more. */
static void one_that_ends_is_left_alone(void **state)
{
	struct mock_qemu q = { .again = true, .die_at = "query-status" };

	(void)state;
	open_scene(&q);
	run_until_connected(&q, 1);
	while (!box->monitor.again.active)
		assert_true(loop_turn(s.n->loop));
	sandbox_end(box, NODE_KILLED, "killed");
	while (s.n->table.n > 0)
		assert_true(loop_turn(s.n->loop));
	assert_int_equal(q.n_connections, 1);
	close_scene(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent_once_it_is_heard_later),
		cmocka_unit_test(it_is_dialled_less_and_less_often),
		cmocka_unit_test(one_that_ends_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
