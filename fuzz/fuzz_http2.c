/* fuzz_http2.c - promises of an HTTP/2 connection of a server. The input is a script: bytes and
 * frames of a client, what the handlers of its requests do meanwhile, and times that are over.
 *
 * Whatever they do: nobody aborts; a handler is told of the end of its request exactly once; what
 * is held is counted and bounded, and all of it is let go; what the client hears are frames, of
 * which the first is SETTINGS.
 */
#include "fuzz/script.h"

#include "http/h2_conn.h"
#include "http/server.h"
#include "net/fd_stream.h"

enum { JOBS_MAX = 128, STEPS_MAX = 300, HEARD_FRAME_MAX = 16384 };

struct job {
	struct http_handler handler;
	struct http_request *rq; /* NULL: free */
	bool started;
};

static struct {
	struct loop *l;
	struct http_server http;
	int client; /* -1: gone */
	struct job job[JOBS_MAX];
	struct stream *tunnel;
	struct stream_user tunnel_user;
	struct h2_cut heard;
	size_t frames;
	uint8_t mood; /* of handlers */
} w;

/* --- handlers -------------------------------------------------------------------------------- */

static void on_body(struct http_handler *h, struct bytes piece)
{
	struct job *j = CONTAINER_OF(h, struct job, handler);

	MUST(j->rq && j->started && piece.len > 0);
	if (w.mood & 1)
		http_body_pause(j->rq, true);
	if (w.mood & 2) {
		http_abort(j->rq);
		j->rq = NULL;
	}
}

static void on_body_end(struct http_handler *h)
{
	struct job *j = CONTAINER_OF(h, struct job, handler);

	MUST(j->rq && j->started);
	if (w.mood & 4) {
		http_answer(j->rq, &(struct http_response){ .status = 200 }, BYTES_LIT("done"));
		j->rq = NULL;
	}
}

static void on_drain(struct http_handler *h)
{
	MUST(CONTAINER_OF(h, struct job, handler)->rq);
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	struct job *j = CONTAINER_OF(h, struct job, handler);

	must_say_why(err);
	MUST(j->rq);
	j->rq = NULL;
}

static void on_request(struct http_server *sv, struct http_request *rq)
{
	static const struct http_handler_ops ops = { on_body, on_body_end, on_drain, on_gone };
	const struct http1_head *head = http_request_head(rq);
	struct bytes value;

	(void)sv;
	MUST(http1_find(head, "host", &value) == 1 && head->method.len > 0);
	if (w.mood & 8) {
		http_answer(rq, &(struct http_response){ .status = 200 }, BYTES_LIT("hello"));
		return;
	}
	for (size_t i = 0; i < JOBS_MAX; i++)
		if (!w.job[i].rq) {
			w.job[i] = (struct job){ .handler = { &ops }, .rq = rq };
			http_request_take(rq, &w.job[i].handler);
			return;
		}
}

/* --- a tunnel -------------------------------------------------------------------------------- */

static void on_tunnel_data(struct stream_user *u, struct bytes in)
{
	struct err err;

	(void)u;
	MUST(in.len > 0 && w.tunnel);
	(void)!stream_write(w.tunnel, in, &err);
}

static void on_tunnel_end(struct stream_user *u)
{
	(void)u;
	MUST(w.tunnel);
	stream_close(TAKE(w.tunnel));
}

static void on_tunnel_fail(struct stream_user *u, const struct err *err)
{
	(void)u;
	must_say_why(err);
	MUST(w.tunnel);
	stream_abort(TAKE(w.tunnel));
}

static void take_over(struct job *j)
{
	static const struct stream_user_ops ops = { on_tunnel_data, on_tunnel_end, NULL,
						    on_tunnel_fail };
	struct buf early;
	struct err err;

	if (w.tunnel ||
	    http_upgrade(j->rq, &(struct http_response){ 0 }, &w.tunnel, &early, &err) < 0)
		return;
	j->rq = NULL;
	buf_done(&early);
	w.tunnel_user.ops = &ops;
	stream_set_user(w.tunnel, &w.tunnel_user);
	stream_read(w.tunnel, true);
}

static void tunnel_step(uint8_t how)
{
	static const uint8_t block[40000];
	struct err err;

	if (!w.tunnel)
		return;
	if (how & 1)
		(void)!stream_write(w.tunnel, (struct bytes){ block, sizeof(block) }, &err);
	if (how & 2)
		stream_shut(w.tunnel);
	if (how & 4)
		stream_read(w.tunnel, how & 8);
	if (how & 16)
		stream_close(TAKE(w.tunnel));
	else if (how & 32)
		stream_abort(TAKE(w.tunnel));
}

/* --- steps ----------------------------------------------------------------------------------- */

static void respond(struct job *j, uint8_t how)
{
	static const int64_t lengths[] = { HTTP_CHUNKED, 0, 5, 100000 };
	const struct http_response r = { .status = how & 8 ? 404 : 200,
					 .length = lengths[how & 3] };
	struct err err;

	if (http_responded(j->rq) || http_respond(j->rq, &r, &err) < 0)
		return;
	MUST(http_responded(j->rq));
}

