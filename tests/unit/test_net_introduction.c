/* test_net_introduction.c - connections that a proxy makes for others: who is counted, what is
 * read, and what becomes of those who are never introduced.
 *
 * The header of these tests is a byte with its length, and an address as text.
 */
#include "tests/unit/test_net_layers.h"

#include "net/listen.h"

enum { COME = 8, MS = 20 };

struct house {
	struct listener door;
	struct ear guest[COME];
	size_t n, n_surplus, n_unknown;
	struct net_peer last;
	struct err why;
	bool close_door;
};

static int read_toy(struct bytes so_far, struct net_peer *who, size_t *ret_more, struct err *err)
{
	char text[ADDR_TEXT_MAX];

	if (so_far.len == 0 || so_far.len < 1u + so_far.ptr[0]) {
		*ret_more = so_far.len == 0 ? 1 : 1u + so_far.ptr[0] - so_far.len;
		return 0;
	}
	*ret_more = 0;
	who->secure = true;
	return bytes_to_str(bytes_tail(so_far, 1), text, sizeof(text)) &&
			       addr_ip(text, 7, &who->at, err) == 0
		       ? 0
		       : err_set(err, ERR_INVALID, 0, "no address");
}

/* --- one by itself --------------------------------------------------------------------------- */

struct one {
	struct introduction intro;
	int dones;
	struct err why;
};

static int one_read(struct introduction *i, struct bytes so_far, struct net_peer *who,
		    size_t *ret_more, struct err *err)
{
	(void)i;
	return read_toy(so_far, who, ret_more, err);
}

static void one_done(struct introduction *i, const struct err *err)
{
	struct one *o = CONTAINER_OF(i, struct one, intro);

	o->dones++;
	o->why = err ? *err : (struct err){ 0 };
}

static void one_start(struct one *o, struct loop *l, int fd, uint64_t ms)
{
	static const struct introduction_ops ops = { one_read, one_done };
	struct err err = { 0 };

	*o = (struct one){ .intro = { .ops = &ops, .fd = fd } };
	if (introduction_start(&o->intro, l, ms, &err) < 0)
		fail_msg("%s", err.msg);
}

static void send_all(int fd, struct bytes b)
{
	assert_int_equal(send(fd, b.ptr, b.len, 0), (ssize_t)b.len);
}

static void a_few_turns(struct loop *l)
{
	for (int i = 0; i < 3; i++) {
		struct timer t;

		timer_init(&t, l, patience_over);
		timer_start(&t, 1);
		(void)loop_turn(l);
		timer_stop(&t);
	}
}

static void not_a_byte_more_is_read(void **state)
{
	struct bytes in = BYTES_LIT("\x09"
				    "192.0.2.7"
				    "GET /");
	struct loop *l = test_loop();
	struct one o;
	char rest[16];
	int fd[2];

	(void)state;
	for (size_t step = 1; step <= in.len; step += 6) { /* in pieces, and all at once */
		tcp_pair(fd);
		one_start(&o, l, fd[1], TEST_PATIENCE_MS);
		for (size_t at = 0; at < in.len; at += step) {
			send_all(fd[0], bytes_head(bytes_tail(in, at), step));
			a_few_turns(l);
		}
		RUN_UNTIL(l, o.dones == 1);
		assert_int_equal(o.why.code, ERR_NONE);
		assert_int_equal(addr_port(&o.intro.who.at), 7);
		assert_true(o.intro.who.secure);
		assert_int_equal(recv(fd[1], rest, sizeof(rest), 0), 5);
		assert_memory_equal(rest, "GET /", 5);
		close(fd[0]);
		close(fd[1]);
	}
	loop_free(l);
}

