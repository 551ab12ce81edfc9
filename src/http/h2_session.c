/* h2_session.c - nghttp2: its options, and callbacks that take notes.
 *
 * Only what both 1.52 (Debian 12) and 1.64 (Debian 13) have is used. The callbacks must not call
 * anything that reads or sends, so they tell nobody: see h2_conn.h.
 */
#include "http/h2_session.h"

#include <errno.h>

#include "http/h2_request.h"
#include "http/h2_response.h"

enum {
	RESETS_MAX = 400, /* RST_STREAM received: a burst, and so many each second */
	RESETS_PER_S = 40,
	CONTINUATIONS_MAX = 8,
	SETTINGS_MAX = 32, /* in one frame */
	ACKS_MAX = 512,    /* that wait to be sent, more than a turn of the loop can ask for */
};

/* nghttp2 gives back what it was given; the one place that has to take a void * */
static struct h2_conn *conn_of(void *user)
{
	return user;
}

static struct h2_request *find(const struct h2_conn *c, int32_t id)
{
	return nghttp2_session_get_stream_user_data(c->session, id);
}

static uint64_t now_ms(const struct h2_conn *c)
{
	return loop_now_ms(c->conn.server->loop);
}

static struct bytes of_rcbuf(nghttp2_rcbuf *b)
{
	nghttp2_vec v = nghttp2_rcbuf_get_buf(b);

	return (struct bytes){ v.base, v.len };
}

