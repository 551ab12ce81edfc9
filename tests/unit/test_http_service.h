/* test_http_service.h - for tests of http/: a server whose paths behave well or badly on purpose.
 *
 *	/hello   answers at once             /echo    answers with the body, as it comes
 *	/length  counts the body's bytes     /early   answers without reading the body
 *	/hold    waits for the test          /big     sends BIG_SIZE bytes as fast as they are taken
 *	/short   promises more than it sends /half    begins an answer and aborts
 *	/switch  takes the stream            /forget  does nothing at all
 *	/limit   reads LIMIT_MAX at most     /field   answers with a field that cannot be sent
 */
#pragma once

#include "tests/unit/test_net_layers.h"

#include "http/server.h"

enum { BIG_SIZE = 16 * 1024 * 1024, LIMIT_MAX = 10, BODY_MAX = 64 * 1024 * 1024 };

struct service {
	struct http_server http;
	struct loop *l;
	struct job *jobs; /* those running, newest first */
	size_t requests, bodies, gone;
	size_t most_queued; /* by any answer, at any time */
	size_t largest;     /* piece of a body */
	struct err why;     /* of the last one gone */
	struct ear taken;   /* after a switch */
	struct buf early;
	bool echo_slowly; /* pause the body while the answer is queued */
};

struct job { /* one request being answered */
	struct http_handler handler;
	struct service *sv;
	struct http_request *rq;
	struct job *next;
	char kind;
	uint64_t seen, left, max;
	bool body_over;
};

static inline bool is_path(struct http_request *rq, const char *path)
{
	return bytes_eq(http_request_head(rq)->target, bytes_str(path));
}

static inline void job_free(struct job *j)
{
	struct job **at = &j->sv->jobs;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	free(j);
}

static inline void job_send(struct job *j, struct bytes piece)
{
	struct err err = { 0 };

	if (http_send(j->rq, piece, &err) < 0)
		fail_msg("%s", err.msg);
	if (http_queued(j->rq) > j->sv->most_queued)
		j->sv->most_queued = http_queued(j->rq);
}

