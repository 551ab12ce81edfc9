/* request_inside.h - what every version of HTTP must provide to serve; for http/ only.
 *
 * server.c and request.c keep the rules that handlers see; h1_*.c speak HTTP/1.1 underneath, and
 * HTTP/2 will do the same beside them.
 */
#pragma once

#include "http/server.h"

struct http_request_ops {
	void (*secret)(struct http_request *rq);
	void (*body_start)(struct http_request *rq, uint64_t max);
	void (*body_pause)(struct http_request *rq, bool on);
	/* The head, and `first` (as much as r->length, or nothing) in the same write. */
	int (*respond)(struct http_request *rq, const struct http_response *r, struct bytes first,
		       struct err *err);
	int (*send)(struct http_request *rq, struct bytes piece, struct err *err);
	int (*send_buf)(struct http_request *rq, struct buf *piece, struct err *err);
	enum stream_file (*send_file)(struct http_request *rq, int file, size_t max, size_t *ret_n,
				      struct err *err);
	size_t (*queued)(struct http_request *rq);
	/* These three free the request; upgrade only when it succeeds. */
	void (*finish)(struct http_request *rq);
	void (*abort)(struct http_request *rq);
	int (*upgrade)(struct http_request *rq, const struct http_response *r, struct stream **ret,
		       struct buf *ret_early, struct err *err);
};

struct http_request {
	const struct http_request_ops *ops;
	struct http_handler *handler; /* NULL until taken */
	bool responded;
	bool rests;              /* see http_request_rests() */
	const struct addr *peer; /* of the connection; NULL: not known */
	const struct http_conn *conn;
	struct http1_head head; /* borrows from memory of the version underneath */
};

struct http_conn_ops {
	void (*kill)(struct http_conn *c, const struct err *why); /* tells the handlers */
};

struct http_conn {
	const struct http_conn_ops *ops;
	struct http_server *server;
	struct addr peer; /* len is 0 when it is not known */
	struct http_conn *next, **prev;
	struct http_conn *wait_next, **wait_prev; /* wait_prev NULL: does not wait for its client */
	uint64_t waits_ms;                        /* since then */
};

void http_conn_join(struct http_conn *c, const struct http_conn_ops *ops, struct http_server *sv);
void http_conn_leave(struct http_conn *c);
/* Does it wait for its client? `anew`: for something else than before. */
void http_conn_waits(struct http_conn *c, bool on, bool anew);

/* The body of an error answer: {"code":404,"message":"..."}. Cut to HTTP_ERROR_MAX. */
enum { HTTP_ERROR_MAX = 512 };
struct buf http_error_body(unsigned int status, const char *message);
