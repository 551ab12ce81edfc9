/* h2_client.h - for tests of HTTP/2: a client that keeps the rules, by nghttp2, or breaks them.
 *
 * What it is told is kept for each stream. Bytes that nghttp2 would not send are said by h2_say().
 */
#pragma once

#include <nghttp2/nghttp2.h>

#include "http/h2_conn.h"
#include "tests/unit/test_http_service.h"

enum { H2_SEEN_MAX = 400 };

struct h2_seen { /* of one stream */
	int32_t id;
	char status[8];
	char fields[512]; /* "name: value\n" of each */
	struct buf body;
	bool ended, closed;
	uint32_t code; /* closed */
	/* What is sent. */
	struct bytes says;
	bool waits, last; /* says is not all of it; what follows ends it */
};

struct h2_client {
	struct loop *l;
	struct stream *s;
	struct stream_user user;
	nghttp2_session *session;
	struct h2_seen seen[H2_SEEN_MAX];
	size_t n_seen, n_closed;
	bool goaway, gone, takes_nothing;
	bool raw; /* from now on only h2_say() speaks */
	uint32_t goaway_code;
	int32_t goaway_last;
	struct h2_cut cut; /* of what the server says, for those who broke nghttp2's rules */
	bool in_goaway;
	struct buf last_words;
	size_t resets, goaways, window_updates, pings;
	uint32_t connect_protocol;
};

static inline struct h2_seen *h2_seen_of(struct h2_client *c, int32_t id)
{
	for (size_t i = 0; i < c->n_seen; i++)
		if (c->seen[i].id == id)
			return &c->seen[i];
	return NULL;
}

static inline void h2_push(struct h2_client *c)
{
	const uint8_t *data;
	struct err err = { 0 };
	ssize_t n;

	while (c->s && (n = nghttp2_session_mem_send(c->session, &data)) > 0)
		if (stream_write(c->s, (struct bytes){ data, (size_t)n }, &err) < 0)
			break;
}

static inline int h2c_on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name,
				size_t name_len, const uint8_t *value, size_t value_len,
				uint8_t flags, void *user)
{
	struct h2_client *c = user;
	struct h2_seen *at = h2_seen_of(c, f->hd.stream_id);
	size_t used;

	(void)s, (void)flags;
	if (!at)
		return 0;
	if (name_len == 7 && memcmp(name, ":status", 7) == 0) {
		(void)snprintf(at->status, sizeof(at->status), "%.*s", (int)value_len, value);
		return 0;
	}
	used = strlen(at->fields);
	(void)snprintf(at->fields + used, sizeof(at->fields) - used, "%.*s: %.*s\n", (int)name_len,
		       name, (int)value_len, value);
	return 0;
}

static inline int h2c_on_chunk(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data,
			       size_t len, void *user)
{
	struct h2_client *c = user;
	struct h2_seen *at = h2_seen_of(c, id);
	struct err err;

	(void)flags;
	assert_non_null(at);
	at->body.max = EAR_MAX;
	assert_int_equal(buf_add(&at->body, (struct bytes){ data, len }, &err), 0);
	(void)nghttp2_session_consume_connection(s, len);
	if (!c->takes_nothing)
		(void)nghttp2_session_consume_stream(s, id, len);
	return 0;
}

