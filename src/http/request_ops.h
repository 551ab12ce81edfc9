/* request_ops.h - what every version of HTTP must provide to be answered; for http/ only.
 *
 * request.c keeps the rules that handlers see; h1_response.c speaks HTTP/1.1 underneath, and
 * h2_request.c HTTP/2.
 */
#pragma once

#include "http/request.h"

struct http_conn;

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
	bool rests; /* see http_request_rests() */
	const struct http_conn *conn;
	struct http_server *server;
	unsigned int status; /* that was answered; 0: none yet. 101: another protocol is spoken */
	struct http_note note;
	struct net_peer peer;          /* who asks; len is 0 when it is not known */
	struct address_count *counted; /* NULL: see http_request_count() */
	struct http1_head head;        /* borrows from memory of the version underneath */
};

/* What every version does with a new request, which is all zero, and with one that ends. */
void http_request_begin(struct http_request *rq, const struct http_request_ops *ops,
			const struct http_conn *conn);
void http_request_over(struct http_request *rq);
