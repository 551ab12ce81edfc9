/* test_gateway_node_link.c - the client of node's socket, against a node made here and the real
 * door.
 */
#include "tests/unit/link_scene.h"

#include <sys/resource.h>

#include "gateway/node_reply.h"
#include "node/door/gateway_door.h"

static size_t open_count(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void replies_find_their_requests_in_any_order(void **state)
{
	struct node_request rq;
	uint64_t tags[3];

	(void)state;
	scene_open_with_node();
	for (size_t i = 0; i < 3; i++)
		ask(i, NODE_GET);
	for (size_t i = 0; i < 3; i++) {
		tags[i] = hear(&rq);
		assert_int_equal(rq.id[3], (int)('0' + i));
	}
	reply_with(&(struct node_reply){ .tag = tags[2], .sandbox = { .id = "two" } },
		   BYTES_LIT("{\"a\":1}"), NULL, 0);
	reply(&(struct node_reply){ .tag = tags[0] });
	reply(&(struct node_reply){ .tag = tags[1], .code = ERR_NOT_FOUND, .msg = "no such" });
	run_until(&s.n_done, 3);
	assert_int_equal(s.calls[2].order, 1);
	assert_string_equal(s.calls[2].reply.sandbox.id, "two");
	assert_string_equal(s.calls[2].after, "{\"a\":1}");
	assert_int_equal(s.calls[0].order, 2);
	assert_int_equal(s.calls[1].err.code, ERR_NOT_FOUND);
	assert_string_equal(s.calls[1].err.msg, "no such");
	scene_end();
}

static void requests_made_before_node_is_there_wait_for_it(void **state)
{
	struct node_request rq;

	(void)state;
	scene_open();
	ask(0, NODE_CREATE);
	ask(1, NODE_GET);
	assert_true(loop_turn(s.loop)); /* tried in vain */
	assert_int_equal(s.n_up, 0);
	node_starts();
	node_accepts();
	reply(&(struct node_reply){ .tag = hear(&rq) });
	assert_int_equal(rq.verb, NODE_CREATE);
	reply(&(struct node_reply){ .tag = hear(&rq) });
	run_until(&s.n_done, 2);
	assert_int_equal(s.calls[0].err.code, ERR_NONE);
	assert_int_equal(s.calls[1].err.code, ERR_NONE);
	assert_int_equal(s.n_up, 1);
	assert_int_equal(s.n_down, 0);
	scene_end();
}

/* Its last connection ended: it fails with the next. */
static void send_in_vain(size_t n_calls)
{
	struct node_request rq;

	for (size_t i = 0; i + 1 < NODE_SENDS_MAX; i++) {
		if (i > 0)
			node_accepts();
		for (size_t k = 0; k < n_calls; k++)
			hear(&rq);
		close(take_fd(&s.peer));
	}
	node_accepts();
	for (size_t k = 0; k < n_calls; k++)
		hear(&rq);
}

/* A request that node dies of is not sent for ever. */
static void a_request_is_sent_so_many_times_only(void **state)
{
	struct node_request rq;

	(void)state;
	scene_open_with_node();
	ask(0, NODE_GET);
	for (size_t i = 0; i < NODE_SENDS_MAX; i++) {
		if (i > 0)
			node_accepts();
		hear(&rq);
		close(take_fd(&s.peer));
	}
	run_until(&s.n_done, 1);
	assert_int_equal(s.calls[0].err.code, ERR_UNAVAILABLE);
	node_accepts();
	assert_int_equal(s.n_down, NODE_SENDS_MAX);
	scene_end();
}

static void deadlines_hold_with_and_without_node(void **state)
{
	struct node_request rq;

	(void)state;
	scene_open();
	ask_ms(0, NODE_GET, 30);
	run_until(&s.n_done, 1); /* nobody there, its time is over */
	assert_int_equal(s.calls[0].err.code, ERR_TIMEOUT);
	node_starts();
	node_accepts();
	ask_ms(1, NODE_GET, 30);
	run_until(&s.n_done, 2); /* heard, not answered */
	assert_int_equal(s.calls[1].err.code, ERR_TIMEOUT);
	reply(&(struct node_reply){ .tag = hear(&rq) }); /* too late: nobody's */
	ask(2, NODE_GET);
	reply(&(struct node_reply){ .tag = hear(&rq) });
	run_until(&s.n_done, 3);
	assert_int_equal(s.calls[2].err.code, ERR_NONE);
	scene_end();
}

static void node_that_does_not_come_back_is_waited_for_so_long(void **state)
{
	uint64_t before;

	(void)state;
	scene_open();
	before = loop_now_ms(s.loop);
	ask(0, NODE_GET);
	run_until(&s.n_done, 1);
	assert_int_equal(s.calls[0].err.code, ERR_UNAVAILABLE);
	assert_true(loop_now_ms(s.loop) - before >= NODE_LINK_WAIT_MS);
	assert_true(loop_now_ms(s.loop) - before < MS);
	scene_end();
}

static void events_are_told(void **state)
{
	(void)state;
	scene_open_with_node();
	reply(&(struct node_reply){ .event = NODE_GONE,
				    .sandbox = { .id = "sandbox", .generation = 5 } });
	reply(&(struct node_reply){ .event = 77 }); /* of a later version */
	reply(&(struct node_reply){ .event = NODE_GONE,
				    .sandbox = { .id = "sandbox", .generation = 6 } });
	run_until(&s.n_gone, 2);
	assert_int_equal(s.generation, 6);
	scene_end();
}

static void descriptors_are_the_callees_or_closed(void **state)
{
	struct node_request rq;
	int pipes[2];
	size_t before;
	char byte = 0;

	(void)state;
	scene_open_with_node();
	before = open_count();
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	ask(0, NODE_SOCKETS);
	reply_with(&(struct node_reply){ .tag = hear(&rq), .count = 2 }, (struct bytes){ 0 }, pipes,
		   2);
	ask(1, NODE_SOCKETS); /* descriptors with an error, and for nobody */
	reply_with(&(struct node_reply){ .tag = hear(&rq), .code = ERR_INTERNAL, .msg = "no" },
		   (struct bytes){ 0 }, pipes, 2);
	ask(3, NODE_SOCKETS);
	link_cancel(&s.calls[3].call);
	reply_with(&(struct node_reply){ .tag = hear(&rq) }, (struct bytes){ 0 }, pipes, 2);
	reply_with(&(struct node_reply){ .tag = 0, .event = 9 }, (struct bytes){ 0 }, pipes, 2);
	ask(2, NODE_GET);
	reply(&(struct node_reply){ .tag = hear(&rq) });
	close(pipes[0]);
	close(pipes[1]);
	run_until(&s.n_done, 3);
	assert_int_equal(s.calls[0].n_fds, 2);
	assert_int_equal(fcntl(s.calls[0].fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(read(s.calls[0].fd, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(take_fd(&s.calls[0].fd));
	assert_int_equal(s.calls[1].n_fds, 0);
	assert_int_equal(open_count(), before);
	scene_end();
}

static void without_room_for_descriptors_one_call_fails(void **state)
{
	const int given[2] = { 0, 0 };
	struct rlimit before, tight;
	struct node_request rq;
	int highest;

	(void)state;
	scene_open_with_node();
	ask(0, NODE_SOCKETS);
	reply_with(&(struct node_reply){ .tag = hear(&rq), .count = 2 }, (struct bytes){ 0 }, given,
		   2);
	highest = dup(0);
	close(highest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	tight = before;
	tight.rlim_cur = (rlim_t)highest + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	run_until(&s.n_done, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(s.calls[0].err.code, ERR_EXHAUSTED);
	ask(1, NODE_GET);
	reply(&(struct node_reply){ .tag = hear(&rq) });
	run_until(&s.n_done, 2);
	assert_int_equal(s.calls[1].err.code, ERR_NONE);
	assert_int_equal(s.n_down, 0);
	scene_end();
}

static void nonsense_ends_the_connection_only(void **state)
{
	struct node_reply long_id = { .tag = 1 }, bad_code = { .tag = 1, .code = ERR_CODES };
	struct node_reply bad_len = { .tag = 1, .text_len = 1 };
	const struct {
		const char *name;
		const void *msg;
		size_t len;
	} rows[] = {
		{ "short", "hello", 5 },
		{ "an id without end", &long_id, sizeof(long_id) },
		{ "an unknown code", &bad_code, sizeof(bad_code) },
		{ "a wrong length", &bad_len, sizeof(bad_len) },
	};
	size_t n_up = 0;

	(void)state;
	memset(long_id.sandbox.id, 'x', sizeof(long_id.sandbox.id));
	scene_open();
	node_starts();
	FOR_ROWS(row, rows) {
		node_accepts();
		assert_int_equal(send(s.peer, row->msg, row->len, 0), (int)row->len);
		run_until(&s.n_down, ++n_up);
		close(take_fd(&s.peer));
	}
	scene_end();
}

static void calls_may_be_cancelled_and_made_from_callbacks(void **state)
{
	struct node_request rq;
	uint64_t tag;

	(void)state;
	scene_open_with_node();
	ask(0, NODE_GET);
	ask(1, NODE_GET);
	tag = hear(&rq);
	hear(&rq);
	link_cancel(&s.calls[1].call);
	link_cancel(&s.calls[1].call);
	s.ask_when_done = true;
	reply(&(struct node_reply){ .tag = tag });
	reply(&(struct node_reply){ .tag = hear(&rq) });
	assert_int_equal(rq.id[3], '7');
	run_until(&s.n_done, 2);
	assert_int_equal(s.calls[1].done, 0);
	assert_int_equal(s.calls[7].done, 1);
	scene_end();
}

static void it_may_be_closed_from_its_callbacks(void **state)
{
	struct node_request rq;

	(void)state;
	scene_open_with_node();
	ask(0, NODE_CREATE);
	ask(1, NODE_CREATE);
	send_in_vain(2);
	s.close_when_done = true; /* from the failure of the first */
	node_dies();
	run_until(&s.n_done, 1);
	assert_null(s.link);
	scene_end();

	scene_open_with_node();
	ask(0, NODE_CREATE);
	send_in_vain(1);
	s.close_when_down = true;
	node_dies();
	run_until(&s.n_down, NODE_SENDS_MAX);
	assert_int_equal(s.n_done, 1);
	scene_end();

	scene_open_with_node();
	ask(0, NODE_GET);
	s.close_when_done = true;
	reply(&(struct node_reply){ .tag = hear(&rq) });
	run_until(&s.n_done, 1);
	scene_end();
}

/* It is a setting: said at start, not again and again. */
static void a_path_too_long_is_an_error(void **state)
{
	char path[256];
	struct node_link *link = NULL;
	struct err err;

	(void)state;
	scene_open();
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(node_link_open(s.loop, path, &s.user, &link, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_null(link);
	scene_end();
}

static void limits_are_errors(void **state)
{
	static struct link_call many[NODE_CALLS_MAX + 1];
	static uint8_t text[NODE_TEXT_MAX + 1];
	const struct node_request rq = { .verb = NODE_STATUS };
	struct err err;

	(void)state;
	scene_open();
	assert_int_equal(node_link_call(s.link, &many[0], &rq, (struct bytes){ text, sizeof(text) },
					MS, on_done, &err),
			 -1);
	assert_int_equal(err.code, ERR_INVALID);
	for (size_t i = 0; i < NODE_CALLS_MAX; i++)
		assert_int_equal(node_link_call(s.link, &many[i], &rq, (struct bytes){ 0 }, MS,
						on_done, &err),
				 0);
	assert_int_equal(node_link_call(s.link, &many[NODE_CALLS_MAX], &rq, (struct bytes){ 0 }, MS,
					on_done, &err),
			 -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	scene_end();
}

/* Node reads slowly: nothing is lost, everything arrives in order. */
static void more_than_the_socket_holds_waits_its_turn(void **state)
{
	enum { N = 8000 };
	static struct called many[N];
	const struct node_request rq = { .verb = NODE_CREATE };
	struct err err;

	(void)state;
	scene_open_with_node();
	memset(many, 0, sizeof(many));
	for (size_t i = 0; i < N; i++) {
		many[i].fd = -1;
		assert_int_equal(node_link_call(s.link, &many[i].call, &rq, BYTES_LIT("{}"), MS,
						on_done, &err),
				 0);
	}
	for (size_t i = 0; i < N; i++) {
		struct node_request in;

		assert_int_equal(hear(&in), i + 1);
		reply(&(struct node_reply){ .tag = in.tag });
		run_until(&s.n_done, i + 1);
		assert_int_equal(many[i].done, 1);
	}
	scene_end();
}

static void on_request(struct door_user *u, struct door_asked *a, const struct node_request *rq,
		       struct bytes text)
{
	static const uint8_t big[NODE_MESSAGE_MAX - sizeof(struct node_reply)];
	struct err err;
	int fd;

	(void)u;
	if (rq->verb == NODE_SOCKETS) {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		door_answer(a, &(struct node_reply){ .count = 1 }, text, &fd, 1);
	} else if (rq->verb == NODE_LIST) {
		door_answer(a, &(struct node_reply){ .count = 1 },
			    (struct bytes){ big, sizeof(big) }, NULL, 0);
	} else {
		err_set(&err, ERR_NOT_FOUND, 0, "no %s", rq->id);
		door_refuse(a, &err);
	}
}

static void on_list(struct link_call *c, const struct link_reply *r)
{
	const struct err *err = r->err;
	const struct node_reply *reply = node_reply_of(r);
	(void)c;
	assert_null(err);
	assert_int_equal(r->n_fds, 0);
	assert_int_equal(reply->count, 1);
	assert_int_equal(r->after.len,
			 NODE_MESSAGE_MAX - sizeof(*reply)); /* the largest there is */
	s.n_done++;
}

static void it_gets_on_with_the_real_door(void **state)
{
	static const struct door_user_ops ops = { on_request };
	struct door_user user = { &ops };
	struct node_request rq = { .verb = NODE_LIST };
	struct gateway_door *door;
	struct link_call list = { 0 };
	struct err err;

	(void)state;
	scene_open();
	for (size_t round = 1; round <= 2; round++) { /* and with one that was started again */
		size_t n_done = s.n_done;

		assert_int_equal(
			door_open(s.loop, s.path, geteuid(), getegid(), &user, &door, &err), 0);
		run_until(&s.n_up, round);
		rq.verb = NODE_SOCKETS;
		rq.count = 1;
		memcpy(rq.id, "abc", 4);
		for (size_t i = 0; i < 2; i++)
			s.calls[i] = (struct called){ .fd = -1 };
		assert_int_equal(node_link_call(s.link, &s.calls[0].call, &rq, BYTES_LIT("{}"), MS,
						on_done, &err),
				 0);
		ask(1, NODE_KILL);
		run_until(&s.n_done, n_done + 2);
		assert_true(s.calls[0].fd >= 0);
		close(take_fd(&s.calls[0].fd));
		assert_int_equal(s.calls[1].err.code, ERR_NOT_FOUND);
		assert_string_equal(s.calls[1].err.msg, "no id-1");
		rq = (struct node_request){ .verb = NODE_LIST };
		assert_int_equal(
			node_link_call(s.link, &list, &rq, (struct bytes){ 0 }, MS, on_list, &err),
			0);
		run_until(&s.n_done, n_done + 3);
		door_tell_gone(door, "sandbox", (uint32_t)round);
		run_until(&s.n_gone, round);
		assert_int_equal(s.generation, round);
		door_close(door);
		run_until(&s.n_down, round);
	}
	scene_end();
}

static void entries_are_taken_one_by_one(void **state)
{
	struct {
		struct node_entry a;
		char a_text[3];
		uint8_t b[sizeof(struct node_entry)];
	} __attribute__((packed)) in = { .a = { .sandbox = { .id = "one" }, .text_len = 3 },
					 .a_text = "abc" };
	struct node_entry b = { .sandbox = { .id = "two" } };
	struct bytes after = { (const uint8_t *)&in, sizeof(in) }, text;
	struct node_sandbox box;

	(void)state;
	memcpy(in.b, &b, sizeof(b));
	assert_true(node_entry_next(&after, &box, &text));
	assert_string_equal(box.id, "one");
	assert_true(bytes_eq(text, BYTES_LIT("abc")));
	assert_true(node_entry_next(&after, &box, &text));
	assert_string_equal(box.id, "two");
	assert_int_equal(text.len, 0);
	assert_false(node_entry_next(&after, &box, &text));
	b.text_len = 1; /* more than there is */
	after = (struct bytes){ (const uint8_t *)&b, sizeof(b) };
	assert_false(node_entry_next(&after, &box, &text));
	b.text_len = 0;
	memset(b.sandbox.alias, 'x', sizeof(b.sandbox.alias));
	assert_false(node_entry_next(&after, &box, &text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_find_their_requests_in_any_order),
		cmocka_unit_test(requests_made_before_node_is_there_wait_for_it),
		cmocka_unit_test(a_request_is_sent_so_many_times_only),
		cmocka_unit_test(deadlines_hold_with_and_without_node),
		cmocka_unit_test(node_that_does_not_come_back_is_waited_for_so_long),
		cmocka_unit_test(events_are_told),
		cmocka_unit_test(descriptors_are_the_callees_or_closed),
		cmocka_unit_test(without_room_for_descriptors_one_call_fails),
		cmocka_unit_test(nonsense_ends_the_connection_only),
		cmocka_unit_test(calls_may_be_cancelled_and_made_from_callbacks),
		cmocka_unit_test(it_may_be_closed_from_its_callbacks),
		cmocka_unit_test(a_path_too_long_is_an_error),
		cmocka_unit_test(limits_are_errors),
		cmocka_unit_test(more_than_the_socket_holds_waits_its_turn),
		cmocka_unit_test(it_gets_on_with_the_real_door),
		cmocka_unit_test(entries_are_taken_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
