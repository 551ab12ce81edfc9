/* test_net_loop.c - turns of the loop: timers, watches, signals, and owners that go at any time. */
#include "tests/unit/test_net_layers.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/random.h"
#include "net/addr.h"
#include "net/signals.h"
#include "net/watch.h"

struct tick {
	struct timer timer;
	struct tick *victim;
	int fired, limit;
	int *order;
};

static int order;

static void on_tick(struct timer *t)
{
	struct tick *k = CONTAINER_OF(t, struct tick, timer);

	k->fired++;
	if (k->order)
		*k->order = ++order;
	if (k->victim)
		timer_stop(&k->victim->timer);
	if (k->limit && k->fired == k->limit)
		timer_stop(t);
}

/* Random starts, moves and stops, from anywhere in the heap. */
static void timers_fire_in_the_order_of_their_time(void **state)
{
	enum { N = 300 };
	struct loop *l = test_loop();
	struct tick k[N] = { 0 };
	int when[N] = { 0 }, running = 0;

	(void)state;
	order = 0;
	for (size_t i = 0; i < N; i++) {
		uint8_t r[3];

		random_fill(r, sizeof(r));
		k[i].order = &when[i];
		timer_init(&k[i].timer, l, on_tick);
		timer_start(&k[i].timer, r[0] % 50);
		if (r[1] % 4 == 0)
			timer_start(&k[r[2] % (i + 1)].timer, r[1] % 50);
		if (r[1] % 5 == 0)
			timer_stop(&k[r[2] % (i + 1)].timer);
	}
	for (size_t i = 0; i < N; i++)
		running += k[i].timer.active;
	loop_run(l);
	assert_int_equal(order, running);
	for (size_t i = 0; i < N; i++)
		for (size_t j = 0; j < N; j++)
			if (when[i] && when[j] && k[i].timer.at_ms < k[j].timer.at_ms)
				assert_true(when[i] < when[j]);
	loop_free(l);
}

static void equal_times_fire_first_come_first_served(void **state)
{
	struct loop *l = test_loop();
	struct tick k[20] = { 0 };
	int when[20] = { 0 };

	(void)state;
	order = 0;
	for (size_t i = 0; i < 20; i++) {
		timer_init(&k[i].timer, l, on_tick);
		k[i].order = &when[i];
		timer_start(&k[i].timer, 3);
	}
	loop_run(l);
	for (int i = 0; i < 20; i++)
		assert_int_equal(when[i], i + 1);
	loop_free(l);
}

static void a_stopped_timer_never_fires(void **state)
{
	struct loop *l = test_loop();
	struct tick a = { 0 }, b = { 0 };

	(void)state;
	timer_stop(&b.timer); /* all zero: nothing to do */
	timer_init(&a.timer, l, on_tick);
	timer_init(&b.timer, l, on_tick);
	a.victim = &b;
	timer_start(&a.timer, 1);
	timer_start(&b.timer, 1); /* due in the same turn, stopped by a */
	loop_run(l);
	assert_int_equal(a.fired, 1);
	assert_int_equal(b.fired, 0);
	loop_free(l);
}

static void a_repeating_timer_goes_on_until_stopped(void **state)
{
	struct loop *l = test_loop();
	struct tick a = { .limit = 5 };

	(void)state;
	timer_init(&a.timer, l, on_tick);
	timer_repeat(&a.timer, 2);
	loop_run(l);
	assert_int_equal(a.fired, 5);
	loop_free(l);
}

struct owner {
	struct timer timer;
	int *gone;
};

static void on_owner_timer(struct timer *t)
{
	struct owner *o = CONTAINER_OF(t, struct owner, timer);

	(*o->gone)++;
	free(o);
}

static void an_owner_may_be_freed_in_its_own_timer(void **state)
{
	struct loop *l = test_loop();
	int gone = 0;

	(void)state;
	for (int i = 0; i < 10; i++) {
		struct owner *o = calloc(1, sizeof(*o));

		assert_non_null(o);
		o->gone = &gone;
		timer_init(&o->timer, l, on_owner_timer);
		timer_start(&o->timer, (uint64_t)i % 3);
	}
	loop_run(l);
	assert_int_equal(gone, 10);
	loop_free(l);
}

struct spinner {
	struct timer timer;
	int turns;
	bool stop;
};

static void on_spin(struct timer *t)
{
	struct spinner *s = CONTAINER_OF(t, struct spinner, timer);

	s->turns++;
	if (!s->stop)
		timer_start(t, 0);
}

struct poked {
	struct watch watch;
	int fd, times;
	unsigned int events;
	struct spinner *spinner;
	bool close_self;
};

static void on_poked(struct watch *w, unsigned int events)
{
	struct poked *p = CONTAINER_OF(w, struct poked, watch);
	uint64_t n;

	p->times++;
	p->events = events;
	if (read(p->fd, &n, sizeof(n)) < 0)
		p->events |= WATCH_ERROR;
	if (p->spinner)
		p->spinner->stop = true;
	if (p->close_self) {
		watch_close(w);
		close(p->fd);
		free(p);
	}
}

