/* vm_mock_agent.h - an agent made of answers: raw bytes per path, so that they may be wrong. */
#pragma once

#include "tests/unit/check.h"

#include "base/clock.h"
#include "net/addr.h"
#include "net/listen.h"
#include "net/timer.h"

enum { MOCK_CONNS = 8, MOCK_REQUEST_MAX = 256 * 1024, MOCK_LOG = 32 };

struct mock_agent;
struct mock_route {
	const char *request; /* how it begins: "GET /health" */
	const char *answer;  /* bytes; NULL: of mock_clock_answer() */
	size_t answer_len;   /* 0: a string */
	uint64_t delay_ms;   /* before it */
	size_t delay_first;  /* only before the first so many of them; 0: all */
	uint64_t then_ms;    /* before those that follow */
	bool hang, close;    /* no answer at all; end after it */
};

struct mock_conn {
	struct mock_agent *agent;
	struct stream *s;
	struct stream_user user;
	struct timer later;
	const struct mock_route *answering;
	struct buf in;
};

struct mock_agent {
	struct loop *loop;
	struct listener door;
	struct addr at;
	const struct mock_route *routes;
	size_t n_routes;
	struct mock_conn conns[MOCK_CONNS];
	char log[MOCK_LOG][64]; /* what was asked, in order */
	size_t n_log, n_conns, n_clock;
	struct buf body, head;      /* of the last request */
	struct buf told, told_head; /* of the last identity */
};

#define MOCK_OK(json)   "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" json
#define MOCK_NO_CONTENT "HTTP/1.1 204 No Content\r\n\r\n"
#define MOCK_LENGTH(n)  "content-length: " n "\r\n\r\n"
#define MOCK_AGENT_ROUTES                                                    \
	{ .request = "GET /health", .answer = MOCK_NO_CONTENT },             \
		{ .request = "GET /control/clock", .answer = NULL },         \
		{ .request = "POST /control/identity", .answer = NULL },     \
	{                                                                    \
		.request = "POST /control/freeze", .answer = MOCK_NO_CONTENT \
	}

static inline void mock_conn_end(struct mock_conn *c)
{
	timer_stop(&c->later);
	if (c->s)
		stream_close(TAKE(c->s));
	buf_done(&c->in);
}

static inline void mock_conn_send(struct mock_conn *c, struct bytes b)
{
	struct err err;

	if (c->s && stream_write(c->s, b, &err) < 0)
		mock_conn_end(c);
}

static inline void mock_clock_answer(struct mock_conn *c)
{
	char json[128], text[300];

	snprintf(json, sizeof(json), "{\"monotonicNs\":\"%llu\",\"realtimeNs\":\"%llu\"}",
		 (unsigned long long)clock_mono_ns(), (unsigned long long)clock_wall_ns());
	snprintf(text, sizeof(text), MOCK_OK("content-length: %zu\r\n\r\n%s"), strlen(json), json);
	mock_conn_send(c, bytes_str(text));
}

static inline void mock_answer(struct timer *t)
{
	struct mock_conn *c = CONTAINER_OF(t, struct mock_conn, later);
	const struct mock_route *r = TAKE(c->answering);

	if (!r->answer)
		mock_clock_answer(c);
	else
		mock_conn_send(c,
			       (struct bytes){ (const uint8_t *)r->answer,
					       r->answer_len ? r->answer_len : strlen(r->answer) });
	if (r->close)
		mock_conn_end(c);
}

/* How long the whole request is, once its head is there. */
static inline size_t mock_request_length(struct bytes in, size_t *ret_head)
{
	const uint8_t *end = memmem(in.ptr, in.len, "\r\n\r\n", 4);
	const uint8_t *field = memmem(in.ptr, in.len, "ontent-length: ", 15);
	struct bytes rest, number;
	uint64_t n = 0;

	if (!end)
		return SIZE_MAX;
	*ret_head = (size_t)(end - in.ptr) + 4;
	if (field && field < end) {
		rest = bytes_tail(in, (size_t)(field - in.ptr) + 15);
		assert_true(bytes_cut(&rest, '\r', &number) && bytes_to_u64(number, &n));
	}
	return *ret_head + (size_t)n;
}

