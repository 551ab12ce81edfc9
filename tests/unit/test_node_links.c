/* test_node_links.c - links that come back: a warden and an egress that are there, gone, and back;
 * slots that are never given out before their doors are open. */
#include "tests/unit/played_daemon.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fdmsg.h"
#include "node/life/apply.h"
#include "node/network/slots.h"

enum { GUARD_MS = 20000, WAITS = 3, HEARD_MAX = 64 };

/* The other side of one link: hears messages, answers when told to. */
struct peer {
	struct played_daemon it;
	size_t n_heard;
	uint32_t heard[HEARD_MAX]; /* verbs */
	uint32_t slots[HEARD_MAX]; /* that they were about */
	bool busy;                 /* warden: cleans up after its predecessor */
};

static struct scene {
	struct loop *loop;
	struct timer guard;
	struct peer warden, egress;
	struct warden_client wk;
	struct link ek;
	struct slots slots;
	uint32_t next_slot;
	int ups[2], downs[2];
	struct slot_wait waits[WAITS];
	uint32_t got[WAITS];
	size_t n_got;
	struct link_call ask;
	int answered;
	struct err answer;
} s;

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static void remember(struct peer *p, uint32_t verb, uint32_t slot)
{
	assert_true(p->n_heard < HEARD_MAX);
	p->slots[p->n_heard] = slot;
	p->heard[p->n_heard++] = verb;
}

static size_t heard(const struct peer *p, uint32_t verb)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_heard; i++)
		n += p->heard[i] == verb;
	return n;
}

/* --- the peers ---------------------------------------------------------------------------- */

static void answer_warden(struct peer *p, const struct warden_request *rq)
{
	struct warden_reply r = { .tag = rq->tag };
	int doors[2] = { -1, -1 };
	size_t n = 0;
	struct err err;

	if (p->busy) {
		r.code = ERR_UNAVAILABLE;
		r.sys = EAGAIN;
	} else if (rq->verb == WARDEN_SLOT_MAKE) {
		r.slot = s.next_slot++;
	} else if (rq->verb == WARDEN_DOORS) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, doors), 0);
		r.count = (uint32_t)(n = 2);
	}
	assert_int_equal(fdmsg_send(p->it.sock, &r, sizeof(r), doors, n, &err), 0);
	for (size_t i = 0; i < n; i++)
		close(doors[i]);
}

static void on_warden_asked(struct watch *w, unsigned int events)
{
	struct peer *p = CONTAINER_OF(w, struct peer, it.at_sock);
	struct warden_request rq;
	struct err err = { 0 };
	size_t n;

	(void)events;
	if (fdmsg_recv(p->it.sock, &rq, sizeof(rq), NULL, 0, &n, &err) < 0) {
		if (err.sys != EAGAIN)
			played_daemon_hang_up(&p->it);
		return;
	}
	remember(p, rq.verb, rq.slot);
	answer_warden(p, &rq);
}

static void on_egress_asked(struct watch *w, unsigned int events)
{
	struct peer *p = CONTAINER_OF(w, struct peer, it.at_sock);
	struct egress_request rq;
	struct egress_reply r = { 0 };
	int fds[EGRESS_DOORS];
	struct err err = { 0 };
	size_t n = 0;

	(void)events;
	if (fdmsg_recv(p->it.sock, &rq, sizeof(rq), fds, EGRESS_DOORS, &n, &err) < 0) {
		if (err.sys != EAGAIN)
			played_daemon_hang_up(&p->it);
		return;
	}
	assert_int_equal(n, rq.verb == EGRESS_OPEN ? EGRESS_DOORS : 0);
	while (n > 0)
		close(fds[--n]);
	remember(p, rq.verb, rq.slot);
	r.tag = rq.tag;
	assert_int_equal(fdmsg_send(p->it.sock, &r, sizeof(r), NULL, 0, &err), 0);
}

/* --- the scene ---------------------------------------------------------------------------- */

static void warden_up(struct warden_client *k)
{
	(void)k;
	s.ups[0]++;
	slots_links_changed(&s.slots);
}

