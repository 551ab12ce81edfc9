/* test_gateway_crowd.c - more clients than connections: who waits gives way, what rests gives way
 * after a while, and relayed requests leave a reserve to the others.
 */
#include "tests/unit/gateway_world.h"

#include "gateway/relay/crowd.h"

enum { MAX = 64, RESERVE = MAX / CROWD_RESERVE, MANY = 2 * MAX };

#define SILENT_HEAD "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

static const struct script silent = { BYTES_LIT(SILENT_HEAD) };

static void grow_old(struct relay *r)
{
	r->moved_ms -= RELAY_REST_MS;
}

/* They rested without any limit, and took every connection there was. */
static void relayed_requests_leave_a_reserve(void **state)
{
	struct world w;
	struct ear first;

	(void)state;
	world_open(&w);
	w.script = &silent;
	w.g.relays.max = 1;
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, "chunked"));
	assert_int_equal(w.g.relays.n, 1);
	first = w.client;
	stream_set_user(first.s, &first.user);
	w.client = (struct ear){ 0 };
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, " 503 "));
	assert_true(heard(&w.client, "connections_max"));
	grow_old(w.g.relays.oldest);
	ask(&w, "GET", "/", "");
	stream_read(first.s, true);
	RUN_UNTIL(w.l, parted(&first) && heard(&w.client, "chunked"));
	assert_int_equal(w.g.relays.n, 1);
	ear_done(&first);
	world_close(&w);
}

static void what_moves_is_the_last_to_give_way(void **state)
{
	struct world w;
	struct ear first;
	struct relay *r;

	(void)state;
	world_open(&w);
	w.script = &silent;
	w.g.relays.max = 2;
	ask(&w, "POST", "/", "transfer-encoding: chunked\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "chunked"));
	r = w.g.relays.oldest;
	first = w.client;
	stream_set_user(first.s, &first.user);
	w.client = (struct ear){ 0 };
	ask(&w, "GET", "/", "");
	RUN_UNTIL(w.l, heard(&w.client, "chunked"));
	assert_ptr_equal(w.g.relays.oldest, r);
	(void)!stream_write(first.s, BYTES_LIT("1\r\nx\r\n"), &(struct err){ 0 });
	RUN_UNTIL(w.l, w.g.relays.newest == r);
	assert_ptr_not_equal(w.g.relays.oldest, r);
	assert_false(relays_shed(&w.g)); /* neither has rested long */
	ear_done(&first);
	world_close(&w);
}

/* --- the door ----------------------------------------------------------------------------------
 */

struct street {
	struct loop *l;
	struct gateway g;
	struct service sv;
	struct listener door;
	struct crowd crowd;
	struct ear client[MANY];
	size_t n;
};

static void on_accept(struct listener *ln, struct stream *s, const struct addr *peer)
{
	struct street *st = CONTAINER_OF(ln, struct street, door);

	(void)peer;
	crowd_look(&st->crowd);
	service_add(&st->sv, s);
}

static void on_surplus(struct listener *ln, struct stream *s, const struct addr *peer)
{
	(void)peer;
	crowd_refuse(&CONTAINER_OF(ln, struct street, door)->crowd, s);
}

static void street_open(struct street *st, size_t of_address)
{
	static const struct listener_ops ops = { on_accept, on_surplus };
	const struct http_limits lim = HTTP_LIMITS;
	struct err err = { 0 };
	struct addr at;

	*st = (struct street){ .l = test_loop(), .crowd = { .connections_max = MAX } };
	st->g.loop = st->l;
	service_open(&st->sv, st->l, &lim);
	if (addr_ip("127.0.0.1", 0, &at, &err) < 0 ||
	    listener_open(&st->door, st->l, &ops, &at, 0, MAX, &err) < 0 ||
	    listener_limit_address(&st->door, of_address, false, &err) < 0)
		fail_msg("%s", err.msg);
	crowd_open(&st->crowd, &st->g, &st->door, &st->sv.http);
	assert_int_equal(st->g.relays.max, MAX - RESERVE);
}

static void street_close(struct street *st)
{
	crowd_close(&st->crowd);
	listener_close(&st->door);
	for (size_t i = 0; i < st->n; i++)
		ear_done(&st->client[i]);
	service_close(&st->sv);
	loop_free(st->l);
}

static struct ear *street_ask(struct street *st, const char *target)
{
	struct ear *e = &st->client[st->n++];
	struct err err = { 0 };
	struct addr at;
	char text[128];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	listener_addr(&st->door, &at);
	assert_int_equal(connect(fd, (struct sockaddr *)&at.at, at.len), 0);
	ear_init(e, test_stream(st->l, fd));
	stream_read(e->s, true);
	(void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nhost: x\r\n\r\n", target);
	assert_int_equal(stream_write(e->s, bytes_str(text), &err), 0);
	return e;
}

/* The next client had no answer until one of those before it went away. */
static void idle_connections_give_way_to_newcomers(void **state)
{
	static struct street st;

	(void)state;
	street_open(&st, 0);
	for (size_t i = 0; i < MANY; i++) {
		struct ear *e = street_ask(&st, "/hello");

		RUN_UNTIL(st.l, heard(e, "hello"));
	}
	assert_true(listener_alive(&st.door) <= MAX);
	RUN_UNTIL(st.l, parted(&st.client[0])); /* the first of them, and none of the last */
	for (size_t i = MANY - MAX / 2; i < MANY; i++)
		assert_false(parted(&st.client[i]));
	street_close(&st);
}

static void a_connection_that_becomes_idle_gives_way_to_one_outside(void **state)
{
	static struct street st;
	struct ear *late;

	(void)state;
	street_open(&st, 0);
	for (size_t i = 0; i < MAX; i++)
		(void)street_ask(&st, "/hold");
	RUN_UNTIL(st.l, st.sv.requests == MAX);
	late = street_ask(&st, "/hello"); /* waits in the kernel */
	job_answer_text(st.sv.jobs, "done");
	RUN_UNTIL(st.l, heard(late, "hello"));
	while (st.sv.jobs)
		job_answer_text(st.sv.jobs, "done");
	street_close(&st);
}

static void one_address_has_a_share(void **state)
{
	enum { SHARE = 4 };
	static struct street st;
	struct ear *e;

	(void)state;
	street_open(&st, SHARE);
	for (size_t i = 0; i < SHARE; i++) {
		e = street_ask(&st, "/hello");
		RUN_UNTIL(st.l, heard(e, "hello"));
	}
	e = street_ask(&st, "/hello");
	RUN_UNTIL(st.l, e->ends == 1);
	assert_true(heard(e, " 429 ") && heard(e, "address_connections_max"));
	stream_close(TAKE(st.client[0].s));
	stream_close(TAKE(e->s));
	RUN_UNTIL(st.l, listener_alive(&st.door) == SHARE - 1);
	e = street_ask(&st, "/hello");
	RUN_UNTIL(st.l, heard(e, "hello"));
	street_close(&st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relayed_requests_leave_a_reserve),
		cmocka_unit_test(what_moves_is_the_last_to_give_way),
		cmocka_unit_test(idle_connections_give_way_to_newcomers),
		cmocka_unit_test(a_connection_that_becomes_idle_gives_way_to_one_outside),
		cmocka_unit_test(one_address_has_a_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
