/* http_guard.c - see http_guard.h. */
#include "http/http_guard.h"

#include "wire/http1_field.h"
#include "wire/http1_host.h"
#include "wire/ip.h"

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

void http_guard_add(struct http_guard *g, const struct http1_field *fields, size_t n)
{
	g->rewrite = (struct http_rewrite){ .add = fields, .n_add = n };
	g->rewrites = true;
}

bool http_guard_waits(const struct http_guard *g)
{
	return g->at == HTTP_GUARD_AGREED;
}

/* --- requests ----------------------------------------------------------------------------- */

/* Some servers choose a site by an address in Host; then Host is accepted, but names nobody. */
static bool is_address(struct bytes host)
{
	uint32_t ip;

	return host.ptr[0] == '[' || ip4_parse(host, &ip);
}

bool http_guard_host(const struct http1_head *h, char ret[static DOMAIN_SIZE], bool *ret_is_name,
		     uint16_t *ret_port)
{
	struct bytes value, host;

	if (http1_find(h, "host", &value) != 1 || !http1_split_host(value, &host, ret_port))
		return false;
	*ret_is_name = domain_normal(host, ret);
	return *ret_is_name || (is_address(host) && bytes_to_str(host, ret, DOMAIN_SIZE));
}

/* TRACE and TRACK send back the headers we added, CONNECT asks for a proxy. Case does
 * not matter: some servers accept `trace`, too. */
static bool is_for_others(const struct http1_head *h)
{
	static const char *const methods[] = { "TRACE", "TRACK", "CONNECT" };

	for (size_t i = 0; i < COUNT(methods); i++)
		if (bytes_eq_nocase(h->method, bytes_str(methods[i])))
			return true;
	return false;
}

/* Of whatever version, and inside TLS: there, too, each request names a host of its own. */
static bool names_http(struct bytes protocols)
{
	static const char *const begins[] = { "h2", "http", "tls" };
	struct bytes one;

	while (bytes_next(&protocols, ',', &one))
		for (size_t i = 0; i < COUNT(begins); i++) {
			struct bytes begin = bytes_str(begins[i]);

			if (bytes_eq_nocase(bytes_head(bytes_trim(one), begin.len), begin))
				return true;
		}
	return false;
}

/* Does it ask for a protocol that is not to be had? HTTP; or in a way of which we would say that it
 * is no upgrade, and a lenient server the contrary: what it then read as that protocol would be
 * requests to us, with fields of ours. */
static bool asks_in_vain(const struct http1_head *h)
{
	struct bytes value;

	return http1_find(h, "upgrade", &value) > 0 &&
	       (http1_upgrade(h).len == 0 || names_http(http1_upgrade(h)));
}

/* Does a field say where its body ends to those who cannot tell '_' from '-', and not to us? */
static bool is_misspelt(const struct http1_head *h)
{
	static const char *const framing[] = { "content-length", "transfer-encoding" };

	for (size_t i = 0; i < h->n_fields; i++)
		for (size_t k = 0; k < COUNT(framing); k++)
			if (http_rewrite_same(h->fields[i].name, bytes_str(framing[k])) &&
			    !bytes_eq_nocase(h->fields[i].name, bytes_str(framing[k])))
				return true;
	return false;
}

static int check_request(struct http_guard *g, const struct http1_head *h, struct err *err)
{
	char host[DOMAIN_SIZE];
	bool is_name;
	uint16_t port;

	if (!http_guard_host(h, host, &is_name, &port))
		return err_set(err, ERR_INVALID, 0, "a request without a host");
	if (is_misspelt(h))
		return err_set(err, ERR_INVALID, 0, "a request with two ends");
	if (strcmp(host, g->host) != 0)
		return err_set(err, ERR_DENIED, 0, "a request for %s on a connection to %s", host,
			       g->host);
	if (g->rewrites && is_for_others(h))
		return err_set(err, ERR_DENIED, 0, "a %.*s request to a host with a rule",
			       (int)h->method.len, (const char *)h->method.ptr);
	if (g->requests > 0 && http1_upgrade(h).len > 0 && !asks_in_vain(h))
		return err_set(err, ERR_DENIED, 0, "an upgrade that is not the first request");
	return 0;
}

static int put_head(struct http_guard *g, struct bytes head, const struct http1_head *h,
		    bool no_upgrade, struct buf *out, struct err *err)
{
	struct http_rewrite r = g->rewrite;

	if (!g->rewrites && !no_upgrade)
		return buf_add(out, head, err);
	r.no_upgrade = no_upgrade;
	return http_rewrite_head(&r, head, h, out, err);
}

/* A whole head: it passes, and what follows it is its body. */
static int pass_head(struct http_guard *g, size_t used, struct buf *out, struct err *err)
{
	struct bytes head = bytes_head(buf_view(&g->held), used);
	struct http1_head h;
	bool upgrade, in_vain;

	if (http1_parse_request(head, &h, err) < 0)
		return -1;
	in_vain = asks_in_vain(&h);
	if (check_request(g, &h, err) < 0 || put_head(g, head, &h, in_vain, out, err) < 0)
		return -1;
	upgrade = http1_upgrade(&h).len > 0 && !in_vain;
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

static int put_chunk(struct bytes piece, struct buf *out, struct err *err)
{
	if (piece.len == 0)
		return chunked_put_last(out, err);
	if (chunked_put_head(out, piece.len, err) < 0 || buf_add(out, piece, err) < 0)
		return -1;
	return chunked_put_tail(out, err);
}

/* Chunks are written anew, so that no fields come behind them. */
static int step_chunks(struct http_guard *g, struct buf *out, struct err *err)
{
	struct bytes in = buf_view(&g->held), piece;
	enum decode d;

	do {
		d = body_in_next(&g->body, &in, &piece, err);
		if (d == DECODE_BAD || (d == DECODE_OK && put_chunk(piece, out, err) < 0))
			return -1;
	} while (d == DECODE_OK && piece.len > 0);
	buf_drop(&g->held, g->held.len - in.len);
	if (d == DECODE_MORE)
		return 0;
	g->at = HTTP_GUARD_HEAD;
	return 1;
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
		else if (g->rewrites && g->body.kind == HTTP1_BODY_CHUNKED)
			more = step_chunks(g, out, err);
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