/* --- what arrives ---------------------------------------------------------------------------- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_conn *c = conn_of(user);
	struct h2_request *rq;

	c->heads = 1;
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	rq = h2_request_new(c, frame->hd.stream_id);
	if (!rq || nghttp2_session_set_stream_user_data(session, rq->id, rq) != 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
		     nghttp2_rcbuf *value, uint8_t flags, void *user)
{
	struct h2_conn *c = conn_of(user);
	struct h2_request *rq = find(c, frame->hd.stream_id);

	(void)session, (void)flags;
	if (!rq || h2_request_field(rq, of_rcbuf(name), of_rcbuf(value)))
		return 0;
	c->gross = true;
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* nghttp2 would leave the field out, and so would we pass on less than was said. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
			     nghttp2_rcbuf *name, nghttp2_rcbuf *value, uint8_t flags, void *user)
{
	struct h2_request *rq = find(conn_of(user), frame->hd.stream_id);

	(void)session, (void)name, (void)value, (void)flags;
	if (rq && rq->bad.code == ERR_NONE)
		err_set(&rq->bad, ERR_INVALID, 0, "malformed field");
	return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
			 size_t len, void *user)
{
	struct h2_conn *c = conn_of(user);

	(void)session, (void)flags;
	c->got.rq = find(c, id);
	c->got.piece = (struct bytes){ data, len };
	return 0;
}

static void note_frame(struct h2_conn *c, const nghttp2_frame *frame)
{
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	struct h2_request *rq;

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		c->heads = 0;
		c->got.rq = find(c, frame->hd.stream_id);
		c->got.head = frame->headers.cat == NGHTTP2_HCAT_REQUEST;
		c->got.end = end;
		break;
	case NGHTTP2_DATA:
		c->got.rq = find(c, frame->hd.stream_id);
		c->got.data = true;
		c->got.end = end;
		break;
	case NGHTTP2_RST_STREAM:
		rq = find(c, frame->hd.stream_id);
		if (rq)
			rq->reset_by_client = true;
		break;
	case NGHTTP2_SETTINGS:
		c->greeted = true;
		break;
	default:
		break;
	}
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	(void)session;
	note_frame(conn_of(user), frame);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct h2_conn *c = conn_of(user);
	struct h2_request *rq = find(c, id);

	(void)session;
	if (rq)
		h2_request_closed(rq, code);
	return 0;
}

/* --- what leaves ----------------------------------------------------------------------------- */

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_conn *c = conn_of(user);
	struct h2_request *rq = find(c, frame->hd.stream_id);

	(void)session;
	if (frame->hd.type == NGHTTP2_RST_STREAM && !(rq && rq->resets) &&
	    !h2_calm_reset(&c->calm, now_ms(c)))
		h2_broke(c, ERR_EXHAUSTED, "too many resets were provoked");
	if (rq && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
	    (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
		h2_request_sent_end(rq);
	return 0;
}

/* How much of an answer goes into the next frame; the bytes themselves are asked for by
 * on_send_data. */
static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buf, size_t length,
		       uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct h2_request *rq = source->ptr;
	size_t left = rq->out.len - rq->out_at;
	size_t n = left < length ? left : length;

	(void)session, (void)id, (void)buf, (void)user;
	if (n == 0 && !rq->finished)
		return NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (rq->finished && n == left)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
			size_t length, nghttp2_data_source *source, void *user)
{
	struct h2_conn *c = conn_of(user);
	struct h2_request *rq = source->ptr;
	struct err err;

	(void)session, (void)frame;
	if (c->out.len + H2_FRAME_HEAD + length > c->out_left) {
		c->blocked = true;
		return NGHTTP2_ERR_WOULDBLOCK;
	}
	if (buf_add(&c->out, (struct bytes){ head, H2_FRAME_HEAD }, &err) < 0 ||
	    buf_add(&c->out, (struct bytes){ rq->out.ptr + rq->out_at, length }, &err) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	h2_response_taken(rq, length);
	return 0;
}

/* --- asked by others ------------------------------------------------------------------------- */

static int fail(struct err *err, int rc)
{
	enum err_code code = rc == NGHTTP2_ERR_NOMEM ? ERR_EXHAUSTED : ERR_INVALID;

	return err_set(err, code, 0, "HTTP/2: %s", nghttp2_strerror(rc));
}

static void set_options(nghttp2_option *o)
{
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_stream_reset_rate_limit(o, RESETS_MAX, RESETS_PER_S);
	nghttp2_option_set_max_continuations(o, CONTINUATIONS_MAX);
	nghttp2_option_set_max_settings(o, SETTINGS_MAX);
	nghttp2_option_set_max_outbound_ack(o, ACKS_MAX);
	nghttp2_option_set_max_reserved_remote_streams(o, 0);
}

static void set_callbacks(nghttp2_session_callbacks *cb)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback2(cb, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback2(cb, on_invalid_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_sent);
	nghttp2_session_callbacks_set_send_data_callback(cb, on_send_data);
}

/* Clients' own priorities are not taken: they are state for whoever likes to fill memory, and
 * streams of one connection get equal shares (see h2_session_answer). */
static int greet(struct h2_conn *c)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2_LIST_MAX },
		{ NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1 },
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
	};

	return nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, COUNT(settings));
}

static int open_with(struct h2_conn *c, nghttp2_session_callbacks *cb, nghttp2_option *o)
{
	int rc;

	set_callbacks(cb);
	set_options(o);
	rc = nghttp2_session_server_new2(&c->session, cb, c, o);
	return rc == 0 ? greet(c) : rc;
}

int h2_session_open(struct h2_conn *c, struct err *err)
{
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_option *o = NULL;
	int rc = nghttp2_session_callbacks_new(&cb);

	if (rc == 0)
		rc = nghttp2_option_new(&o);
	if (rc == 0)
		rc = open_with(c, cb, o);
	nghttp2_option_del(o);
	nghttp2_session_callbacks_del(cb);
	return rc == 0 ? 0 : fail(err, rc);
}

void h2_session_close(struct h2_conn *c)
{
	nghttp2_session_del(c->session);
	c->session = NULL;
}

bool h2_session_knows(const struct h2_conn *c, uint32_t id)
{
	return find(c, (int32_t)id);
}

