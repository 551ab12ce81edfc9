/* answer.c - how the control plane answers: JSON, numeric codes, CORS. */
#include "gateway/api/answer.h"

#include <stdarg.h>

#include "gateway/api/api.h"
#include "wire/rfc3339.h"

enum { TIME_DIGITS = 6, FIELDS_MAX = 12, PIECE = 32 * 1024, MESSAGE_SIZE = 512 };

static const char expose[] = "X-Next-Token, X-Total-Running, RateLimit-Limit, RateLimit-Remaining, "
			     "RateLimit-Reset, Retry-After, X-Request-Id, X-E2B-Trace-ID, "
			     "X-Hotcell-Warning";

struct fields {
	struct http1_field all[FIELDS_MAX];
	size_t n;
};

static void add(struct fields *f, const char *name, struct bytes value)
{
	assert(f->n < FIELDS_MAX);
	f->all[f->n++] = (struct http1_field){ bytes_str(name), value };
}

static void add_cors(struct fields *f)
{
	add(f, "Access-Control-Allow-Origin", BYTES_LIT("*"));
	add(f, "Access-Control-Expose-Headers", bytes_str(expose));
}

/* By which the logs of all daemons know this request. The second name is E2B's, and printed by its
 * SDKs. */
static void add_id(struct fields *f, struct http_request *rq)
{
	struct bytes id = bytes_str(http_request_note(rq)->id);

	if (id.len == 0)
		return;
	add(f, "X-Request-Id", id);
	add(f, "X-E2B-Trace-ID", id);
}

/* Tells a client when it is worth trying again. `room` lives as long as the fields. */
static void add_retry(struct fields *f, unsigned int status, uint32_t seconds, char room[static 12])
{
	if (status != 429 && status != 503)
		return;
	snprintf(room, 12, "%u", seconds > 0 ? seconds : 1);
	add(f, "Retry-After", bytes_str(room));
}

static json_t *error_body(unsigned int status, const char *message)
{
	return json_pack("{s:i, s:o}", "code", (int)status, "message",
			 json_text(bytes_str(message)));
}

void api_send_more(struct api_call *c)
{
	struct err err;

	while (c->out_sent < c->out.len && http_queued(c->rq) <= STREAM_LOW_WATER) {
		struct bytes piece = bytes_head(bytes_tail(buf_view(&c->out), c->out_sent), PIECE);

		if (http_send(c->rq, piece, &err) < 0)
			break; /* on_gone follows */
		c->out_sent += piece.len;
	}
	if (c->out_sent < c->out.len)
		return;
	http_finish(c->rq);
	c->rq = NULL;
	api_call_free(c);
}

/* Too large for one write: it leaves as the client takes it. */
static void send_in_pieces(struct api_call *c, struct http_response *r)
{
	struct err err;

	r->length = (int64_t)c->out.len;
	if (http_respond(c->rq, r, &err) < 0) {
		http_fail(c->rq, 500, err.msg);
		c->rq = NULL;
		api_call_free(c);
		return;
	}
	api_send_more(c);
}

static void send_whole(struct api_call *c, struct http_response *r)
{
	if (c->out.len > HTTP_WHOLE_MAX) {
		send_in_pieces(c, r);
		return;
	}
	http_answer(c->rq, r, buf_view(&c->out));
	c->rq = NULL;
	api_call_free(c);
}