static void send_some(struct job *j, uint8_t how)
{
	static const uint8_t block[64 * 255];
	struct err err;

	if (http_responded(j->rq) && http_queued(j->rq) <= STREAM_LOW_WATER)
		(void)!http_send(j->rq, (struct bytes){ block, (size_t)how * 64 }, &err);
}

static void job_step(struct bytes *in)
{
	struct job *j = &w.job[script_byte(in) % JOBS_MAX];
	uint8_t what = script_byte(in), how = script_byte(in);

	if (!j->rq)
		return;
	switch (what % 8) {
	case 0:
		respond(j, how);
		break;
	case 1:
		send_some(j, how);
		break;
	case 2:
		http_finish(TAKE(j->rq));
		break;
	case 3:
		http_fail(TAKE(j->rq), 500, "asked to");
		break;
	case 4:
		j->started = true;
		http_body_start(j->rq, how & 1 ? 100 : UINT64_MAX);
		break;
	case 5:
		http_body_pause(j->rq, how & 1);
		break;
	case 6:
		take_over(j);
		break;
	default:
		http_request_rests(j->rq);
		break;
	}
}

static void say_frame(struct bytes *in)
{
	uint8_t type = script_byte(in), flags = script_byte(in), id = script_byte(in);
	struct bytes payload = script_said(in, id & 128);
	const uint8_t head[H2_FRAME_HEAD] = { (uint8_t)(payload.len >> 16),
					      (uint8_t)(payload.len >> 8),
					      (uint8_t)payload.len,
					      type,
					      flags,
					      0,
					      0,
					      0,
					      id & 127 };

	script_put(w.client, (struct bytes){ head, sizeof(head) });
	script_put(w.client, payload);
}

static void fire_times(uint8_t how)
{
	struct http_conn *conn = w.http.conns;
	struct h2_conn *c;

	if (!conn || w.http.counts[HTTP_2].connections == 0)
		return;
	c = CONTAINER_OF(conn, struct h2_conn, conn);
	if (how & 1)
		script_fire(&c->input);
	if (how & 2)
		script_fire(&c->output);
	if (how & 4)
		script_fire(&c->bye);
	for (struct h2_request *rq = c->requests; rq; rq = rq->next) {
		if (how & 8)
			script_fire(&rq->input);
		if (how & 16)
			script_fire(&rq->output);
	}
}

static void hear(size_t max)
{
	struct bytes in = script_take(w.client, max), slice;
	struct h2_frame f;

	while (in.len > 0) {
		w.heard.preface = H2_PREFACE_LEN;
		if (!h2_cut_next(&w.heard, &in, &slice, &f))
			continue;
		MUST(f.len <= HEARD_FRAME_MAX);
		MUST(w.frames > 0 || (f.type == NGHTTP2_SETTINGS && f.flags == 0));
		MUST(f.type != NGHTTP2_PUSH_PROMISE && f.type <= NGHTTP2_CONTINUATION);
		w.frames++;
	}
}

static void step(struct bytes *in)
{
	uint8_t what = script_byte(in);

	switch (what % 10) {
	case 0:
		script_put(w.client, script_said(in, false));
		break;
	case 1:
	case 2:
		say_frame(in);
		break;
	case 3:
		job_step(in);
		break;
	case 4:
		script_turn(w.l, 1 + what / 64);
		break;
	case 5:
		hear((size_t)script_byte(in) * 256);
		break;
	case 6:
		w.mood = script_byte(in);
		break;
	case 7:
		tunnel_step(script_byte(in));
		break;
	case 8:
		fire_times(script_byte(in));
		break;
	default:
		if (what & 128)
			http_server_drain(&w.http);
		else if (what & 64)
			script_end(&w.client, script_byte(in));
		break;
	}
	MUST(w.http.h2.held <= H2_HELD_MAX && w.http.h2.out_held <= H2_OUT_MAX + STREAM_QUEUE_MAX);
	MUST(w.http.h2.wide <= 1 && w.http.n_conns <= 1);
}

static void begin(uint8_t how)
{
	static const struct http_server_ops ops = { on_request };
	struct stream *s;
	struct err err;
	int fd[2];

	memset(&w, 0, sizeof(w));
	MUST(loop_open(&w.l, &err) == 0);
	http_server_init(&w.http, w.l, &ops, &HTTP_LIMITS);
	http_server_speak_h2(&w.http);
	script_pair(SOCK_STREAM, fd);
	w.client = fd[0];
	MUST(fd_stream_open(w.l, fd[1], FD_STREAM_BOTH, &s, &err) == 0);
	MUST(http_server_add_as(&w.http, s, NULL, HTTP_2, &err) == 0);
	if (how & 1) /* most inputs should get further than the preface */
		return;
	script_put(w.client, BYTES_LIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"));
	script_turn(w.l, 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };

	begin(script_byte(&in));
	for (int i = 0; i < STEPS_MAX && in.len > 0; i++)
		step(&in);
	script_turn(w.l, 3);
	http_server_done(&w.http);
	for (size_t i = 0; i < JOBS_MAX; i++)
		MUST(!w.job[i].rq);
	MUST(!w.tunnel);
	MUST(w.http.h2.held == 0 && w.http.h2.out_held == 0 && w.http.h2.wide == 0);
	script_drop(&w.client, false);
	script_turn(w.l, 2);
	loop_free(w.l);
	return 0;
}
