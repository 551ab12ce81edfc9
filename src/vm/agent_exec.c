/* agent_exec.c - the stream of Process.Start: one message out, events back, one end. */
#include "vm/agent_exec.h"

#include "wire/base64.h"
#include "wire/connect.h"

enum { JSON_LEVELS = 8, WHY_MAX = 120, REQUEST_MAX = 128 * 1024, USER_MAX = 64, DIGITS_MAX = 24 };

void agent_exec_cancel(struct agent_exec *e)
{
	e->on_done = NULL;
	if (e->client)
		http_client_close(TAKE(e->client));
	e->exchange = NULL;
	buf_done(&e->in);
	buf_done(&e->out);
	buf_done(&e->err);
}

void agent_exec_pause(struct agent_exec *e, bool on)
{
	if (e->exchange)
		http_ask_pause(e->exchange, on);
}

static void finish(struct agent_exec *e, const struct err *err)
{
	AUTO(buf_done) struct buf out = e->out, said = e->err;
	__auto_type on_done = e->on_done;

	e->out = e->err = (struct buf){ 0 };
	agent_exec_cancel(e);
	e->result.out = buf_view(&out);
	e->result.err = buf_view(&said);
	on_done(e, err ? NULL : &e->result, err);
}

static void refuse(struct agent_exec *e, const char *what)
{
	struct err err;

	err_set(&err, ERR_INTERNAL, 0, "agent: exec: %s", what);
	finish(e, &err);
}

/* --- events ------------------------------------------------------------------------------- */

static int keep(struct agent_exec *e, struct bytes text, enum agent_output which, struct err *err)
{
	AUTO(buf_done) struct buf raw = BUF_MAX(AGENT_MESSAGE_MAX);
	struct buf *into = which == AGENT_STDOUT ? &e->out : &e->err;
	struct bytes fits;

	if (text.len == 0)
		return 0;
	if (base64_decode(text, &raw, err) < 0)
		return err_wrap(err, "output");
	fits = bytes_head(buf_view(&raw), into->max - into->len);
	e->result.cut_off = e->result.cut_off || fits.len < raw.len;
	e->result.said += raw.len;
	if (buf_add(into, fits, err) < 0)
		return -1;
	if (e->on_output)
		e->on_output(e, which, buf_view(&raw));
	return 0;
}

static int on_data_event(struct agent_exec *e, const json_t *data, struct err *err)
{
	struct bytes out = { 0 }, said = { 0 };

	if (!e->started)
		return err_set(err, ERR_INTERNAL, 0, "output before the start");
	if (json_may_string(data, "stdout", &out, err) < 0 ||
	    json_may_string(data, "stderr", &said, err) < 0 || keep(e, out, AGENT_STDOUT, err) < 0)
		return -1;
	return e->client ? keep(e, said, AGENT_STDERR, err) : 0; /* unless it was cancelled */
}

static int on_start_event(struct agent_exec *e, const json_t *start, struct err *err)
{
	int64_t pid;

	if (json_want_int(start, "pid", 1, INT32_MAX, &pid, err) < 0)
		return -1;
	e->result.pid = (uint32_t)pid;
	e->started = true;
	return 0;
}

static int on_end_event(struct agent_exec *e, const json_t *end, struct err *err)
{
	struct bytes status = { 0 };
	int64_t code = 0;

	if (!e->started || e->ended)
		return err_set(err, ERR_INTERNAL, 0, "an end that is not one");
	if (json_may_int(end, "exitCode", INT32_MIN, INT32_MAX, &code, err) < 0 ||
	    json_may_bool(end, "exited", &e->result.exited, err) < 0 ||
	    json_may_string(end, "status", &status, err) < 0)
		return -1;
	e->result.exit_code = (int32_t)code;
	e->ended = true;
	if (!bytes_to_str(bytes_head(status, AGENT_STATUS_MAX), e->result.status,
			  sizeof(e->result.status)))
		return err_set(err, ERR_INTERNAL, 0, "status");
	return 0;
}

