/* server.h - answer HTTP requests (request.h) that arrive on streams. No routes, no policy. */
#pragma once

#include "http/limits.h"
#include "http/request.h"
#include "net/introduction.h"
#include "net/timer.h"

struct http_server;
struct http_conn;

struct http_server_ops {
	/* A whole head. Neither answered nor taken when this returns, it is answered with 500. */
	void (*on_request)(struct http_server *sv, struct http_request *rq);
	/* May be NULL. The request ends: it was answered with `status`, or not (0). Its head may be
	 * gone, its note is there. Calls nothing of http/. */
	void (*on_over)(struct http_server *sv, struct http_request *rq, unsigned int status);
};

enum http_version { HTTP_1_1, HTTP_2, HTTP_VERSIONS };

struct http_counts {
	uint64_t connections, requests; /* ever; a connection counts when it said its version */
};

/* How HTTP/2 is spoken, by those who do: see http_server_speak_h2(). */
typedef int http_open_fn(struct http_server *sv, struct stream *s, const struct net_peer *peer,
			 struct bytes first, struct err *err);

struct http_server { /* embedded by its owner */
	const struct http_server_ops *ops;
	struct loop *loop;
	struct http_limits limits;
	struct http_conn *conns;
	struct http_waiting {
		struct http_conn *first, **last;
	} waiting; /* for clients: the longest first */
	size_t n_conns;
	bool draining;
	struct http_counts counts[HTTP_VERSIONS];
	http_open_fn *open_h2; /* NULL: not spoken */
	struct {
		size_t held, out_held, wide; /* of all connections: see h2_conn.h */
	} h2;
};

void http_server_init(struct http_server *sv, struct loop *l, const struct http_server_ops *ops,
		      const struct http_limits *limits);

/* Serve what arrives on `s`, which is taken in any case. `peer` NULL: it does not matter who. */
int http_server_add(struct http_server *sv, struct stream *s, const struct addr *peer,
		    struct err *err) NODISCARD;
/* The same, where more is known: who it is, and of a version that was agreed on (ALPN). HTTP_1_1
 * is what is spoken unless it begins with HTTP/2's preface. Where peer->secure, answers say for how
 * long no plain HTTP is to be used with this host (HTTP_HSTS). */
int http_server_add_as(struct http_server *sv, struct stream *s, const struct net_peer *peer,
		       enum http_version version, struct err *err) NODISCARD;

/* From now on HTTP/2 is spoken too: with whom it was agreed on, and with whom begins with its
 * preface. In h2_server.c: who does not call it needs no library for it. */
void http_server_speak_h2(struct http_server *sv);

/* The server will go away. What is under way goes on; each connection ends with the answer that
 * says so, which is that to its present request or to its next. One that is idle is not cut off,
 * since its client may be asking at this moment: it has limits.last_ms. Connections that are added
 * from now on are treated in the same way. With HTTP/2 clients are told which of their requests
 * count. */
void http_server_drain(struct http_server *sv);
/* Resets every connection; running requests get their on_gone from inside this call, the one
 * exception to the rule. Then the owner may be freed. */
void http_server_done(struct http_server *sv);
/* The same but for the connection that `keep` came on, and the server goes on. */
void http_server_cut(struct http_server *sv, const struct http_request *keep);

/* For a server with more clients than connections: resets the one that has waited for its client
 * the longest: for the next request; or, if for `ms`, for the first one, for the rest of one that
 * does not rest, or to take an answer. Its handler gets on_gone from inside this call. False: none
 * has. */
bool http_server_shed(struct http_server *sv, uint64_t ms);
