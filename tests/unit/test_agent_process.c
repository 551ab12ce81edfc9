/* test_agent_process.c - one process and the table: start, output, end, time, backpressure. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "agent/process/processes.h"

enum { LIFE_MS = 4000 }; /* of a process that is killed: long enough to start on a busy machine */

struct ear { /* a listener that writes down what it hears */
	struct process_listener listener;
	struct loop *loop;
	struct buf log;    /* S start, o output, t time up, E end, F failed */
	struct buf out[2]; /* the bytes */
	struct process_end end;
	struct err why;
	size_t enough; /* bytes after which it has enough; 0: never */
	bool leave;    /* after the first output */
	bool stop;     /* the loop, when over or full */
};

static struct ear *of(struct process_listener *ln)
{
	return CONTAINER_OF(ln, struct ear, listener);
}

static void note(struct ear *e, const char *what)
{
	struct err err;

	assert_int_equal(buf_add(&e->log, bytes_str(what), &err), 0);
}

static void on_start(struct process_listener *ln)
{
	assert_true(ln->process->pid > 0);
	note(of(ln), "S");
}

static void on_output(struct process_listener *ln, enum process_output from, struct bytes b)
{
	struct ear *e = of(ln);
	struct err err;

	if (e->log.len == 0 || e->log.ptr[e->log.len - 1] != 'o')
		note(e, "o");
	assert_int_equal(buf_add(&e->out[from], b, &err), 0);
	if (e->enough > 0 && e->out[from].len >= e->enough) {
		process_hold(ln, true);
		if (e->stop)
			loop_stop(e->loop);
	}
	if (e->leave)
		process_leave(ln);
}

static void on_overdue(struct process_listener *ln)
{
	note(of(ln), "t");
}

static void over(struct ear *e)
{
	if (e->stop)
		loop_stop(e->loop);
}

static void on_end(struct process_listener *ln, const struct process_end *end)
{
	note(of(ln), "E");
	of(ln)->end = *end;
	over(of(ln));
}

static void on_fail(struct process_listener *ln, const struct err *err)
{
	note(of(ln), "F");
	of(ln)->why = *err;
	over(of(ln));
}

static const struct process_listener_ops ear_ops = { on_start, on_output, on_overdue, on_end,
						     on_fail };

struct bench {
	struct loop *loop;
	struct processes table;
	struct account me;
	struct ear ear;
	pid_t pid; /* of the last process, and of its group */
};

static void open_bench(struct bench *b)
{
	struct err err = { 0 };

	*b = (struct bench){ .me = { .uid = getuid(), .gid = getgid(), .n_groups = 1 } };
	b->me.groups[0] = getgid();
	assert_int_equal(loop_open(&b->loop, &err), 0);
	processes_init(&b->table, b->loop);
	b->ear = (struct ear){ .loop = b->loop, .log = BUF_MAX(4096), .stop = true };
	b->ear.out[0] = BUF_MAX(16 * 1024 * 1024);
	b->ear.out[1] = BUF_MAX(16 * 1024 * 1024);
}

