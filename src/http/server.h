/* server.h - answer HTTP requests (request.h) that arrive on streams. No routes, no policy. */
#pragma once

#include "http/limits.h"
#include "http/request.h"
#include "net/timer.h"

struct http_server;
struct http_conn;

struct http_server_ops {
	/* A whole head. Neither answered nor taken when this returns, it is answered with 500. */
	void (*on_request)(struct http_server *sv, struct http_request *rq);
};

struct http_server { /* embedded by its owner */
	const struct http_server_ops *ops;
	struct loop *loop;
	struct http_limits limits;
	struct http_conn *conns;
	struct http_waiting {
		struct http_conn *first, **last;
	} waiting; /* for clients: the longest first */
	size_t n_conns;
};

void http_server_init(struct http_server *sv, struct loop *l, const struct http_server_ops *ops,
		      const struct http_limits *limits);

/* Serve what arrives on `s`, which is taken in any case. `peer` NULL: it does not matter who. */
int http_server_add(struct http_server *sv, struct stream *s, const struct addr *peer,
		    struct err *err) NODISCARD;
/* Resets every connection; running requests get their on_gone from inside this call, the one
 * exception to the rule. Then the owner may be freed. */
void http_server_done(struct http_server *sv);
/* The same but for the connection that `keep` came on, and the server goes on. */
void http_server_cut(struct http_server *sv, const struct http_request *keep);

/* For a server with more clients than connections: resets the one that has waited for its client
 * the longest, if for `ms`: for the next request, for the rest of one that does not rest, or to
 * take an answer. Its handler gets on_gone from inside this call. False: none has. */
bool http_server_shed(struct http_server *sv, uint64_t ms);