static void warden_down(struct warden_client *k)
{
	(void)k;
	s.downs[0]++;
	slots_warden_down(&s.slots);
}

static void egress_up(struct link *k)
{
	(void)k;
	s.ups[1]++;
	slots_links_changed(&s.slots);
}

static void egress_down(struct link *k)
{
	(void)k;
	s.downs[1]++;
	slots_egress_down(&s.slots);
}

static void scene_open(size_t wanted, bool with_egress)
{
	static const struct warden_client_ops warden_ops = { warden_up, warden_down };
	static const struct link_ops egress_ops = { .on_hello = egress_on_hello,
						    .on_up = egress_up,
						    .on_down = egress_down };
	const struct warden_sizes sizes = { 1, 64, 64, 0, 64 };
	struct err err;

	s = (struct scene){ 0 };
	assert_int_equal(loop_open(&s.loop, &err), 0);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	played_daemon_open(&s.warden.it, s.loop, "links-warden", WARDEN_VERSION_MAX,
			   on_warden_asked);
	played_daemon_open(&s.egress.it, s.loop, "links-egress", EGRESS_VERSION_MAX,
			   on_egress_asked);
	warden_client_open(&s.wk, s.loop, s.warden.it.path, &sizes, &warden_ops);
	link_open(&s.ek, s.loop, with_egress ? s.egress.it.path : "", &egress_words, &egress_ops);
	slots_open(&s.slots, s.loop, &s.wk, &s.ek, wanted);
}

static void scene_end(void)
{
	timer_stop(&s.guard);
	link_cancel(&s.ask);
	slots_close(&s.slots);
	link_close(&s.ek);
	warden_client_close(&s.wk);
	played_daemon_close(&s.warden.it);
	played_daemon_close(&s.egress.it);
	loop_free(s.loop);
}

#define UNTIL(condition)     \
	while (!(condition)) \
	assert_true(loop_turn(s.loop))

static void on_slot(struct slot_wait *w, uint32_t slot)
{
	(void)w;
	s.got[s.n_got++] = slot;
}

static void on_answer(struct link_call *a, const struct link_reply *r)
{
	const struct err *err = r->err;
	(void)a;
	s.answered++;
	if (err)
		s.answer = *err;
}

/* --- tests -------------------------------------------------------------------------------- */

static void slots_are_made_ahead_and_opened_first(void **state)
{
	(void)state;
	scene_open(2, true);
	UNTIL(s.slots.n_ready == 2);
	assert_int_equal(s.egress.heard[0], EGRESS_RESET);
	assert_int_equal(heard(&s.egress, EGRESS_OPEN), 2);
	slots_take(&s.slots, &s.waits[0], on_slot);
	assert_int_equal(s.n_got, 1);
	UNTIL(s.slots.n_ready == 2); /* made up for */
	slots_leave(&s.slots, s.got[0]);
	slots_leave(&s.slots, s.got[0]); /* a second time does nothing */
	UNTIL(heard(&s.egress, EGRESS_CLOSE) == 1);
	assert_int_equal(s.egress.slots[s.egress.n_heard - 1], s.got[0]);
	scene_end();
}

static void who_comes_first_gets_the_first(void **state)
{
	(void)state;
	scene_open(0, true);
	for (size_t i = 0; i < WAITS; i++)
		slots_take(&s.slots, &s.waits[i], on_slot);
	slots_cancel(&s.waits[1]);
	UNTIL(s.n_got == 2);
	assert_false(s.waits[0].slots || s.waits[2].slots);
	scene_end();
}

static void without_egress_no_doors_are_asked_for(void **state)
{
	(void)state;
	scene_open(1, false);
	UNTIL(s.slots.n_ready == 1);
	assert_int_equal(heard(&s.warden, WARDEN_DOORS), 0);
	scene_end();
}