static void close_bench(struct bench *b)
{
	process_leave(&b->ear.listener);
	processes_done(&b->table);
	loop_free(b->loop);
	buf_done(&b->ear.log);
	buf_done(&b->ear.out[0]);
	buf_done(&b->ear.out[1]);
	(void)kill(-b->pid, SIGKILL); /* what it may have left behind */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static struct process *start_with(struct bench *b, const char *program, const char *script,
				  uint64_t deadline_ms)
{
	AUTO(strings_done) struct strings argv = { 0 }, env = { 0 };
	struct process_spec spec = {
		.order = { &argv, &env, "/", &b->me, -1, { 0 } },
		.deadline_ms = deadline_ms,
	};
	struct process *p = NULL;
	struct err err = { 0 };

	assert_int_equal(strings_add(&argv, bytes_str(program), &err), 0);
	assert_int_equal(strings_add(&argv, BYTES_LIT("-c"), &err), 0);
	assert_int_equal(strings_add(&argv, bytes_str(script), &err), 0);
	assert_int_equal(strings_set_env(&env, BYTES_LIT("PATH"), BYTES_LIT("/usr/bin:/bin"), &err),
			 0);
	assert_int_equal(processes_start(&b->table, &spec, &p, &err), 0);
	process_listen(p, &b->ear.listener, &ear_ops);
	b->pid = p->pid;
	return p;
}

static struct process *start(struct bench *b, const char *script)
{
	return start_with(b, "sh", script, 0);
}

static void expect_log(struct bench *b, const char *want)
{
	if (!bytes_eq(buf_view(&b->ear.log), bytes_str(want)))
		fail_msg("heard %.*s, not %s", (int)b->ear.log.len, (const char *)b->ear.log.ptr,
			 want);
}

static void a_process_starts_speaks_and_ends(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b);
	(void)start(&b, "printf out; printf err >&2; exit 7");
	loop_run(b.loop);
	expect_log(&b, "SoE");
	assert_true(bytes_eq(buf_view(&b.ear.out[PROCESS_STDOUT]), BYTES_LIT("out")));
	assert_true(bytes_eq(buf_view(&b.ear.out[PROCESS_STDERR]), BYTES_LIT("err")));
	assert_true(b.ear.end.exited && b.ear.end.code == 7);
	assert_int_equal(b.table.n, 0);
	close_bench(&b);
}

static void what_cannot_run_fails_before_it_started(void **state)
{
	static const struct {
		const char *name, *program, *why;
	} rows[] = {
		{ "missing", "/nonexistent/program", "exec: No such file or directory" },
		{ "not in PATH", "no-such-program", "exec: No such file or directory" },
		{ "a folder", "/tmp", "exec: Permission denied" },
		{ "empty", "", "exec: No such file or directory" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct bench b;

		open_bench(&b);
		(void)start_with(&b, row->program, "", 0);
		loop_run(b.loop);
		expect_log(&b, "F");
		assert_string_equal(b.ear.why.msg, row->why);
		assert_int_equal(b.table.n, 0);
		close_bench(&b);
	}
}

static void a_signal_is_not_an_exit(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b);
	(void)start(&b, "kill -TERM $$");
	loop_run(b.loop);
	expect_log(&b, "SE");
	assert_true(!b.ear.end.exited && b.ear.end.signo == SIGTERM);
	close_bench(&b);
}

static void the_child_has_nothing_of_ours(void **state)
{
	int ours = fcntl(STDERR_FILENO, F_DUPFD, 20); /* not even close-on-exec */
	struct bench b;

	(void)state;
	assert_true(ours >= 0);
	open_bench(&b); /* which ignores SIGPIPE */
	(void)start(&b, "ls /proc/self/fd | wc -l; grep -E 'Sig(Ign|Blk)' /proc/self/status; "
			"cat /proc/self/oom_score_adj; ps -o pid=,sid= -p $$ | "
			"(read p s; [ $p = $s ] && echo own session); umask; pwd; "
			"(yes; echo $? >&2) | true");
	loop_run(b.loop);
	/* 0, 1, 2 and the folder that ls has open */
	assert_true(bytes_starts(buf_view(&b.ear.out[PROCESS_STDOUT]),
				 BYTES_LIT("4\nSigBlk:\t0000000000000000\n"
					   "SigIgn:\t0000000000000000\n")));
	assert_non_null(memmem(b.ear.out[0].ptr, b.ear.out[0].len, "own session\n0022\n/\n", 19));
	/* yes was killed by SIGPIPE: 128 + 13 */
	assert_true(bytes_eq(buf_view(&b.ear.out[PROCESS_STDERR]), BYTES_LIT("141\n")));
	close(ours);
	close_bench(&b);
}