static void what_is_late_cut_off_or_wrong_ends(void **state)
{
	static const struct {
		const char *name;
		struct bytes in;
		bool closes;
		enum err_code code;
	} rows[] = {
		{ "nothing", { 0 }, false, ERR_TIMEOUT },
		{ "the beginning",
		  BYTES_LIT("\x09"
			    "192."),
		  false, ERR_TIMEOUT },
		{ "gone at once", { 0 }, true, ERR_UNAVAILABLE },
		{ "gone in the middle",
		  BYTES_LIT("\x09"
			    "192."),
		  true, ERR_INVALID },
		{ "no address",
		  BYTES_LIT("\x01"
			    "x"),
		  false, ERR_INVALID },
	};
	struct loop *l = test_loop();
	int fd[2];

	(void)state;
	FOR_ROWS(row, rows) {
		struct one o;

		tcp_pair(fd);
		one_start(&o, l, fd[1], row->code == ERR_TIMEOUT ? MS : TEST_PATIENCE_MS);
		if (row->in.len > 0)
			send_all(fd[0], row->in);
		if (row->closes)
			assert_int_equal(shutdown(fd[0], SHUT_WR), 0);
		RUN_UNTIL(l, o.dones == 1);
		assert_int_equal(o.why.code, row->code);
		close(fd[0]);
		close(fd[1]);
	}
	loop_free(l);
}

/* --- at a door ------------------------------------------------------------------------------- */

static struct house *of(struct listener *ln)
{
	return CONTAINER_OF(ln, struct house, door);
}

static void on_introduced(struct listener *ln, struct stream *s, const struct net_peer *who)
{
	struct house *h = of(ln);

	assert_true(h->n < COME);
	h->last = *who;
	ear_init(&h->guest[h->n], s);
	stream_read(s, true);
	h->n++;
	if (h->close_door)
		listener_close(ln);
}

static void on_accept(struct listener *ln, struct stream *s, const struct addr *peer)
{
	on_introduced(ln, s, &(struct net_peer){ .at = *peer });
}

static void on_surplus(struct listener *ln, struct stream *s, const struct addr *peer)
{
	(void)peer;
	of(ln)->n_surplus++;
	stream_abort(s);
}

static enum listener_peer all_introduce(struct listener *ln, const struct addr *peer)
{
	(void)ln;
	return addr_is_local(peer) ? LISTENER_INTRODUCES : LISTENER_CLIENT;
}

static enum listener_peer all_bring_many(struct listener *ln, const struct addr *peer)
{
	(void)ln, (void)peer;
	return LISTENER_PROXY;
}

static int read_introduction(struct listener *ln, struct bytes so_far, struct net_peer *who,
			     size_t *ret_more, struct err *err)
{
	(void)ln;
	return read_toy(so_far, who, ret_more, err);
}

static void on_unknown(struct listener *ln, const struct addr *proxy, const struct err *why)
{
	struct house *h = of(ln);

	assert_true(addr_is_local(proxy));
	h->n_unknown++;
	h->why = *why;
	if (h->close_door)
		listener_close(ln);
}

static const struct listener_ops introduced_ops = { on_accept,         on_surplus,    all_introduce,
						    read_introduction, on_introduced, on_unknown };

static void house_open(struct house *h, struct loop *l, const struct listener_ops *ops,
		       size_t limit)
{
	struct err err = { 0 };
	struct addr at;

	*h = (struct house){ 0 };
	if (addr_ip("127.0.0.1", 0, &at, &err) < 0 ||
	    listener_open(&h->door, l, ops, &at, 0, COME, &err) < 0 ||
	    listener_limit_address(&h->door, limit, false, &err) < 0)
		fail_msg("%s", err.msg);
}

static void house_close(struct house *h)
{
	for (size_t i = 0; i < h->n; i++)
		ear_done(&h->guest[i]);
	listener_close(&h->door);
}

static int knock(const struct house *h)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct addr at;

	listener_addr(&h->door, &at);
	assert_int_equal(connect(fd, (struct sockaddr *)&at.at, at.len), 0);
	return fd;
}

