/* h1_conn.h - one HTTP/1.1 connection of a server, seen from inside.
 *
 *	HEAD ---- whole head ----> REQUEST ---- answered, body read ----> HEAD
 *	                           REQUEST ---- answered, body unread --> DRAIN ----> HEAD
 *	any  ---- end, error, limit, upgrade, "close" -------------------> CLOSED
 *
 * h1_conn.c has the connection's life and times and what arrives, h1_response.c what leaves. A
 * closed connection is freed in the next turn of the loop, since its own code may be on the stack.
 */
#pragma once

#include "http/body.h"
#include "http/conn.h"
#include "http/request_ops.h"
#include "net/timer.h"

enum h1_state { H1_HEAD, H1_REQUEST, H1_DRAIN, H1_CLOSED };

/* What the input timer times. */
enum h1_wait {
	H1_WAIT_NOTHING,
	H1_WAIT_IDLE,
	H1_WAIT_HEAD,
	H1_WAIT_BODY,
	H1_WAIT_DRAIN,
};

struct h1_request {
	struct http_request base;
	struct h1_conn *conn;
	struct buf head_bytes; /* what base.head borrows from */
	struct body_in body;
	struct body_out out;
	uint64_t body_max;
	bool started, paused; /* reading of the body, by the handler */
	bool end_told;
	bool continue_due; /* the client waits for 100 before it sends the body */
	bool keep;         /* the connection, after the answer */
};

struct h1_conn {
	struct http_conn conn;
	struct stream *s; /* NULL when closed */
	struct stream_user user;
	struct http_out out;
	enum h1_state state;
	struct h1_request *rq; /* in H1_REQUEST */
	struct body_in unread; /* in H1_DRAIN */
	struct buf in;         /* arrived, not yet used */
	struct bytes view;     /* the same while feeding; may borrow from the stream instead */
	bool feeding;
	struct http_turn turn; /* while feeding */
	bool more;             /* its turn was over before its input was: goes on in the next */
	bool secret;           /* a request was: see http_request_secret() */
	bool ended;            /* the client finished writing */
	bool served;
	size_t scanned; /* of the head, see http1_head_end() */
	enum h1_wait wait;
	struct timer input, output, later;
	uint64_t sent_seen;
};

int h1_conn_open(struct http_server *sv, struct stream *s, const struct net_peer *peer,
		 struct err *err) NODISCARD; /* peer: NULL when not known */

/* Part with the client; a request is dropped without a word to its handler. */
void h1_close(struct h1_conn *c, bool graceful);

void h1_leave_stream(struct h1_conn *c); /* the same, but the stream is somebody else's now */

void h1_request_free(struct h1_request *rq);
void h1_kick(struct h1_conn *c); /* look at the input again, soon */
void h1_update_reading(struct h1_conn *c);
void h1_watch_output(struct h1_conn *c); /* after every write: does the client take it? */