static void nothing_is_heard_before_the_start(void **state)
{
	struct process *p;
	struct pollfd over;
	struct bench b;

	(void)state;
	open_bench(&b);
	p = start(&b, "echo said at once");
	process_hold(&b.ear.listener, false); /* no reason to read before it runs */
	over = (struct pollfd){ .fd = p->pidfd, .events = POLLIN };
	assert_int_equal(poll(&over, 1, 10000), 1);
	loop_run(b.loop); /* everything has happened by now, and is told in order */
	expect_log(&b, "SoE");
	close_bench(&b);
}

static void the_end_waits_for_whoever_holds_the_pipes(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b);
	/* the shell ends at once; its child says something later */
	(void)start(&b, "(while kill -0 $$ 2>/dev/null; do :; done; echo late) & exit 0");
	loop_run(b.loop);
	expect_log(&b, "SoE");
	assert_true(bytes_eq(buf_view(&b.ear.out[0]), BYTES_LIT("late\n")));
	close_bench(&b);
}

static void killed_by_us_it_does_not_wait(void **state)
{
	struct process *p;
	struct bench b;
	struct err err = { 0 };

	(void)state;
	open_bench(&b);
	b.ear.enough = 1;
	p = start(&b, "(echo $$; exec sleep 60) & wait");
	loop_run(b.loop); /* until it said something */
	b.ear.enough = 0;
	process_hold(&b.ear.listener, false);
	assert_int_equal(process_signal(p, SIGKILL, &err), 0);
	loop_run(b.loop);
	expect_log(&b, "SoE");
	assert_true(!b.ear.end.exited && b.ear.end.signo == SIGKILL);
	assert_int_equal(b.table.n, 0);
	close_bench(&b);
}

static void a_signal_also_ends_the_wait_for_pipes_of_the_dead(void **state)
{
	struct process *p;
	struct bench b;
	struct err err = { 0 };

	(void)state;
	open_bench(&b);
	b.ear.enough = 1;
	p = start(&b, "(while kill -0 $$ 2>/dev/null; do :; done; echo orphan; exec sleep 60) &");
	loop_run(b.loop); /* the shell has ended: the orphan says so */
	assert_true(p->reaped);
	assert_int_equal(b.table.n, 1);
	b.ear.enough = 0;
	process_hold(&b.ear.listener, false);
	assert_int_equal(process_signal(p, SIGTERM, &err), 0);
	loop_run(b.loop);
	expect_log(&b, "SoE");
	assert_true(b.ear.end.exited && b.ear.end.code == 0);
	assert_int_equal(b.table.n, 0);
	close_bench(&b);
}

static void when_its_time_is_up_it_is_killed(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b);
	(void)start_with(&b, "sh", "sleep 60", LIFE_MS);
	loop_run(b.loop);
	expect_log(&b, "StE");
	assert_true(!b.ear.end.exited && b.ear.end.signo == SIGKILL);
	close_bench(&b);
}

static void the_time_counts_for_the_children_of_the_dead_too(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b);
	(void)start_with(&b, "sh", "sleep 60 & exit 0", LIFE_MS);
	loop_run(b.loop);
	expect_log(&b, "StE");
	assert_true(b.ear.end.exited);
	close_bench(&b);
}

static void who_has_enough_stops_the_process(void **state)
{
	enum { ENOUGH = 100 * 1024, ALL = 2 * 1024 * 1024 };
	struct bench b;
	size_t at_pause;

	(void)state;
	open_bench(&b);
	b.ear.enough = ENOUGH;
	(void)start(&b, "head -c 2097152 /dev/zero");
	loop_run(b.loop);
	at_pause = b.ear.out[0].len;
	assert_in_range(at_pause, ENOUGH, ENOUGH + LOOP_READ_MAX);
	b.ear.enough = 0;
	process_hold(&b.ear.listener, false);
	loop_run(b.loop);
	expect_log(&b, "SoE");
	assert_int_equal(b.ear.out[0].len, ALL);
	close_bench(&b);
}