/* A timer of 0 that starts itself again must not keep descriptors from being served. */
static void a_timer_of_zero_does_not_starve_the_rest(void **state)
{
	struct loop *l = test_loop();
	struct spinner s = { 0 };
	struct poked p = { .fd = eventfd(1, EFD_CLOEXEC), .spinner = &s };
	struct err err;

	(void)state;
	timer_init(&s.timer, l, on_spin);
	timer_start(&s.timer, 0);
	assert_int_equal(watch_open(&p.watch, l, p.fd, WATCH_READ, on_poked, &err), 0);
	RUN_UNTIL(l, p.times == 1);
	assert_true(s.turns <= 3);
	watch_close(&p.watch);
	loop_run(l);
	close(p.fd);
	loop_free(l);
}

static void a_watch_can_be_set_and_closed_anywhere(void **state)
{
	struct loop *l = test_loop();
	struct poked *p = calloc(1, sizeof(*p));
	struct err err;
	int copy;

	(void)state;
	assert_non_null(p);
	p->fd = eventfd(0, EFD_CLOEXEC);
	copy = dup(p->fd);
	assert_int_equal(watch_open(&p->watch, l, p->fd, 0, on_poked, &err), 0);
	assert_false(loop_turn(l)); /* nothing is waited for */
	watch_set(&p->watch, WATCH_READ);
	assert_int_equal(write(copy, &(uint64_t){ 1 }, 8), 8);
	RUN_UNTIL(l, p->times == 1);
	assert_int_equal(p->events, WATCH_READ);
	p->close_self = true;
	assert_int_equal(write(copy, &(uint64_t){ 1 }, 8), 8);
	loop_run(l); /* frees p in its callback; ends since nothing is left */
	close(copy);
	loop_free(l);
}

static void files_cannot_be_watched(void **state)
{
	struct loop *l = test_loop();
	FILE *f = tmpfile();
	struct watch w = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_non_null(f);
	assert_int_equal(watch_open(&w, l, fileno(f), WATCH_READ, on_poked, &err), -1);
	assert_null(w.handle);
	watch_close(&w);
	(void)fclose(f);
	loop_free(l);
}

struct child {
	struct watch watch;
	int exits;
};

static void on_child(struct watch *w, unsigned int events)
{
	struct child *c = CONTAINER_OF(w, struct child, watch);

	assert_true(events & WATCH_READ);
	c->exits++;
	watch_close(w);
}

static void the_end_of_a_child_is_seen_through_its_pidfd(void **state)
{
	struct loop *l = test_loop();
	struct child c = { 0 };
	struct err err;
	int status, fd;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(7);
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(fd >= 0);
	assert_int_equal(watch_open(&c.watch, l, fd, WATCH_READ, on_child, &err), 0);
	loop_run(l);
	assert_int_equal(c.exits, 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
	close(fd);
	loop_free(l);
}

struct alarm_seen {
	struct signal_watch watch;
	int times;
};

static void on_alarm(struct signal_watch *w)
{
	struct alarm_seen *a = CONTAINER_OF(w, struct alarm_seen, watch);

	if (++a->times == 2)
		signal_close(w);
	else
		(void)raise(SIGUSR1);
}

static void a_signal_is_a_callback(void **state)
{
	struct loop *l = test_loop();
	struct alarm_seen a = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(signal_open(&a.watch, l, SIGUSR1, on_alarm, &err), 0);
	(void)raise(SIGUSR1);
	loop_run(l);
	assert_int_equal(a.times, 2);
	signal_close(&a.watch);
	assert_int_equal(signal_open(&a.watch, l, SIGKILL, on_alarm, &err), -1);
	loop_free(l);
}

static void addresses_read_back_as_written(void **state)
{
	static const struct {
		const char *name, *back;
		uint16_t port;
	} rows[] = {
		{ "127.0.0.1:80", "127.0.0.1:80", 80 },
		{ "0.0.0.0:0", "0.0.0.0:0", 0 },
		{ "[::1]:65535", "[::1]:65535", 65535 },
		{ "unix:/run/x.sock", "unix:/run/x.sock", 0 },
		{ "127.0.0.1:65536", NULL, 0 },
		{ "127.0.0.1", NULL, 0 },
		{ "localhost:80", NULL, 0 },
		{ "::1:80", NULL, 0 },
		{ "[127.0.0.1]:80", NULL, 0 },
		{ "[::1]80", NULL, 0 },
		{ "unix:", NULL, 0 },
		{ "127.0.0.1:", NULL, 0 },
		{ "127.0.0.1:+1", NULL, 0 },
		{ "", NULL, 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char text[ADDR_TEXT_MAX];
		struct addr a;
		struct err err = { 0 };

		assert_int_equal(addr_parse(bytes_str(row->name), &a, &err), row->back ? 0 : -1);
		if (!row->back)
			continue;
		addr_text(&a, text);
		assert_string_equal(text, row->back);
		assert_int_equal(addr_port(&a), row->port);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_fire_in_the_order_of_their_time),
		cmocka_unit_test(equal_times_fire_first_come_first_served),
		cmocka_unit_test(a_stopped_timer_never_fires),
		cmocka_unit_test(a_repeating_timer_goes_on_until_stopped),
		cmocka_unit_test(an_owner_may_be_freed_in_its_own_timer),
		cmocka_unit_test(a_timer_of_zero_does_not_starve_the_rest),
		cmocka_unit_test(a_watch_can_be_set_and_closed_anywhere),
		cmocka_unit_test(files_cannot_be_watched),
		cmocka_unit_test(the_end_of_a_child_is_seen_through_its_pidfd),
		cmocka_unit_test(a_signal_is_a_callback),
		cmocka_unit_test(addresses_read_back_as_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