static void who_is_introduced_is_counted(void **state)
{
	static const char *const come[] = { "\x09"
					    "192.0.2.7",
					    "\x09"
					    "192.0.2.7",
					    "\x09"
					    "192.0.2.8",
					    "\x09"
					    "192.0.2.7" };
	struct loop *l = test_loop();
	struct house h;
	int fd[COUNT(come)];

	(void)state;
	house_open(&h, l, &introduced_ops, 2);
	for (size_t i = 0; i < COUNT(come); i++) {
		fd[i] = knock(&h);
		send_all(fd[i], bytes_str(come[i]));
		send_all(fd[i], BYTES_LIT("hello"));
		RUN_UNTIL(l, h.n + h.n_surplus == i + 1);
	}
	assert_int_equal(h.n, 3);
	assert_int_equal(h.n_surplus, 1);
	RUN_UNTIL(l, ear_heard(&h.guest[2], "hello"));
	assert_true(h.last.secure);
	for (size_t i = 0; i < COUNT(come); i++)
		close(fd[i]);
	house_close(&h);
	loop_free(l);
}

static void a_proxy_is_not_one_address(void **state)
{
	static const struct listener_ops ops = { .on_accept = on_accept,
						 .kind_of = all_bring_many };
	struct loop *l = test_loop();
	struct house h;
	int fd[COME];

	(void)state;
	house_open(&h, l, &ops, 1);
	for (size_t i = 0; i < COME; i++)
		fd[i] = knock(&h);
	RUN_UNTIL(l, h.n == COME); /* and no more, which the limit of all keeps */
	assert_int_equal(listener_alive(&h.door), COME);
	for (size_t i = 0; i < COME; i++)
		close(fd[i]);
	house_close(&h);
	loop_free(l);
}

static void strangers_are_counted_among_all_and_told_of(void **state)
{
	struct loop *l = test_loop();
	struct house h;
	int fd[2];
	char byte;

	(void)state;
	house_open(&h, l, &introduced_ops, 2);
	fd[0] = knock(&h);
	fd[1] = knock(&h);
	RUN_UNTIL(l, listener_alive(&h.door) == 2);
	send_all(fd[0], BYTES_LIT("\x01x"));
	RUN_UNTIL(l, h.n_unknown == 1);
	assert_int_equal(h.why.code, ERR_INVALID);
	assert_int_equal(listener_alive(&h.door), 1);
	assert_true(recv(fd[0], &byte, 1, 0) <= 0);
	close(fd[1]); /* without a word: nobody is told */
	RUN_UNTIL(l, listener_alive(&h.door) == 0);
	assert_int_equal(h.n_unknown, 1);
	close(fd[0]);
	house_close(&h);
	loop_free(l);
}

/* Those who wait to be introduced go with it; in a callback, too. */
static void a_door_may_close_at_any_time(void **state)
{
	static const char *const say[] = { NULL,
					   "\x09"
					   "192.0.2.7",
					   "\x01x" };

	(void)state;
	for (size_t i = 0; i < COUNT(say); i++) {
		struct loop *l = test_loop();
		struct house h;
		int fd[2];
		char byte;

		house_open(&h, l, &introduced_ops, 2);
		h.close_door = true;
		fd[0] = knock(&h);
		fd[1] = knock(&h);
		RUN_UNTIL(l, listener_alive(&h.door) == 2);
		if (say[i]) {
			send_all(fd[0], bytes_str(say[i]));
			RUN_UNTIL(l, h.n + h.n_unknown == 1);
		}
		house_close(&h);
		assert_true(recv(fd[1], &byte, 1, 0) <= 0);
		close(fd[0]);
		close(fd[1]);
		loop_run(l);
		loop_free(l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_a_byte_more_is_read),
		cmocka_unit_test(what_is_late_cut_off_or_wrong_ends),
		cmocka_unit_test(who_is_introduced_is_counted),
		cmocka_unit_test(a_proxy_is_not_one_address),
		cmocka_unit_test(strangers_are_counted_among_all_and_told_of),
		cmocka_unit_test(a_door_may_close_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