int h2_session_take(struct h2_conn *c, struct bytes slice, struct err *err)
{
	ssize_t n;

	memset(&c->got, 0, sizeof(c->got));
	n = nghttp2_session_mem_recv(c->session, slice.ptr, slice.len);
	if (n >= 0)
		return 0;
	/* of these it tells the client nothing by itself */
	if (n == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
		h2_session_end(c, NGHTTP2_PROTOCOL_ERROR);
	else if (n == NGHTTP2_ERR_FLOODED || c->gross)
		h2_session_end(c, NGHTTP2_ENHANCE_YOUR_CALM);
	else
		h2_session_end(c, NGHTTP2_INTERNAL_ERROR);
	return fail(err, (int)n);
}

int h2_session_give(struct h2_conn *c, struct err *err)
{
	const uint8_t *data;
	ssize_t n;

	c->blocked = false;
	while (c->out.len < c->out_left) {
		n = nghttp2_session_mem_send(c->session, &data);
		if (n < 0)
			return fail(err, (int)n);
		if (n == 0)
			return 0;
		if (buf_add(&c->out, (struct bytes){ data, (size_t)n }, err) < 0)
			return -1;
	}
	c->blocked = true;
	return 0;
}

bool h2_session_over(const struct h2_conn *c)
{
	return !nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session);
}

/* What fails here fails for want of memory, and the connection ends all the same, by its times. */
void h2_session_end(struct h2_conn *c, uint32_t code)
{
	(void)nghttp2_session_terminate_session(c->session, code);
	h2_wants_out(c);
}

void h2_session_warn(struct h2_conn *c)
{
	(void)nghttp2_submit_shutdown_notice(c->session);
	h2_wants_out(c);
}

void h2_session_goaway(struct h2_conn *c)
{
	(void)nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE,
				    nghttp2_session_get_last_proc_stream_id(c->session),
				    NGHTTP2_NO_ERROR, NULL, 0);
	h2_wants_out(c);
}

int h2_session_answer(struct h2_request *rq, const nghttp2_nv *nv, size_t n, bool with_body,
		      struct err *err)
{
	nghttp2_data_provider from = { .source = { .ptr = rq }, .read_callback = on_read };
	const nghttp2_extpri equal = { .urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1 };
	nghttp2_session *s = rq->conn->session;
	int rc;

	(void)nghttp2_session_change_extpri_stream_priority(s, rq->id, &equal, 1);
	rc = nghttp2_submit_response(s, rq->id, nv, n, with_body ? &from : NULL);
	if (rc != 0)
		return fail(err, rc);
	h2_wants_out(rq->conn);
	return 0;
}

void h2_session_continue(struct h2_request *rq)
{
	char name[] = ":status", value[] = "100";
	const nghttp2_nv nv = { (uint8_t *)name, (uint8_t *)value, sizeof(name) - 1,
				sizeof(value) - 1, NGHTTP2_NV_FLAG_NONE };

	(void)nghttp2_submit_headers(rq->conn->session, NGHTTP2_FLAG_NONE, rq->id, NULL, &nv, 1,
				     NULL);
	h2_wants_out(rq->conn);
}

void h2_session_resume(struct h2_request *rq)
{
	if (rq->closed)
		return;
	(void)nghttp2_session_resume_data(rq->conn->session, rq->id);
	h2_wants_out(rq->conn);
}

void h2_session_reset(struct h2_request *rq, uint32_t code)
{
	if (rq->closed || rq->resets)
		return;
	rq->resets = true;
	(void)nghttp2_submit_rst_stream(rq->conn->session, NGHTTP2_FLAG_NONE, rq->id, code);
	h2_wants_out(rq->conn);
}

void h2_session_used(struct h2_request *rq, size_t n)
{
	if (rq->closed || n == 0)
		return;
	(void)nghttp2_session_consume_stream(rq->conn->session, rq->id, n);
	h2_wants_out(rq->conn);
}

void h2_session_used_by_all(struct h2_conn *c, size_t n)
{
	if (n == 0)
		return;
	(void)nghttp2_session_consume_connection(c->session, n);
	h2_wants_out(c);
}

void h2_session_widen(struct h2_conn *c, int32_t id)
{
	(void)nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, id,
						    H2_WINDOW_MORE);
	h2_wants_out(c);
}