void api_warn(struct api_call *c, const char *fmt, ...)
{
	size_t n = strlen(c->warning);
	va_list args;

	if (n > 0)
		n += (size_t)snprintf(c->warning + n, sizeof(c->warning) - n, "; ");
	if (n >= sizeof(c->warning))
		return;
	va_start(args, fmt);
	vsnprintf(c->warning + n, sizeof(c->warning) - n, fmt, args);
	va_end(args);
	for (char *p = c->warning; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
}

void api_answer_with(struct api_call *c, unsigned int status, json_t *body,
		     const struct http1_field *extra, size_t n_extra)
{
	AUTO(json_decrefp) json_t *owned = body;
	struct http_response r = { .status = status };
	struct fields f = { 0 };
	char retry[12];
	struct err err;

	if (!c->rq) {
		api_call_free(c);
		return;
	}
	if (!api_is_admin(c))
		add_cors(&f);
	add_id(&f, c->rq);
	add_retry(&f, status, c->retry_s, retry);
	if (strncmp(c->route->path, "/secrets", 8) == 0) /* also what was refused */
		add(&f, "Cache-Control", BYTES_LIT("no-store"));
	if (c->warning[0])
		add(&f, "X-Hotcell-Warning", bytes_str(c->warning));
	for (size_t i = 0; i < n_extra; i++)
		f.all[f.n++] = extra[i];
	c->out = BUF_MAX(API_ANSWER_MAX);
	if (owned && json_encode(owned, &c->out, &err) < 0) {
		http_fail(c->rq, 500, "the answer is too large");
		c->rq = NULL;
		api_call_free(c);
		return;
	}
	if (c->out.len > 0)
		add(&f, "Content-Type", BYTES_LIT("application/json"));
	r.fields = f.all;
	r.n_fields = f.n;
	send_whole(c, &r);
}

void api_answer(struct api_call *c, unsigned int status, json_t *body)
{
	api_answer_with(c, status, body, NULL, 0);
}

void api_answer_text(struct api_call *c, struct bytes type, struct buf *text)
{
	struct http_response r = { .status = 200 };
	struct fields f = { 0 };

	if (!c->rq) {
		api_call_free(c);
		return;
	}
	add_id(&f, c->rq);
	add(&f, "Content-Type", type);
	c->out = *text;
	*text = (struct buf){ 0 };
	r.fields = f.all;
	r.n_fields = f.n;
	send_whole(c, &r);
}

void api_fail(struct api_call *c, unsigned int status, const char *fmt, ...)
{
	char message[MESSAGE_SIZE];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	api_answer(c, status, error_body(status, message));
}

unsigned int api_status_of(enum err_code code)
{
	switch (code) {
	case ERR_INVALID:
		return 400;
	case ERR_NOT_FOUND:
		return 404;
	case ERR_EXISTS:
		return 409;
	case ERR_DENIED:
		return 403;
	case ERR_EXHAUSTED:
		return 429;
	case ERR_UNAVAILABLE:
	case ERR_NO_FILES:
	case ERR_VERSION:
		return 503;
	case ERR_TIMEOUT:
		return 504;
	case ERR_NO_SPACE:
		return 507;
	case ERR_MISMATCH:
	case ERR_BASE_LOST:
		return 412;
	case ERR_NONE:
	case ERR_INTERNAL:
	case ERR_CODES:
		break;
	}
	return 500;
}

void api_fail_err(struct api_call *c, const struct err *err)
{
	unsigned int status = api_status_of(err->code);
	json_t *body = error_body(status, err->msg);

	/* for programs: the disk is whole, and may be booted; or it waits for an operator */
	if (err->code == ERR_MISMATCH)
		json_object_set_new(body, "reason", json_text(BYTES_LIT("saved_elsewhere")));
	/* and here: nothing was deleted, a disk is not mounted */
	if (err->code == ERR_NO_FILES)
		json_object_set_new(body, "reason", json_text(BYTES_LIT("files_missing")));
	if (err->code == ERR_BASE_LOST)
		json_object_set_new(body, "reason", json_text(BYTES_LIT("base_lost")));
	/* and here: an operator restarts the older of two daemons */
	if (err->code == ERR_VERSION)
		json_object_set_new(body, "reason", json_text(BYTES_LIT("version_mismatch")));
	api_answer(c, status, body);
}

void api_fail_reply(struct api_call *c, const struct node_answer *said)
{
	c->retry_s = said->reply ? said->reply->retry_s : 0;
	api_fail_err(c, said->err);
}

void api_refuse(struct http_request *rq, unsigned int status, const char *message,
		const char *allow)
{
	AUTO(json_decrefp) json_t *body = error_body(status, message);
	AUTO(buf_done) struct buf out = BUF_MAX(4 * MESSAGE_SIZE);
	struct fields f = { 0 };
	char retry[12];
	struct err err;

	add_cors(&f);
	add_id(&f, rq);
	add_retry(&f, status, 0, retry);
	add(&f, "Content-Type", BYTES_LIT("application/json"));
	if (allow)
		add(&f, "Allow", bytes_str(allow));
	if (!body || json_encode(body, &out, &err) < 0) {
		http_fail(rq, status, "");
		return;
	}
	http_answer(rq,
		    &(struct http_response){ .status = status, .fields = f.all, .n_fields = f.n },
		    buf_view(&out));
}

void api_preflight(struct http_request *rq)
{
	struct bytes wanted = BYTES_LIT("*, Authorization");
	struct fields f = { 0 };

	http1_find(http_request_head(rq), "Access-Control-Request-Headers", &wanted);
	add_cors(&f);
	add(&f, "Access-Control-Allow-Methods",
	    BYTES_LIT("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
	add(&f, "Access-Control-Allow-Headers", wanted);
	add(&f, "Access-Control-Max-Age", BYTES_LIT("7200"));
	http_answer(rq, &(struct http_response){ .status = 204, .fields = f.all, .n_fields = f.n },
		    (struct bytes){ 0 });
}

/* Python's clocks go to microseconds. */
json_t *api_time(uint64_t ns)
{
	char text[RFC3339_SIZE];

	rfc3339_put(ns, TIME_DIGITS, text);
	return json_string(text);
}

void api_not_built(struct api_call *c)
{
	api_fail(c, 501, "%s %s is not there yet", c->route->method, c->route->path);
}
