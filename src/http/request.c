/* request.c - the rules of answering, whatever version of HTTP is underneath. */
#include "http/request.h"

#include <assert.h>

#include "http/conn.h"
#include "http/refuse.h"
#include "http/request_ops.h"

const struct http1_head *http_request_head(const struct http_request *rq)
{
	return &rq->head;
}

void http_request_begin(struct http_request *rq, const struct http_request_ops *ops,
			const struct http_conn *conn)
{
	rq->ops = ops;
	rq->conn = conn;
	rq->server = conn->server;
	rq->peer = conn->peer;
}

void http_request_over(struct http_request *rq)
{
	struct http_server *sv = rq->server;

	address_count_drop(TAKE(rq->counted));
	if (sv && sv->ops->on_over)
		sv->ops->on_over(sv, rq, rq->status);
}

struct http_note *http_request_note(struct http_request *rq)
{
	return &rq->note;
}

const struct addr *http_request_peer(const struct http_request *rq)
{
	return rq->peer.at.len > 0 ? &rq->peer.at : NULL;
}

bool http_request_secure(const struct http_request *rq)
{
	return rq->peer.secure;
}

bool http_request_unnamed(const struct http_request *rq)
{
	return rq->peer.unnamed;
}

bool http_request_proxied(const struct http_request *rq)
{
	return rq->peer.proxied;
}

void http_request_came_from(struct http_request *rq, const struct net_peer *who)
{
	rq->peer = *who;
}

void http_request_count(struct http_request *rq, struct address_count *of)
{
	assert(!rq->counted);
	rq->counted = of;
}

struct address_count *http_request_take_count(struct http_request *rq)
{
	return TAKE(rq->counted);
}

void http_request_rests(struct http_request *rq)
{
	rq->rests = true;
}

void http_request_secret(struct http_request *rq)
{
	rq->ops->secret(rq);
}

void http_request_take(struct http_request *rq, struct http_handler *h)
{
	assert(!rq->handler || !h);
	rq->handler = h;
}

void http_body_start(struct http_request *rq, uint64_t max)
{
	assert(rq->handler);
	rq->ops->body_start(rq, max);
}

void http_body_pause(struct http_request *rq, bool on)
{
	rq->ops->body_pause(rq, on);
}

static bool is_ours(struct bytes name)
{
	return bytes_eq_nocase(name, BYTES_LIT("content-length")) ||
	       bytes_eq_nocase(name, BYTES_LIT("transfer-encoding")) ||
	       bytes_eq_nocase(name, BYTES_LIT("connection"));
}

static int check(const struct http_response *r, struct err *err)
{
	if (r->n_fields > HTTP_FIELDS_OUT_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d fields", HTTP_FIELDS_OUT_MAX);
	for (size_t i = 0; i < r->n_fields; i++)
		if (is_ours(r->fields[i].name))
			return err_set(err, ERR_INVALID, 0, "%.*s is set by the server",
				       (int)r->fields[i].name.len,
				       (const char *)r->fields[i].name.ptr);
	return 0;
}

/* What is relayed was said by somebody else. */
static int check_status(const struct http_response *r, struct err *err)
{
	bool bare = r->status == 204 || r->status == 304;

	if (r->status < 200 || r->status > 599)
		return err_set(err, ERR_INVALID, 0, "an answer with status %u", r->status);
	if (r->length < HTTP_CHUNKED || (bare && r->length != 0))
		return err_set(err, ERR_INVALID, 0, "a length of %lld with status %u",
			       (long long)r->length, r->status);
	return 0;
}

static int respond(struct http_request *rq, const struct http_response *r, struct bytes first,
		   struct err *err)
{
	if (rq->responded)
		return err_set(err, ERR_INVALID, 0, "a second answer to a request");
	if (check_status(r, err) < 0 || check(r, err) < 0 ||
	    rq->ops->respond(rq, r, first, err) < 0)
		return err_wrap(err, "respond");
	rq->responded = true;
	rq->status = r->status;
	return 0;
}

int http_respond(struct http_request *rq, const struct http_response *r, struct err *err)
{
	return respond(rq, r, (struct bytes){ 0 }, err);
}

bool http_responded(const struct http_request *rq)
{
	return rq->responded;
}

static int check_begun(const struct http_request *rq, struct err *err)
{
	return rq->responded ? 0 : err_set(err, ERR_INVALID, 0, "a body before its head");
}

int http_send(struct http_request *rq, struct bytes piece, struct err *err)
{
	if (check_begun(rq, err) < 0)
		return -1;
	return rq->ops->send(rq, piece, err);
}

int http_send_buf(struct http_request *rq, struct buf *piece, struct err *err)
{
	assert(piece->len >= HTTP_FRONT);
	if (check_begun(rq, err) < 0) {
		buf_done(piece);
		return -1;
	}
	return rq->ops->send_buf(rq, piece, err);
}

enum stream_file http_send_file(struct http_request *rq, int file, size_t max, size_t *ret_n,
				struct err *err)
{
	if (check_begun(rq, err) < 0)
		return STREAM_FILE_FAILED;
	return rq->ops->send_file(rq, file, max, ret_n, err);
}

size_t http_queued(struct http_request *rq)
{
	return rq->ops->queued(rq);
}

void http_finish(struct http_request *rq)
{
	if (rq->responded)
		rq->ops->finish(rq);
	else
		rq->ops->abort(rq);
}

void http_abort(struct http_request *rq)
{
	rq->ops->abort(rq);
}

static int answer(struct http_request *rq, const struct http_response *r, struct bytes body,
		  struct err *err)
{
	struct http_response sized = *r;

	if (body.len > HTTP_WHOLE_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "an answer of %zu bytes", body.len);
	sized.length = (int64_t)body.len;
	if (respond(rq, &sized, body, err) < 0)
		return -1;
	http_finish(rq);
	return 0;
}

void http_answer(struct http_request *rq, const struct http_response *r, struct bytes body)
{
	struct err err;

	if (answer(rq, r, body, &err) < 0)
		http_fail(rq, 500, "the answer could not be sent");
}

void http_fail(struct http_request *rq, unsigned int status, const char *message)
{
	static const struct http1_field json = {
		BYTES_LIT("content-type"),
		BYTES_LIT("application/json"),
	};
	struct http_response r = { .status = status, .fields = &json, .n_fields = 1 };
	AUTO(buf_done) struct buf body = http_error_body(status, message);
	struct err err;

	if (rq->responded || answer(rq, &r, buf_view(&body), &err) < 0)
		http_abort(rq);
}

int http_upgrade(struct http_request *rq, const struct http_response *r, struct stream **ret,
		 struct buf *ret_early, struct err *err)
{
	if (rq->responded)
		return err_set(err, ERR_INVALID, 0, "a switch after the answer");
	rq->status = 101; /* when it succeeds, the request is over */
	if (check(r, err) == 0 && rq->ops->upgrade(rq, r, ret, ret_early, err) == 0)
		return 0;
	rq->status = 0;
	return err_wrap(err, "upgrade");
}