static void a_new_egress_gets_every_door_again(void **state)
{
	(void)state;
	scene_open(1, true);
	slots_take(&s.slots, &s.waits[0], on_slot);
	UNTIL(s.n_got == 1 && s.slots.n_ready == 1);
	slots_adopt(&s.slots, 77); /* in use since before */
	UNTIL(heard(&s.egress, EGRESS_OPEN) == 3);
	s.egress.n_heard = 0;
	played_daemon_hang_up(&s.egress.it);
	UNTIL(s.downs[1] == 1);
	assert_int_equal(s.slots.n_ready, 0);
	UNTIL(s.ups[1] == 2 && s.slots.n_ready == 1 && heard(&s.egress, EGRESS_OPEN) == 3);
	assert_int_equal(s.egress.heard[0], EGRESS_RESET);
	scene_end();
}

static void a_new_warden_makes_new_slots(void **state)
{
	(void)state;
	scene_open(1, true);
	UNTIL(s.slots.n_ready == 1);
	s.next_slot = 40;
	played_daemon_hang_up(&s.warden.it);
	UNTIL(s.downs[0] == 1);
	assert_int_equal(s.slots.n_ready, 0);
	UNTIL(s.slots.n_ready == 1);
	assert_int_equal(s.slots.ready[0], 40);
	assert_int_equal(heard(&s.egress, EGRESS_CLOSE), 1); /* of the old one */
	scene_end();
}

static void what_may_be_asked_twice_waits_for_warden(void **state)
{
	const struct warden_request rq = { .verb = WARDEN_STOP };

	(void)state;
	scene_open(0, false);
	s.warden.busy = true;
	warden_again(&s.wk, &s.ask, &rq, 0, on_answer); /* before anybody is there */
	UNTIL(heard(&s.warden, WARDEN_FACTS) == 3);     /* hello, again and again */
	assert_int_equal(s.answered, 0);
	s.warden.busy = false;
	UNTIL(s.answered == 1);
	assert_int_equal(s.answer.code, ERR_NONE);
	s.warden.busy = true; /* asked again while it cleans up */
	warden_again(&s.wk, &s.ask, &rq, 0, on_answer);
	UNTIL(heard(&s.warden, WARDEN_STOP) == 4);
	s.warden.busy = false;
	UNTIL(s.answered == 2);
	scene_end();
}

static void patience_has_an_end(void **state)
{
	const struct warden_request rq = { .verb = WARDEN_SOCKETS };

	(void)state;
	scene_open(0, false);
	s.warden.busy = true;
	warden_again(&s.wk, &s.ask, &rq, 50, on_answer);
	UNTIL(s.answered == 1);
	assert_int_equal(s.answer.code, ERR_UNAVAILABLE);
	scene_end();
}

static void on_applied(struct apply *a, const struct copier_reply *ret, const struct err *err)
{
	(void)a, (void)ret, (void)err;
	fail_msg("it was never begun");
}

/* One resume fails; the others go on. */
static void without_a_descriptor_the_link_stays(void **state)
{
	struct apply a;
	struct err err;

	(void)state;
	scene_open(0, false);
	UNTIL(s.ups[0] == 1);
	for (int lacks = 0; lacks < 2; lacks++) {
		int pages = lacks ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
		int memory = lacks ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);

		const struct apply_spec spec = { "box", pages, memory, 0 };

		assert_int_equal(apply_start(&a, s.loop, &s.wk, &spec, on_applied, &err), -1);
		assert_int_equal(err.code, ERR_EXHAUSTED);
		assert_int_equal(fcntl(lacks ? pages : memory, F_GETFD), -1); /* it was closed */
	}
	slots_take(&s.slots, &s.waits[0], on_slot); /* warden hears it */
	UNTIL(s.n_got == 1);
	assert_int_equal(s.downs[0], 0);
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_made_ahead_and_opened_first),
		cmocka_unit_test(who_comes_first_gets_the_first),
		cmocka_unit_test(without_egress_no_doors_are_asked_for),
		cmocka_unit_test(a_new_egress_gets_every_door_again),
		cmocka_unit_test(a_new_warden_makes_new_slots),
		cmocka_unit_test(what_may_be_asked_twice_waits_for_warden),
		cmocka_unit_test(patience_has_an_end),
		cmocka_unit_test(without_a_descriptor_the_link_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