static void nobody_listening_the_process_runs_on(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b);
	b.ear.leave = true;
	(void)start(&b, "head -c 2097152 /dev/zero");
	loop_run(b.loop); /* until nothing is left to wait for */
	expect_log(&b, "So");
	assert_int_equal(b.table.n, 0);
	close_bench(&b);
}

static void leave(struct bench *b)
{
	process_leave(&b->ear.listener);
	b->ear.listener = (struct process_listener){ 0 };
}

/* The wait for those who were cut off is over, as if it had taken its time. */
static void await_in_vain(struct bench *b, struct process *p)
{
	assert_true(p->awaited.active);
	timer_start(&p->awaited, 0);
	while (p->awaited.active)
		assert_true(loop_turn(b->loop));
}

/* A copy in a pool: cut off when it was told who it is the first time, claimed long after. */
static void who_was_cut_off_is_awaited_from_the_thaw_on(void **state)
{
	struct process *p;
	struct bench b;

	(void)state;
	open_bench(&b);
	p = start(&b, "printf kept; exec sleep 60");
	processes_still(&b.table, true);
	processes_await(&b.table);
	leave(&b);
	await_in_vain(&b, p);
	processes_await(&b.table); /* told again, and now it goes on */
	assert_true(p->awaited.active);
	processes_still(&b.table, false);
	b.ear.enough = strlen("kept");
	process_listen(p, &b.ear.listener, &ear_ops);
	loop_run(b.loop);
	assert_true(bytes_eq(buf_view(&b.ear.out[PROCESS_STDOUT]), BYTES_LIT("kept")));
	/* it runs, and nobody came in time: nobody is awaited at the next pause */
	processes_await(&b.table);
	leave(&b);
	await_in_vain(&b, p);
	processes_await(&b.table);
	assert_false(p->awaited.active);
	close_bench(&b);
}

static void two_listeners_hear_the_same_and_the_slower_decides(void **state)
{
	struct ear other;
	struct process *p;
	struct bench b;

	(void)state;
	open_bench(&b);
	other = (struct ear){ .loop = b.loop, .log = BUF_MAX(4096), .enough = 1000, .stop = true };
	other.out[0] = BUF_MAX(16 * 1024 * 1024);
	p = start(&b, "head -c 300000 /dev/zero");
	process_listen(p, &other.listener, &ear_ops);
	loop_run(b.loop); /* the other is full */
	assert_int_equal(b.ear.out[0].len, other.out[0].len);
	assert_true(other.out[0].len < 300000);
	process_leave(&other.listener); /* and goes */
	loop_run(b.loop);
	expect_log(&b, "SoE");
	assert_int_equal(b.ear.out[0].len, 300000);
	buf_done(&other.log);
	buf_done(&other.out[0]);
	close_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_starts_speaks_and_ends),
		cmocka_unit_test(what_cannot_run_fails_before_it_started),
		cmocka_unit_test(a_signal_is_not_an_exit),
		cmocka_unit_test(the_child_has_nothing_of_ours),
		cmocka_unit_test(nothing_is_heard_before_the_start),
		cmocka_unit_test(the_end_waits_for_whoever_holds_the_pipes),
		cmocka_unit_test(killed_by_us_it_does_not_wait),
		cmocka_unit_test(a_signal_also_ends_the_wait_for_pipes_of_the_dead),
		cmocka_unit_test(when_its_time_is_up_it_is_killed),
		cmocka_unit_test(the_time_counts_for_the_children_of_the_dead_too),
		cmocka_unit_test(who_has_enough_stops_the_process),
		cmocka_unit_test(nobody_listening_the_process_runs_on),
		cmocka_unit_test(who_was_cut_off_is_awaited_from_the_thaw_on),
		cmocka_unit_test(two_listeners_hear_the_same_and_the_slower_decides),
	};

	for (int signo = 1; signo < NSIG; signo++)
		(void)signal(signo, SIG_DFL); /* as agent_main() does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