static int on_message(struct agent_exec *e, struct bytes body, struct err *err)
{
	static const struct {
		const char *name;
		int (*take)(struct agent_exec *e, const json_t *v, struct err *err);
	} kinds[] = {
		{ "start", on_start_event },
		{ "data", on_data_event },
		{ "end", on_end_event },
	};
	AUTO(json_decrefp) json_t *v = NULL;
	json_t *event, *found = NULL;

	if (json_decode(body, AGENT_MESSAGE_MAX, JSON_LEVELS, &v, err) < 0 ||
	    json_want_object(v, "event", &event, err) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		if (json_may_object(event, kinds[i].name, &found, err) < 0)
			return -1;
		if (found)
			return kinds[i].take(e, found, err);
	}
	return 0; /* keepalive, or something newer */
}

/* The last message: {} or {"error":{"code","message"}}. */
static int on_last(struct agent_exec *e, struct bytes body, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	struct bytes code = BYTES_LIT("?"), why = { 0 };
	json_t *error = NULL;

	if (json_decode(body, AGENT_MESSAGE_MAX, JSON_LEVELS, &v, err) < 0 ||
	    json_may_object(v, "error", &error, err) < 0)
		return -1;
	if (!error && e->ended)
		return 0;
	if (!error)
		return err_set(err, ERR_INTERNAL, 0, "the stream ended before the process");
	if (json_may_string(error, "code", &code, err) < 0 ||
	    json_may_string(error, "message", &why, err) < 0)
		return -1;
	return err_set(err,
		       bytes_eq(code, BYTES_LIT("deadline_exceeded")) ? ERR_TIMEOUT : ERR_INTERNAL,
		       0, "%.*s: %.*s", (int)bytes_head(code, WHY_MAX).len, (const char *)code.ptr,
		       (int)bytes_head(why, WHY_MAX).len, (const char *)why.ptr);
}

/* One envelope off the front. False when there is none, or all is over. */
static bool one_envelope(struct agent_exec *e)
{
	struct envelope got;
	struct err err = { 0 };
	size_t used;
	enum decode d = envelope_decode(buf_view(&e->in), AGENT_MESSAGE_MAX, &got, &used, &err);
	int rc;

	if (d == DECODE_MORE)
		return false;
	rc = d != DECODE_OK ? -1
	     : got.end      ? on_last(e, got.body, &err)
			    : on_message(e, got.body, &err);
	if (!e->client) /* cancelled by who was told of output */
		return false;
	if (rc < 0) {
		if (err.code != ERR_TIMEOUT)
			err.code = ERR_INTERNAL;
		err_wrap(&err, "agent: exec");
		finish(e, &err);
		return false;
	}
	if (got.end || (e->detach && e->started)) {
		finish(e, NULL);
		return false;
	}
	buf_drop(&e->in, used);
	return true;
}

/* --- the exchange ------------------------------------------------------------------------- */

static struct agent_exec *of(struct http_reply *r)
{
	return CONTAINER_OF(r, struct agent_exec, reply);
}

static void on_head(struct http_reply *r, const struct http1_head *head)
{
	char text[64];

	if (head->status == 200)
		return;
	snprintf(text, sizeof(text), "status %u", head->status);
	refuse(of(r), text);
}

static void on_body(struct http_reply *r, struct bytes piece)
{
	struct agent_exec *e = of(r);
	struct err err;

	/* What is buffered is less than an envelope, a piece less than the room above one. */
	if (buf_add(&e->in, piece, &err) < 0) {
		finish(e, &err);
		return;
	}
	while (one_envelope(e))
		;
}

static void on_end(struct http_reply *r)
{
	refuse(of(r), "the stream has no end message");
}

static void on_fail(struct http_reply *r, const struct err *err)
{
	struct err mine = *err;

	err_wrap(&mine, "agent: exec");
	finish(of(r), &mine);
}

static json_t *request_json(const struct agent_exec_spec *spec)
{
	json_t *env = spec->env ? json_incref(spec->env) : json_object();

	return json_pack("{s:{s:s, s:[s, s, s%], s:o}, s:b}", "process", "cmd", "/bin/bash", "args",
			 "-l", "-c", (const char *)spec->command.ptr, spec->command.len, "envs",
			 env, "stdin", 0);
}