static inline void job_respond(struct job *j, unsigned int status, int64_t length)
{
	struct http_response r = { .status = status, .length = length };
	struct err err = { 0 };

	if (http_respond(j->rq, &r, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void job_answer_text(struct job *j, const char *text)
{
	http_answer(j->rq, &(struct http_response){ .status = 200 }, bytes_str(text));
	job_free(j);
}

static inline void job_push_big(struct job *j)
{
	static const uint8_t block[16 * 1024] = { 'b', 'i', 'g' };

	while (j->left > 0 && http_queued(j->rq) <= STREAM_LOW_WATER) {
		job_send(j, (struct bytes){ block, sizeof(block) });
		j->left -= sizeof(block);
	}
	if (j->left > 0)
		return;
	http_finish(j->rq);
	job_free(j);
}

static inline void job_on_body(struct http_handler *h, struct bytes piece)
{
	struct job *j = CONTAINER_OF(h, struct job, handler);

	assert_true(piece.len > 0);
	j->seen += piece.len;
	assert_true(j->seen <= j->max);
	if (piece.len > j->sv->largest)
		j->sv->largest = piece.len;
	if (j->kind != 'e')
		return;
	job_send(j, piece);
	if (j->sv->echo_slowly && http_queued(j->rq) > STREAM_LOW_WATER)
		http_body_pause(j->rq, true);
}

static inline void job_on_body_end(struct http_handler *h)
{
	struct job *j = CONTAINER_OF(h, struct job, handler);
	char text[32];

	j->sv->bodies++;
	j->body_over = true;
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)j->seen);
	if (j->kind == 'e') {
		http_finish(j->rq);
		job_free(j);
	} else if (j->kind == 'l') {
		job_answer_text(j, text);
	}
}

static inline void job_on_drain(struct http_handler *h)
{
	struct job *j = CONTAINER_OF(h, struct job, handler);

	if (j->kind == 'b')
		job_push_big(j);
	else if (j->kind == 'e')
		http_body_pause(j->rq, false);
}

static inline void job_on_gone(struct http_handler *h, const struct err *err)
{
	struct job *j = CONTAINER_OF(h, struct job, handler);

	j->sv->gone++;
	j->sv->why = *err;
	job_free(j);
}

static inline struct job *job_take(struct service *sv, struct http_request *rq, char kind)
{
	static const struct http_handler_ops ops = { job_on_body, job_on_body_end, job_on_drain,
						     job_on_gone };
	struct job *j = calloc(1, sizeof(*j));

	assert_non_null(j);
	*j = (struct job){ .handler = { &ops }, .sv = sv, .rq = rq, .kind = kind };
	j->max = is_path(rq, "/limit") ? LIMIT_MAX : BODY_MAX;
	j->next = sv->jobs;
	sv->jobs = j;
	http_request_take(rq, &j->handler);
	return j;
}

static inline void serve_switch(struct service *sv, struct http_request *rq)
{
	struct err err = { 0 };
	struct stream *s;

	if (http_upgrade(rq, &(struct http_response){ 0 }, &s, &sv->early, &err) < 0) {
		http_fail(rq, 400, err.msg);
		return;
	}
	ear_init(&sv->taken, s);
	stream_read(s, true);
}

static inline void serve_badly(struct service *sv, struct http_request *rq)
{
	static const struct http1_field bad = { BYTES_LIT("x-bad"), BYTES_LIT("a\r\nb: c") };
	struct job *j;

	if (is_path(rq, "/field")) {
		http_answer(rq, &(struct http_response){ 200, &bad, 1, 0 }, BYTES_LIT("x"));
	} else if (is_path(rq, "/short") || is_path(rq, "/half")) {
		j = job_take(sv, rq, 's');
		job_respond(j, 200, 10);
		job_send(j, BYTES_LIT("12345"));
		if (is_path(rq, "/short"))
			http_finish(rq);
		else
			http_abort(rq);
		job_free(j);
	} else if (!is_path(rq, "/forget")) {
		http_fail(rq, 404, "no such \"path\"");
	}
}

static inline void service_on_request(struct http_server *http, struct http_request *rq)
{
	struct service *sv = CONTAINER_OF(http, struct service, http);
	struct job *j;

	sv->requests++;
	if (is_path(rq, "/hello") || is_path(rq, "/early")) {
		http_answer(rq, &(struct http_response){ .status = 200 }, BYTES_LIT("hello"));
	} else if (is_path(rq, "/echo")) {
		j = job_take(sv, rq, 'e');
		job_respond(j, 200, HTTP_CHUNKED);
		http_body_start(rq, BODY_MAX);
	} else if (is_path(rq, "/length") || is_path(rq, "/limit")) {
		j = job_take(sv, rq, 'l');
		http_body_start(rq, j->max);
	} else if (is_path(rq, "/hold")) {
		(void)job_take(sv, rq, 'h');
	} else if (is_path(rq, "/big")) {
		j = job_take(sv, rq, 'b');
		j->left = BIG_SIZE;
		job_respond(j, 200, BIG_SIZE);
		job_push_big(j);
	} else if (is_path(rq, "/switch")) {
		serve_switch(sv, rq);
	} else {
		serve_badly(sv, rq);
	}
}

static inline void service_open(struct service *sv, struct loop *l, const struct http_limits *lim)
{
	static const struct http_server_ops ops = { service_on_request };

	*sv = (struct service){ .l = l };
	http_server_init(&sv->http, l, &ops, lim);
}

static inline void service_add(struct service *sv, struct stream *s)
{
	struct err err = { 0 };

	if (http_server_add(&sv->http, s, NULL, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void service_close(struct service *sv)
{
	http_server_done(&sv->http);
	assert_null(sv->jobs);
	if (sv->taken.s)
		ear_done(&sv->taken);
	buf_done(&sv->early);
}
