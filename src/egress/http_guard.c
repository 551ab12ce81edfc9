/* http_guard.c - see http_guard.h. */
#include "egress/http_guard.h"

#include "egress/peek.h"
#include "wire/http1_field.h"

void http_guard_init(struct http_guard *g, const char host[static DOMAIN_SIZE])
{
	*g = (struct http_guard){ .held = BUF_MAX(HTTP_GUARD_HOLD_MAX),
				  .answer = BUF_MAX(HTTP1_HEAD_MAX) };
	memcpy(g->host, host, DOMAIN_SIZE);
}

void http_guard_done(struct http_guard *g)
{
	buf_done(&g->held);
	buf_done(&g->answer);
}

bool http_guard_waits(const struct http_guard *g)
{
	return g->at == HTTP_GUARD_AGREED;
}

/* --- requests ----------------------------------------------------------------------------- */

static int check_request(struct http_guard *g, const struct http1_head *h, struct err *err)
{
	char host[DOMAIN_SIZE];
	struct peek said;

	if (!peek_host(h, host, &said))
		return err_set(err, ERR_INVALID, 0, "a request without a host");
	if (strcmp(host, g->host) != 0)
		return err_set(err, ERR_DENIED, 0, "a request for %s behind one for %s", host,
			       g->host);
	if (http1_upgrade(h).len > 0 && g->requests > 0)
		return err_set(err, ERR_DENIED, 0, "an upgrade that is not the first request");
	return 0;
}

/* A whole head: it passes, and what follows it is its body. */
static int pass_head(struct http_guard *g, size_t used, struct buf *out, struct err *err)
{
	struct bytes head = bytes_head(buf_view(&g->held), used);
	struct http1_head h;
	bool upgrade;

	if (http1_parse_request(head, &h, err) < 0 || check_request(g, &h, err) < 0 ||
	    buf_add(out, head, err) < 0)
		return -1;
	upgrade = http1_upgrade(&h).len > 0;
	body_in_init(&g->body, &h);
	buf_drop(&g->held, used);
	g->scanned = 0;
	g->requests++;
	g->at = upgrade ? HTTP_GUARD_AGREED : HTTP_GUARD_BODY;
	return 0;
}

/* 1: something was done. 0: more is needed. */
static int step_head(struct http_guard *g, struct buf *out, struct err *err)
{
	size_t used;

	if (g->held.len == 0)
		return 0;
	switch (http1_head_end(buf_view(&g->held), &g->scanned, &used, err)) {
	case DECODE_OK:
		return pass_head(g, used, out, err) < 0 ? -1 : 1;
	case DECODE_MORE:
		return 0;
	case DECODE_BAD:
	default:
		return -1;
	}
}

/* The body passes as it was sent, its frames too: only where it ends is of interest. */
static int step_body(struct http_guard *g, struct buf *out, struct err *err)
{
	struct bytes in = buf_view(&g->held), piece;
	size_t before = in.len;
	enum decode d;

	do
		d = body_in_next(&g->body, &in, &piece, err);
	while (d == DECODE_OK && piece.len > 0);
	if (d == DECODE_BAD ||
	    buf_add(out, bytes_head(buf_view(&g->held), before - in.len), err) < 0)
		return -1;
	buf_drop(&g->held, before - in.len);
	if (d == DECODE_MORE)
		return 0;
	g->at = HTTP_GUARD_HEAD;
	return 1;
}

static int step_open(struct http_guard *g, struct buf *out, struct err *err)
{
	if (buf_add(out, buf_view(&g->held), err) < 0)
		return -1;
	buf_clear(&g->held);
	return 0;
}

int http_guard_feed(struct http_guard *g, struct bytes in, struct buf *out, struct err *err)
{
	int more = 1;

	if (buf_add(&g->held, in, err) < 0)
		return -1;
	while (more > 0) {
		if (g->at == HTTP_GUARD_AGREED)
			return 0;
		if (g->at == HTTP_GUARD_OPEN)
			more = step_open(g, out, err);
		else if (g->at == HTTP_GUARD_HEAD)
			more = step_head(g, out, err);
		else
			more = step_body(g, out, err);
	}
	return more;
}

/* --- the answer to an upgrade --------------------------------------------------------------- */

/* 101 says yes; another final answer says no, and the connection goes on as before. */
static bool decide(struct http_guard *g, const struct http1_head *h)
{
	if (h->status == 101) {
		g->at = HTTP_GUARD_OPEN;
		return true;
	}
	if (h->status < 200)
		return false;
	g->at = HTTP_GUARD_BODY;
	return true;
}

bool http_guard_heard(struct http_guard *g, struct bytes in)
{
	struct http1_head h;
	struct err err;
	size_t used;

	if (g->at != HTTP_GUARD_AGREED || buf_add(&g->answer, in, &err) < 0)
		return false;
	while (http1_head_end(buf_view(&g->answer), &g->answer_scanned, &used, &err) == DECODE_OK) {
		struct bytes head = bytes_head(buf_view(&g->answer), used);

		if (http1_parse_response(head, BYTES_LIT("GET"), &h, &err) < 0)
			return false;
		if (decide(g, &h))
			return true;
		buf_drop(&g->answer, used);
		g->answer_scanned = 0;
	}
	return false;
}
