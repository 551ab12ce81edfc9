/* test_net_stream.c - streams over sockets, pipes and terminals, alone and with a layer between. */
#include "tests/unit/test_net_layers.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pty.h>

#include "base/random.h"
#include "net/loop_inside.h"

static void write_text(struct stream *s, const char *text)
{
	struct err err = { 0 };

	if (stream_write(s, bytes_str(text), &err) < 0)
		fail_msg("%s", err.msg);
}

static void fill_random(struct buf *b, size_t n)
{
	struct err err;
	uint8_t *room;

	assert_int_equal(buf_reserve(b, n, &room, &err), 0);
	random_fill(room, n);
	buf_claim(b, n);
}

struct duo { /* two streams that talk to each other, and who listens to them */
	struct loop *l;
	struct ear a, b;
};

static void duo_open(struct duo *d, void (*make_pair)(int fd[2]), size_t piece, uint8_t key)
{
	struct stream *s[2];
	int fd[2];

	make_pair(fd);
	d->l = test_loop();
	for (int i = 0; i < 2; i++) {
		s[i] = test_stream(d->l, fd[i]);
		if (piece > 0)
			s[i] = bend_over(s[i], piece, key);
	}
	ear_init(&d->a, s[0]);
	ear_init(&d->b, s[1]);
	stream_read(s[0], true);
	stream_read(s[1], true);
}

static void duo_close(struct duo *d)
{
	ear_done(&d->a);
	ear_done(&d->b);
	loop_free(d->l);
}

