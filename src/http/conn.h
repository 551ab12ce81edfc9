/* conn.h - a connection as its server sees it, whatever its version of HTTP; for http/ only. */
#pragma once

#include "http/server.h"

#define HTTP_HSTS "max-age=31536000" /* a year; no word of subdomains */

struct http_conn_ops {
	void (*kill)(struct http_conn *c, const struct err *why); /* tells the handlers */
	void (*drain)(struct http_conn *c); /* its server begins to; may close it, calls nobody */
};

struct http_conn {
	const struct http_conn_ops *ops;
	struct http_server *server;
	struct net_peer peer; /* len is 0 when it is not known */
	struct http_conn *next, **prev;
	struct http_conn *wait_next, **wait_prev; /* wait_prev NULL: does not wait for its client */
	uint64_t waits_ms;                        /* since then */
	bool idle; /* it waits, has had an answer, and nothing of another request came */
};

void http_conn_join(struct http_conn *c, const struct http_conn_ops *ops, struct http_server *sv);
void http_conn_leave(struct http_conn *c);
/* Is HTTP_HSTS to be added to this answer? Not where somebody, a guest, says his own. */
bool http_conn_says_hsts(const struct http_conn *c, const struct http_response *r);
/* Does it wait for its client? `anew`: for something else than before. */
void http_conn_waits(struct http_conn *c, bool on, bool anew);
