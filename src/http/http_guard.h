/* http_guard.h - HTTP on its way out: every request of a connection means the same host.
 *
 * A first request to an allowed host must not carry a second one to another host of the same
 * server behind it. Heads are held until they are whole and were looked at; bodies pass. An upgrade
 * is allowed to the first request alone: what follows it is held until the server has agreed, and
 * then nobody looks any more. One to another HTTP, or to TLS, is left out of the request: there
 * each message names a host of its own, and every server may go on in HTTP/1.1; so is one that is
 * not asked for as it should be.
 */
#pragma once

#include "http/body.h"
#include "http/http_rewrite.h"
#include "wire/domain.h"

enum { HTTP_GUARD_HOLD_MAX = HTTP1_HEAD_MAX + 64 * 1024 };

enum http_guard_at {
	HTTP_GUARD_HEAD,
	HTTP_GUARD_BODY,
	HTTP_GUARD_AGREED, /* waits for the server's answer to an upgrade */
	HTTP_GUARD_OPEN,   /* upgraded */
};

struct http_guard {
	char host[DOMAIN_SIZE]; /* of the first request, as http_guard_host() has it */
	struct http_rewrite rewrite;
	bool rewrites;
	enum http_guard_at at;
	struct buf held;
	size_t scanned;
	struct body_in body;
	struct buf answer; /* the head of the answer to an upgrade, as far as it has arrived */
	size_t answer_scanned;
	uint64_t requests;
};

void http_guard_init(struct http_guard *g, const char host[static DOMAIN_SIZE]);
void http_guard_done(struct http_guard *g);

/* Before the first request: all of them get these fields, which stay the caller's, instead of their
 * own of these names, also those behind a body. TRACE, which would send them back, is denied. */
void http_guard_add(struct http_guard *g, const struct http1_field *fields, size_t n);

/* From the guest: what may pass is appended to `out`. ERR_DENIED: another host, or an upgrade too
 * late. ERR_INVALID: no HTTP. ERR_EXHAUSTED: more is held, or would pass at once, than may. */
int http_guard_feed(struct http_guard *g, struct bytes in, struct buf *out,
		    struct err *err) NODISCARD;
/* It waits for the server, and the guest should not be read meanwhile. */
bool http_guard_waits(const struct http_guard *g);
/* From the server, before it is passed to the guest. True: feed nothing (an empty piece) now, for
 * what was held may go on. */
bool http_guard_heard(struct http_guard *g, struct bytes in);

/* The host of a request, as it is compared: a name in its normal form (domain.h), or an address as
 * written. False: it is neither, or absent. */
bool http_guard_host(const struct http1_head *h, char ret[static DOMAIN_SIZE], bool *ret_is_name,
		     uint16_t *ret_port);