static void bytes_arrive_whatever_lies_between(void **state)
{
	static const struct {
		const char *name;
		void (*make_pair)(int fd[2]);
		size_t piece;
		uint8_t key;
		size_t largest;
	} rows[] = {
		{ "unix", unix_pair, 0, 0, LOOP_READ_MAX },
		{ "tcp", tcp_pair, 0, 0, LOOP_READ_MAX },
		{ "one byte at a time", unix_pair, 1, 0, 1 },
		{ "disguised", tcp_pair, 1000, 0x5a, 1000 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf text = BUF_MAX(20000);
		struct duo d;
		struct err err;

		fill_random(&text, 20000);
		duo_open(&d, row->make_pair, row->piece, row->key);
		assert_int_equal(stream_write(d.a.s, buf_view(&text), &err), 0);
		write_text(d.b.s, "and back");
		stream_shut(d.a.s);
		RUN_UNTIL(d.l, d.b.ends == 1 && d.a.got.len == 8);
		assert_true(bytes_eq(buf_view(&d.b.got), buf_view(&text)));
		assert_true(ear_heard(&d.a, "and back"));
		assert_true(d.b.largest <= row->largest);
		assert_int_equal(d.a.ends + d.a.fails + d.b.fails, 0);
		assert_true(stream_sent(d.a.s) >= 20000);
		duo_close(&d);
	}
}

/* What a layer changes is really changed on the wire: the plain other end sees it. */
static void a_layer_sees_every_byte(void **state)
{
	struct loop *l = test_loop();
	struct ear plain, bent;
	int fd[2];

	(void)state;
	unix_pair(fd);
	ear_init(&plain, test_stream(l, fd[0]));
	ear_init(&bent, bend_over(test_stream(l, fd[1]), 3, 1));
	stream_read(plain.s, true);
	stream_read(bent.s, true);
	write_text(bent.s, "`abc");
	write_text(plain.s, "`abc");
	RUN_UNTIL(l, plain.got.len == 4 && bent.got.len == 4);
	assert_true(ear_heard(&plain, "a`cb"));
	assert_true(ear_heard(&bent, "a`cb"));
	ear_done(&plain);
	ear_done(&bent);
	loop_free(l);
}

static void a_slow_reader_holds_the_writer_back(void **state)
{
	enum { PIECE = 10000 };
	AUTO(buf_done) struct buf all = BUF_MAX(EAR_MAX);
	struct duo d;
	struct err err = { 0 };
	size_t refused_at;

	(void)state;
	duo_open(&d, unix_pair, 0, 0);
	stream_read(d.b.s, false);
	for (;;) {
		AUTO(buf_done) struct buf piece = BUF_MAX(PIECE);

		fill_random(&piece, PIECE);
		if (stream_write(d.a.s, buf_view(&piece), &err) < 0)
			break;
		assert_int_equal(buf_add(&all, buf_view(&piece), &err), 0);
		assert_true(stream_queued(d.a.s) <= STREAM_QUEUE_MAX);
	}
	assert_int_equal(err.code, ERR_EXHAUSTED);
	refused_at = stream_queued(d.a.s);
	assert_true(refused_at > STREAM_QUEUE_MAX - PIECE);
	assert_true(stream_room(d.a.s) < PIECE);
	assert_int_equal(d.a.drains, 0);

	stream_read(d.b.s, true);
	RUN_UNTIL(d.l, d.a.drains == 1);
	assert_true(stream_queued(d.a.s) <= STREAM_LOW_WATER);
	RUN_UNTIL(d.l, d.b.got.len == all.len);
	assert_true(bytes_eq(buf_view(&d.b.got), buf_view(&all)));
	assert_int_equal(d.a.drains, 1);
	assert_int_equal(d.a.fails, 0);
	duo_close(&d);
}

static void a_buffer_is_handed_over_without_a_copy(void **state)
{
	struct duo d;
	AUTO(buf_done) struct buf b = BUF_MAX(200000), big = BUF_MAX(300000);
	struct err err = { 0 };

	(void)state;
	duo_open(&d, unix_pair, 0, 0);
	stream_read(d.b.s, false);
	fill_random(&b, 200000);
	fill_random(&big, 300000);
	assert_int_equal(stream_write_buf(d.a.s, &big, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	assert_int_equal(big.len, 300000); /* refused: still the caller's */
	assert_int_equal(stream_write_buf(d.a.s, &b, &err), 0);
	assert_null(b.ptr);
	stream_read(d.b.s, true);
	RUN_UNTIL(d.l, d.b.got.len == 200000);
	duo_close(&d);
}

static void a_reader_that_stops_is_left_alone(void **state)
{
	static const struct {
		const char *name;
		size_t piece;
	} rows[] = { { "plain", 0 }, { "through a layer", 2 } };

	(void)state;
	FOR_ROWS(row, rows) {
		struct duo d;

		duo_open(&d, tcp_pair, row->piece, 7);
		d.b.stop_after = 4;
		write_text(d.a.s, "abcd");
		RUN_UNTIL(d.l, d.b.got.len == 4);
		write_text(d.a.s, "efgh");
		stream_shut(d.a.s);
		write_text(d.b.s, "still here");
		RUN_UNTIL(d.l, d.a.got.len == 10); /* time passes; b hears nothing */
		assert_true(ear_heard(&d.b, "abcd"));
		assert_int_equal(d.b.ends, 0);
		d.b.stop_after = 0;
		stream_read(d.b.s, true);
		RUN_UNTIL(d.l, d.b.ends == 1);
		assert_true(ear_heard(&d.b, "abcdefgh"));
		duo_close(&d);
	}
}

static void half_closed_is_half_open(void **state)
{
	struct duo d;

	(void)state;
	duo_open(&d, tcp_pair, 0, 0);
	write_text(d.a.s, "question");
	stream_shut(d.a.s);
	RUN_UNTIL(d.l, d.b.ends == 1);
	assert_true(ear_heard(&d.b, "question"));
	write_text(d.b.s, "answer");
	stream_shut(d.b.s);
	RUN_UNTIL(d.l, d.a.ends == 1);
	assert_true(ear_heard(&d.a, "answer"));
	assert_int_equal(d.a.fails + d.b.fails, 0);
	duo_close(&d);
}

/* A relay may be asked to, by what the other side sends. */
static void a_write_after_the_end_is_refused(void **state)
{
	AUTO(buf_done) struct buf late = BUF_MAX(16);
	AUTO(auto_close) int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct duo d;
	struct err err = { 0 };
	size_t n;

	(void)state;
	duo_open(&d, tcp_pair, 0, 0);
	write_text(d.a.s, "last");
	stream_shut(d.a.s);
	assert_int_equal(stream_write(d.a.s, BYTES_LIT("late"), &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(buf_add(&late, BYTES_LIT("late"), &err), 0);
	assert_int_equal(stream_write_buf(d.a.s, &late, &err), -1);
	assert_int_equal(late.len, 4);
	assert_int_equal(stream_send_file(d.a.s, file, 4, &n, &err), STREAM_FILE_FAILED);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(stream_write(d.a.s, (struct bytes){ 0 }, &err), 0);
	RUN_UNTIL(d.l, d.b.ends == 1);
	assert_true(ear_heard(&d.b, "last"));
	assert_int_equal(d.a.fails, 0);
	duo_close(&d);
}

static void closing_sends_what_is_queued(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(250000);
	struct duo d;
	struct err err;

	(void)state;
	duo_open(&d, unix_pair, 0, 0);
	stream_read(d.b.s, false);
	fill_random(&text, 250000);
	assert_int_equal(stream_write(d.a.s, buf_view(&text), &err), 0);
	stream_shut(d.a.s);
	ear_done(&d.a); /* closed with a full queue */
	stream_read(d.b.s, true);
	RUN_UNTIL(d.l, d.b.ends == 1);
	assert_true(bytes_eq(buf_view(&d.b.got), buf_view(&text)));
	duo_close(&d);
}

/* The classic: the server answers early and closes while the client is still sending. A plain
 * close() would reset the connection and might destroy the answer on its way. */
static void closing_with_unread_input_does_not_hurt_the_answer(void **state)
{
	AUTO(buf_done) struct buf upload = BUF_MAX(250000);
	struct duo d;
	struct err err;

	(void)state;
	duo_open(&d, tcp_pair, 0, 0);
	stream_read(d.a.s, false);
	stream_read(d.b.s, false);
	fill_random(&upload, 250000);
	assert_int_equal(stream_write(d.a.s, buf_view(&upload), &err), 0);
	write_text(d.b.s, "too large");
	ear_done(&d.b);
	stream_read(d.a.s, true);
	RUN_UNTIL(d.l, d.a.ends == 1);
	assert_true(ear_heard(&d.a, "too large"));
	assert_int_equal(d.a.fails, 0);
	duo_close(&d);
}

static void an_abort_is_seen_as_a_failure(void **state)
{
	struct duo d;

	(void)state;
	duo_open(&d, tcp_pair, 0, 0);
	stream_abort(d.a.s);
	d.a.s = NULL;
	RUN_UNTIL(d.l, d.b.fails == 1);
	assert_int_equal(d.b.why.code, ERR_UNAVAILABLE);
	assert_int_equal(d.b.why.sys, ECONNRESET);
	assert_int_equal(d.b.ends, 0);
	duo_close(&d);
}

static void a_reset_is_seen_while_not_reading(void **state)
{
	struct duo d;

	(void)state;
	duo_open(&d, tcp_pair, 0, 0);
	stream_read(d.b.s, false);
	stream_abort(d.a.s);
	d.a.s = NULL;
	RUN_UNTIL(d.l, d.b.fails == 1);
	duo_close(&d);
}

/* The other side answers, then resets because it did not read our upload. Writing fails; the
 * answer is still there to be read. */
static void a_broken_upload_still_delivers_the_early_answer(void **state)
{
	struct loop *l = test_loop();
	struct ear e;
	struct err err = { 0 };
	int fd[2];

	(void)state;
	tcp_pair(fd);
	ear_init(&e, test_stream(l, fd[0]));
	write_text(e.s, "upload");
	assert_int_equal(write(fd[1], "early answer", 12), 12);
	close(fd[1]); /* with "upload" unread: a reset */
	while (stream_write(e.s, BYTES_LIT("more"), &err) == 0)
		(void)loop_turn(l);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(e.fails, 0);
	assert_int_equal(stream_write(e.s, BYTES_LIT("more"), &err), -1);
	stream_read(e.s, true);
	RUN_UNTIL(l, e.fails == 1);
	assert_true(ear_heard(&e, "early answer"));
	ear_done(&e);
	loop_free(l);
}

struct leaver { /* closes its stream and frees itself in a chosen callback */
	struct stream_user user;
	struct stream *s;
	int *gone;
	char when;
};

static void leave(struct stream_user *u, char where)
{
	struct leaver *v = CONTAINER_OF(u, struct leaver, user);

	if (v->when != where && where != 'f')
		return;
	(*v->gone)++;
	stream_close(v->s);
	free(v);
}

static void leave_on_data(struct stream_user *u, struct bytes in)
{
	(void)in;
	leave(u, 'd');
}

static void leave_on_end(struct stream_user *u)
{
	leave(u, 'e');
}

static void leave_on_drain(struct stream_user *u)
{
	leave(u, 'w');
}

static void leave_on_fail(struct stream_user *u, const struct err *err)
{
	(void)err;
	leave(u, 'f');
}

static void an_owner_may_leave_in_any_callback(void **state)
{
	static const struct stream_user_ops ops = { leave_on_data, leave_on_end, leave_on_drain,
						    leave_on_fail };
	static const struct {
		const char *name;
		char when;
		size_t piece;
	} rows[] = {
		{ "data", 'd', 0 },
		{ "end", 'e', 0 },
		{ "drain", 'w', 0 },
		{ "failure", 'f', 0 },
		{ "data in a layer", 'd', 1 },
		{ "end in a layer", 'e', 1 },
		{ "drain in a layer", 'w', 100 },
		{ "failure in a layer", 'f', 1 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf big = BUF_MAX(250000);
		struct leaver *v = calloc(1, sizeof(*v));
		struct loop *l = test_loop();
		struct ear e;
		struct err err;
		int fd[2], gone = 0;

		assert_non_null(v);
		if (row->when == 'w')
			unix_pair(fd); /* holds less than is written */
		else
			tcp_pair(fd);
		ear_init(&e, test_stream(l, fd[0]));
		*v = (struct leaver){ { &ops }, test_stream(l, fd[1]), &gone, row->when };
		if (row->piece > 0)
			v->s = bend_over(v->s, row->piece, 3);
		stream_set_user(v->s, &v->user);
		stream_read(v->s, true);
		fill_random(&big, 250000);
		if (row->when == 'w')
			assert_int_equal(stream_write(v->s, buf_view(&big), &err), 0);
		write_text(e.s, "several bytes");
		if (row->when == 'e')
			stream_shut(e.s);
		if (row->when == 'f') {
			stream_abort(e.s);
			e.s = NULL;
		} else {
			stream_read(e.s, true);
		}
		RUN_UNTIL(l, gone == 1);
		ear_done(&e);
		loop_free(l);
	}
}

static void what_happens_to_nobody_is_told_to_the_next_user(void **state)
{
	AUTO(buf_done) struct buf big = BUF_MAX(250000);
	struct duo d;
	struct ear next;
	struct err err;

	(void)state;
	duo_open(&d, unix_pair, 0, 0);
	fill_random(&big, 250000);
	assert_int_equal(stream_write(d.a.s, buf_view(&big), &err), 0);
	stream_set_user(d.a.s, NULL);
	RUN_UNTIL(d.l, d.b.got.len == 250000);
	assert_int_equal(d.a.drains, 0);
	ear_init(&next, d.a.s);
	RUN_UNTIL(d.l, next.drains == 1);

	stream_set_user(next.s, NULL);
	stream_abort(d.b.s);
	d.b.s = NULL;
	while (stream_write(next.s, BYTES_LIT("x"), &err) == 0)
		;
	ear_init(&d.a, d.a.s);
	RUN_UNTIL(d.l, d.a.fails == 1);
	duo_close(&d);
}

static void pipes_go_one_way(void **state)
{
	struct loop *l = test_loop();
	struct stream *in, *out;
	struct ear reader, writer;
	struct err err;
	int fd[2];

	(void)state;
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	assert_int_equal(fd_stream_open(l, fd[0], FD_STREAM_READ_ONLY, &in, &err), 0);
	assert_int_equal(fd_stream_open(l, fd[1], FD_STREAM_WRITE_ONLY, &out, &err), 0);
	ear_init(&reader, in);
	ear_init(&writer, out);
	stream_read(in, true);
	write_text(out, "through the pipe");
	stream_shut(out); /* closes it */
	RUN_UNTIL(l, reader.ends == 1);
	assert_true(ear_heard(&reader, "through the pipe"));
	ear_done(&reader);
	ear_done(&writer);
	loop_free(l);
}

static void a_pipe_whose_reader_left_fails(void **state)
{
	static const struct {
		const char *name;
		bool full;
	} rows[] = { { "idle", false }, { "with a queue", true } };

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf big = BUF_MAX(200000);
		struct loop *l = test_loop();
		struct stream *out;
		struct ear writer;
		struct err err;
		int fd[2];

		assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
		assert_int_equal(fd_stream_open(l, fd[1], FD_STREAM_WRITE_ONLY, &out, &err), 0);
		ear_init(&writer, out);
		fill_random(&big, 200000);
		if (row->full)
			assert_int_equal(stream_write(out, buf_view(&big), &err), 0);
		close(fd[0]);
		RUN_UNTIL(l, writer.fails == 1);
		assert_int_equal(writer.why.sys, EPIPE);
		ear_done(&writer);
		loop_free(l);
	}
}

static void a_terminal_ends_when_its_programs_are_gone(void **state)
{
	struct loop *l = test_loop();
	struct ear e;
	int master, slave;

	(void)state;
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	ear_init(&e, test_stream(l, master));
	stream_read(e.s, true);
	assert_int_equal(write(slave, "hello", 5), 5);
	RUN_UNTIL(l, e.got.len == 5);
	close(slave);
	RUN_UNTIL(l, e.ends == 1);
	assert_int_equal(e.fails, 0);
	ear_done(&e);
	loop_free(l);
}

/* A peer that neither reads nor closes holds a closed stream only until the loop goes. */
static void the_loop_cuts_off_those_who_linger(void **state)
{
	AUTO(buf_done) struct buf big = BUF_MAX(250000);
	struct loop *l = test_loop();
	struct stream *s;
	struct err err;
	int fd[2];

	(void)state;
	unix_pair(fd);
	s = test_stream(l, fd[0]);
	fill_random(&big, 250000);
	assert_int_equal(stream_write(s, buf_view(&big), &err), 0);
	stream_close(s);
	loop_free(l);
	close(fd[1]);
}

/* How long a peer may take to read what was left for it: as long as it moves. */
static void lingering_ends_when_nothing_moves(void **state)
{
	static const struct {
		const char *name;
		bool reads;
	} rows[] = { { "a slow reader gets all of it", true }, { "no reader, no end", false } };
	uint8_t *block = calloc(1, 250000);

	(void)state;
	FOR_ROWS(row, rows) {
		struct loop *l = test_loop();
		struct stream *s;
		struct timer nap;
		struct err err;
		size_t got = 0;
		int fd[2];

		unix_pair(fd);
		l->linger_ms = 60;
		s = test_stream(l, fd[0]);
		assert_int_equal(stream_write(s, (struct bytes){ block, 250000 }, &err), 0);
		stream_close(s);
		timer_init(&nap, l, patience_over);
		for (int i = 0; i < 10 && row->reads; i++) { /* 200 ms in all */
			ssize_t n = recv(fd[1], block, 25000, MSG_DONTWAIT | MSG_WAITALL);

			got += n > 0 ? (size_t)n : 0;
			timer_start(&nap, 20);
			RUN_UNTIL(l, !nap.active);
		}
		assert_int_equal(got, row->reads ? 250000 : 0);
		loop_run(l); /* until it gives up waiting: the other side never closes */
		close(fd[1]);
		loop_free(l);
	}
	free(block);
}

static void a_descriptor_that_cannot_be_a_stream_is_closed(void **state)
{
	struct loop *l = test_loop();
	struct stream *s = NULL;
	FILE *f = tmpfile();
	struct err err = { 0 };
	int fd = dup(fileno(f));

	(void)state;
	assert_int_equal(fd_stream_open(l, fd, FD_STREAM_BOTH, &s, &err), -1);
	assert_null(s);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	(void)fclose(f);
	loop_free(l);
}

/* The allocator of the sanitizers does not count, so there this only runs the code. */
static void an_idle_stream_is_small(void **state)
{
	enum { N = 200, EACH_MAX = 1024 };
	struct loop *l = test_loop();
	struct ear e[N];
	size_t before, after;
	int fd[2];

	(void)state;
	before = mallinfo2().uordblks;
	for (size_t i = 0; i < N; i += 2) {
		unix_pair(fd);
		ear_init(&e[i], test_stream(l, fd[0]));
		ear_init(&e[i + 1], test_stream(l, fd[1]));
		stream_read(e[i].s, true);
		stream_read(e[i + 1].s, true);
		write_text(e[i].s, "x");
	}
	RUN_UNTIL(l, e[N - 1].got.len == 1);
	for (size_t i = 0; i < N; i++)
		buf_done(&e[i].got);
	after = mallinfo2().uordblks;
	assert_true(after - before <= (size_t)N * EACH_MAX);
	for (size_t i = 0; i < N; i++)
		ear_done(&e[i]);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_arrive_whatever_lies_between),
		cmocka_unit_test(a_layer_sees_every_byte),
		cmocka_unit_test(a_slow_reader_holds_the_writer_back),
		cmocka_unit_test(a_buffer_is_handed_over_without_a_copy),
		cmocka_unit_test(a_reader_that_stops_is_left_alone),
		cmocka_unit_test(half_closed_is_half_open),
		cmocka_unit_test(a_write_after_the_end_is_refused),
		cmocka_unit_test(closing_sends_what_is_queued),
		cmocka_unit_test(closing_with_unread_input_does_not_hurt_the_answer),
		cmocka_unit_test(an_abort_is_seen_as_a_failure),
		cmocka_unit_test(a_reset_is_seen_while_not_reading),
		cmocka_unit_test(a_broken_upload_still_delivers_the_early_answer),
		cmocka_unit_test(an_owner_may_leave_in_any_callback),
		cmocka_unit_test(what_happens_to_nobody_is_told_to_the_next_user),
		cmocka_unit_test(pipes_go_one_way),
		cmocka_unit_test(a_pipe_whose_reader_left_fails),
		cmocka_unit_test(a_terminal_ends_when_its_programs_are_gone),
		cmocka_unit_test(the_loop_cuts_off_those_who_linger),
		cmocka_unit_test(lingering_ends_when_nothing_moves),
		cmocka_unit_test(a_descriptor_that_cannot_be_a_stream_is_closed),
		cmocka_unit_test(an_idle_stream_is_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