static inline void mock_remember(struct mock_agent *a, struct bytes request, size_t head)
{
	struct bytes rest = request, line;
	struct err err;

	buf_clear(&a->head);
	buf_clear(&a->body);
	assert_int_equal(buf_add(&a->head, bytes_head(request, head), &err), 0);
	assert_int_equal(buf_add(&a->body, bytes_tail(request, head), &err), 0);
	if (bytes_starts(request, BYTES_LIT("POST /control/identity"))) {
		buf_clear(&a->told);
		buf_clear(&a->told_head);
		assert_int_equal(buf_add(&a->told, buf_view(&a->body), &err), 0);
		assert_int_equal(buf_add(&a->told_head, buf_view(&a->head), &err), 0);
	}
	assert_true(bytes_cut(&rest, '\r', &line) && a->n_log < MOCK_LOG);
	snprintf(a->log[a->n_log++], 64, "%.*s", (int)line.len - (int)strlen(" HTTP/1.1"),
		 (const char *)line.ptr);
}

static inline void mock_asked(struct mock_conn *c, struct bytes request, size_t head)
{
	struct mock_agent *a = c->agent;

	mock_remember(a, request, head);
	for (size_t i = 0; i < a->n_routes; i++) {
		const struct mock_route *r = &a->routes[i];
		uint64_t ms = r->delay_ms;

		if (!bytes_starts(request, bytes_str(r->request)))
			continue;
		if (r->hang)
			return;
		a->n_clock += strstr(r->request, "clock") != NULL;
		if (r->delay_first && a->n_clock > r->delay_first)
			ms = r->then_ms;
		c->answering = r;
		timer_start(&c->later, ms);
		return;
	}
	fail_msg("nobody answers %s", a->log[a->n_log - 1]);
}

static inline void mock_conn_data(struct stream_user *u, struct bytes in)
{
	struct mock_conn *c = CONTAINER_OF(u, struct mock_conn, user);
	struct err err;
	size_t head = 0, length;

	assert_int_equal(buf_add(&c->in, in, &err), 0);
	length = mock_request_length(buf_view(&c->in), &head);
	if (c->in.len < length)
		return;
	mock_asked(c, bytes_head(buf_view(&c->in), length), head);
	buf_drop(&c->in, length);
}

static inline void mock_conn_over(struct stream_user *u)
{
	mock_conn_end(CONTAINER_OF(u, struct mock_conn, user));
}

static inline void mock_conn_drain(struct stream_user *u)
{
	(void)u;
}

static inline void mock_conn_fail(struct stream_user *u, const struct err *err)
{
	(void)err;
	mock_conn_over(u);
}

static inline void mock_accept(struct listener *ln, struct stream *s, const struct addr *peer)
{
	static const struct stream_user_ops ops = { mock_conn_data, mock_conn_over, mock_conn_drain,
						    mock_conn_fail };
	struct mock_agent *a = CONTAINER_OF(ln, struct mock_agent, door);
	struct mock_conn *c = &a->conns[a->n_conns++];

	(void)peer;
	assert_true(a->n_conns <= MOCK_CONNS);
	c->agent = a;
	c->s = s;
	c->user.ops = &ops;
	c->in = BUF_MAX(MOCK_REQUEST_MAX);
	timer_init(&c->later, a->loop, mock_answer);
	stream_set_user(s, &c->user);
	stream_read(s, true);
}

static inline void mock_agent_start(struct mock_agent *a, struct loop *l,
				    const struct mock_route *routes, size_t n)
{
	static const struct listener_ops ops = { mock_accept };
	struct err err;

	*a = (struct mock_agent){ .loop = l, .routes = routes, .n_routes = n };
	a->body = a->head = a->told = a->told_head = BUF_MAX(MOCK_REQUEST_MAX);
	assert_int_equal(addr_ip("127.0.0.1", 0, &a->at, &err), 0);
	assert_int_equal(listener_open(&a->door, l, &ops, &a->at, 0, MOCK_CONNS, &err), 0);
	listener_addr(&a->door, &a->at);
}

static inline void mock_agent_end(struct mock_agent *a)
{
	listener_close(&a->door);
	for (size_t i = 0; i < a->n_conns; i++)
		mock_conn_end(&a->conns[i]);
	buf_done(&a->body);
	buf_done(&a->head);
	buf_done(&a->told);
	buf_done(&a->told_head);
}

/* An unconnected socket, as warden gives them. */
static inline int mock_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	return fd;
}