/* False: it is not UTF-8. */
static bool add_text(json_t *to, const char *name, struct bytes text)
{
	return text.len == 0 ||
	       json_object_set_new(to, name, json_stringn((const char *)text.ptr, text.len)) == 0;
}

static int request_body(const struct agent_exec_spec *spec, struct buf *out, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(REQUEST_MAX - ENVELOPE_HEAD);
	AUTO(json_decrefp) json_t *v = request_json(spec);

	if (!v || !add_text(json_object_get(v, "process"), "cwd", spec->cwd))
		return err_set(err, ERR_INVALID, 0, "a command that is not UTF-8");
	if (json_encode(v, &text, err) < 0)
		return -1;
	return envelope_put(out, &(struct envelope){ .body = buf_view(&text) }, err);
}

static int basic_user(struct bytes user, struct buf *out, struct err *err)
{
	AUTO(buf_done) struct buf plain = BUF_MAX(USER_MAX);

	if (buf_add(&plain, user, err) < 0 || buf_add(&plain, BYTES_LIT(":"), err) < 0 ||
	    buf_add(out, BYTES_LIT("Basic "), err) < 0)
		return err_wrap(err, "user");
	return base64_encode(buf_view(&plain), out, err);
}

static int send_request(struct agent_exec *e, const struct agent_exec_spec *spec, struct err *err)
{
	AUTO(buf_done) struct buf body = BUF_MAX(REQUEST_MAX);
	AUTO(buf_done) struct buf user = BUF_MAX(4 * USER_MAX);
	char timeout[DIGITS_MAX];
	struct http1_field fields[5] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/connect+json") },
		{ BYTES_LIT("connect-protocol-version"), BYTES_LIT("1") },
	};
	size_t n = 2;

	if (request_body(spec, &body, err) < 0 ||
	    (spec->user.len > 0 && basic_user(spec->user, &user, err) < 0))
		return -1;
	snprintf(timeout, sizeof(timeout), "%llu", (unsigned long long)spec->timeout_ms);
	if (spec->timeout_ms > 0)
		fields[n++] =
			(struct http1_field){ BYTES_LIT("connect-timeout-ms"), bytes_str(timeout) };
	if (user.len > 0)
		fields[n++] = (struct http1_field){ BYTES_LIT("authorization"), buf_view(&user) };
	if (spec->access_token.len > 0)
		fields[n++] =
			(struct http1_field){ BYTES_LIT("x-access-token"), spec->access_token };
	return http_ask(e->client,
			&(struct http_ask){ .method = BYTES_LIT("POST"),
					    .target = BYTES_LIT("/process.Process/Start"),
					    .host = BYTES_LIT("agent"),
					    .fields = fields,
					    .n_fields = n,
					    .body = buf_view(&body),
					    .deadline_ms = spec->deadline_ms },
			&e->reply, &e->exchange, err);
}

int agent_exec_start(struct agent_exec *e, struct stream *s, const struct agent_exec_spec *spec,
		     agent_exec_done_fn *on_done, struct err *err)
{
	static const struct http_reply_ops ops = { on_head, on_body, on_end, NULL, on_fail };
	struct http_limits limits = HTTP_LIMITS;

	*e = (struct agent_exec){ .on_done = on_done,
				  .on_output = spec->on_output,
				  .reply = { &ops },
				  .detach = spec->detach };
	e->in = BUF_MAX(AGENT_MESSAGE_MAX + ENVELOPE_HEAD + LOOP_READ_MAX);
	e->out = e->err = BUF_MAX(spec->keep_max ? spec->keep_max : AGENT_OUTPUT_MAX);
	limits.body_stall_ms = 0; /* a process may be silent; the deadline holds */
	if (http_client_open(s, &limits, &e->client, err) < 0)
		return err_wrap(err, "agent: exec");
	if (send_request(e, spec, err) < 0) {
		agent_exec_cancel(e);
		return err_wrap(err, "agent: exec");
	}
	return 0;
}