static inline int h2c_on_frame(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
	struct h2_client *c = user;
	struct h2_seen *at = h2_seen_of(c, f->hd.stream_id);

	(void)s;
	if (at && (f->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
	    (f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS))
		at->ended = true;
	if (f->hd.type == NGHTTP2_GOAWAY) {
		c->goaways++;
		c->goaway_last = f->goaway.last_stream_id;
	}
	c->window_updates += f->hd.type == NGHTTP2_WINDOW_UPDATE;
	c->pings += f->hd.type == NGHTTP2_PING;
	for (size_t i = 0; f->hd.type == NGHTTP2_SETTINGS && i < f->settings.niv; i++)
		if (f->settings.iv[i].settings_id == NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL)
			c->connect_protocol = f->settings.iv[i].value;
	return 0;
}

static inline int h2c_on_close(nghttp2_session *s, int32_t id, uint32_t code, void *user)
{
	struct h2_client *c = user;
	struct h2_seen *at = h2_seen_of(c, id);

	(void)s;
	if (at) {
		at->closed = true;
		at->code = code;
	}
	c->n_closed++;
	return 0;
}

static inline ssize_t h2c_read(nghttp2_session *s, int32_t id, uint8_t *buf, size_t length,
			       uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct h2_seen *at = h2_seen_of(user, id);
	size_t n = at->says.len < length ? at->says.len : length;

	(void)s, (void)source;
	if (n == 0 && at->waits)
		return NGHTTP2_ERR_DEFERRED;
	if (n > 0)
		memcpy(buf, at->says.ptr, n);
	at->says = bytes_tail(at->says, n);
	if (at->says.len == 0 && !at->waits)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

/* A client that said what nghttp2 did not hear of is not told by it what came back. */
static inline void h2c_scan(struct h2_client *c, struct bytes in)
{
	struct h2_frame f;
	struct bytes slice;
	struct err err;

	while (in.len > 0) {
		c->cut.preface = H2_PREFACE_LEN; /* a server has none */
		if (h2_cut_next(&c->cut, &in, &slice, &f)) {
			c->resets += f.type == NGHTTP2_RST_STREAM;
			c->in_goaway = f.type == NGHTTP2_GOAWAY;
			slice = bytes_tail(slice, slice.len - (f.len - c->cut.left));
			buf_clear(&c->last_words);
		}
		if (!c->in_goaway)
			continue;
		c->last_words.max = 4096;
		assert_int_equal(buf_add(&c->last_words, slice, &err), 0);
		if (c->last_words.len < 8)
			continue;
		c->goaway = true;
		c->goaway_code = c->last_words.ptr[7];
	}
}

static inline void h2c_on_data(struct stream_user *u, struct bytes in)
{
	struct h2_client *c = CONTAINER_OF(u, struct h2_client, user);

	h2c_scan(c, in);
	if (c->raw)
		return;
	(void)nghttp2_session_mem_recv(c->session, in.ptr, in.len);
	h2_push(c);
}

static inline void h2c_gone(struct h2_client *c)
{
	c->gone = true;
	stream_abort(TAKE(c->s));
}

static inline void h2c_on_end(struct stream_user *u)
{
	h2c_gone(CONTAINER_OF(u, struct h2_client, user));
}

static inline void h2c_on_drain(struct stream_user *u)
{
	h2_push(CONTAINER_OF(u, struct h2_client, user));
}

static inline void h2c_on_fail(struct stream_user *u, const struct err *err)
{
	(void)err;
	h2c_gone(CONTAINER_OF(u, struct h2_client, user));
}

static inline void h2_client_open(struct h2_client *c, struct loop *l, int fd)
{
	static const struct stream_user_ops ops = { h2c_on_data, h2c_on_end, h2c_on_drain,
						    h2c_on_fail };
	nghttp2_session_callbacks *cb;
	nghttp2_option *o;

	*c = (struct h2_client){ .l = l, .user = { &ops } };
	assert_int_equal(nghttp2_session_callbacks_new(&cb), 0);
	assert_int_equal(nghttp2_option_new(&o), 0);
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_no_http_messaging(o, 1); /* what is wrong is sent, too */
	nghttp2_session_callbacks_set_on_header_callback(cb, h2c_on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, h2c_on_chunk);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, h2c_on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, h2c_on_close);
	assert_int_equal(nghttp2_session_client_new2(&c->session, cb, c, o), 0);
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(o);
	c->s = test_stream(l, fd);
	stream_set_user(c->s, &c->user);
	stream_read(c->s, true);
}

/* The preface, with one setting; h2_push() sends it. */
static inline void h2_greet(struct h2_client *c, nghttp2_settings_id id, uint32_t value)
{
	const nghttp2_settings_entry iv = { (int32_t)id, value };

	assert_int_equal(nghttp2_submit_settings(c->session, 0, &iv, 1), 0);
	h2_push(c);
}

static inline void h2_client_close(struct h2_client *c)
{
	if (c->s)
		stream_abort(c->s);
	nghttp2_session_del(c->session);
	buf_done(&c->last_words);
	for (size_t i = 0; i < c->n_seen; i++)
		buf_done(&c->seen[i].body);
}

#define H2_NV(name, value)                                                                        \
	((nghttp2_nv){ (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), strlen(name), \
		       strlen(value), NGHTTP2_NV_FLAG_NONE })

/* A request of these lines; `says` is its body, `open`: more may follow. */
static inline struct h2_seen *h2_ask_with(struct h2_client *c, const nghttp2_nv *nv, size_t n,
					  struct bytes says, bool open)
{
	nghttp2_data_provider from = { .read_callback = h2c_read };
	struct h2_seen *at = &c->seen[c->n_seen];
	int32_t id;

	assert_true(c->n_seen < H2_SEEN_MAX);
	*at = (struct h2_seen){ .says = says, .waits = open };
	id = nghttp2_submit_request(c->session, NULL, nv, n, says.len > 0 || open ? &from : NULL,
				    NULL);
	assert_true(id > 0);
	at->id = id;
	c->n_seen++;
	h2_push(c);
	return at;
}

static inline struct h2_seen *h2_ask(struct h2_client *c, const char *method, const char *path,
				     struct bytes says, bool open)
{
	const nghttp2_nv nv[] = { H2_NV(":method", method), H2_NV(":scheme", "http"),
				  H2_NV(":authority", "x"), H2_NV(":path", path) };

	return h2_ask_with(c, nv, COUNT(nv), says, open);
}

static inline struct h2_seen *h2_get(struct h2_client *c, const char *path)
{
	return h2_ask(c, "GET", path, (struct bytes){ 0 }, false);
}

/* More of a body that is open; `last`: and its end. */
static inline void h2_more(struct h2_client *c, struct h2_seen *at, struct bytes says, bool last)
{
	at->says = says;
	at->waits = !last;
	(void)nghttp2_session_resume_data(c->session, at->id);
	h2_push(c);
}

static inline bool h2_heard(const struct h2_seen *at, const char *text)
{
	return bytes_eq(buf_view(&at->body), bytes_str(text));
}

/* Bytes of the test's own. */
static inline void h2_say(struct h2_client *c, struct bytes raw)
{
	struct err err = { 0 };

	if (c->s && stream_write(c->s, raw, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void h2_say_frame(struct h2_client *c, uint8_t type, uint8_t flags, uint32_t id,
				struct bytes payload)
{
	const uint8_t head[H2_FRAME_HEAD] = {
		(uint8_t)(payload.len >> 16),
		(uint8_t)(payload.len >> 8),
		(uint8_t)payload.len,
		type,
		flags,
		(uint8_t)(id >> 24),
		(uint8_t)(id >> 16),
		(uint8_t)(id >> 8),
		(uint8_t)id,
	};

	h2_say(c, (struct bytes){ head, sizeof(head) });
	h2_say(c, payload);
}

struct h2_scene { /* a server and one client of it */
	struct loop *l;
	struct service sv;
	struct h2_client c;
};

static inline void h2_scene_open(struct h2_scene *x, const struct http_limits *lim, size_t piece)
{
	struct stream *s;
	int fd[2];

	unix_pair(fd);
	x->l = test_loop();
	service_open(&x->sv, x->l, lim);
	http_server_speak_h2(&x->sv.http);
	s = test_stream(x->l, fd[1]);
	service_add(&x->sv, piece > 0 ? bend_over(s, piece, 0) : s);
	h2_client_open(&x->c, x->l, fd[0]);
	h2_greet(&x->c, NGHTTP2_SETTINGS_ENABLE_PUSH, 0);
}

static inline void h2_scene_close(struct h2_scene *x)
{
	service_close(&x->sv);
	assert_int_equal(x->sv.http.h2.held, 0);
	assert_int_equal(x->sv.http.h2.out_held, 0);
	assert_int_equal(x->sv.http.h2.wide, 0);
	h2_client_close(&x->c);
	loop_free(x->l);
}

#define H2_UNTIL(x, cond) RUN_UNTIL((x)->l, cond)
