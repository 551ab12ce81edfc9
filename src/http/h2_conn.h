/* h2_conn.h - one HTTP/2 connection of a server, seen from inside.
 *
 *	h2_conn.c      its life and times, what arrives, what leaves
 *	h2_session.c   the only place that speaks with nghttp2
 *	h2_request.c   one stream: the request that handlers see, its life and times
 *	h2_body.c      its body, h2_response.c its answer
 *	h2_tunnel.c    one stream after a switch of protocols: a struct stream
 *	h2_calm.c      how much of nothing a client may say
 *	h2_past.c      what may still come for a stream that is over
 *
 * nghttp2 is fed frame by frame, and what a frame brought is told to handlers after nghttp2 has
 * returned: nothing of ours runs inside of it but short callbacks that take notes. What a stream
 *has to be told otherwise (it is gone, its queue has drained, its body goes on) waits in a line,
 *`due`, and is told in a turn of the loop of its own.
 *
 * A request ends twice: for its handler, as request.h says, and for nghttp2, when its stream is
 * closed. It is freed when both have happened, never while anybody may still have it in hand.
 */
#pragma once

#include <nghttp2/nghttp2.h>

#include "http/body.h"
#include "http/conn.h"
#include "http/h2_past.h"
#include "http/request_ops.h"
#include "net/stream_layer.h"
#include "net/timer.h"
#include "net/turn_end.h"
#include "wire/h2_head.h"

enum {
	H2_STREAMS_MAX = 100, /* at once, of a connection */
	/* Windows. A stream begins with H2_WINDOW, the default of the protocol; one whose bytes are
	 * taken as they come gets H2_WINDOW_MORE, so that an upload from far away is fast. */
	H2_WINDOW = 65535,
	H2_WINDOW_MORE = 256 * 1024,
	H2_KEPT_MAX = H2_WINDOW_MORE + H2_WINDOW, /* a window, and what of it was told */
	/* Bytes of bodies that wait for their handlers are taken off the connection's window at
	 * once, up to H2_HELD_MAX: every stream can fill its own window, so those that are paused
	 * do not stall the others. All connections together have H2_HELD_ALL_MAX; beyond it a
	 * connection has its window and no more, as one of HTTP/1.1 has its buffer. */
	H2_HELD_MAX = 8 * 1024 * 1024,
	H2_HELD_ALL_MAX = 64 * 1024 * 1024,
	H2_WIDE_MAX = 256, /* connections that have H2_WINDOW_MORE as a whole */
	/* Of answers that the client does not take; then new streams are refused. The same of all
	 * connections together, for those that hold more than H2_OUT_SHARE. */
	H2_OUT_MAX = 8 * 1024 * 1024,
	H2_OUT_ALL_MAX = 128 * 1024 * 1024,
	H2_OUT_SHARE = 256 * 1024,
	H2_TURN_OUT = 64 * 1024, /* bytes that leave in one turn of the loop */
	H2_BYE_MS = 1000,        /* between the two GOAWAYs of a graceful end */
	/* A head, unpacked, that is not read to its end: a byte on the wire may stand for 4 KiB,
	 * and to go on means to unpack the rest. The client knows H2_LIST_MAX. */
	H2_LIST_GROSS = 4 * H2_LIST_MAX,
};

/* What the timer of a connection times. */
enum h2_wait { H2_WAIT_NOTHING, H2_WAIT_PREFACE, H2_WAIT_HEAD, H2_WAIT_IDLE };

struct h2_request {
	struct http_request base;
	struct h2_conn *conn; /* NULL: a tunnel that outlived it */
	int32_t id;
	struct h2_request *next, **prev;         /* of all of its connection */
	struct h2_request *due_next, **due_prev; /* in line to be told something */
	/* The head. */
	struct h2_head_in head_in;
	struct err bad; /* code set: it is answered with an error */
	char key[H2_KEY_LEN];
	size_t trailers; /* as H2_LIST_MAX counts */
	bool presented;
	/* The body. */
	struct h2_length promised; /* by content-length */
	struct buf in;             /* arrived, told up to in_at */
	size_t in_at;
	size_t paid;   /* of `in`: already given back to the connection's window */
	uint64_t seen; /* told, or thrown away */
	uint64_t body_max;
	bool started, paused; /* by the handler */
	bool ended, end_told; /* by the client */
	bool continue_due;
	bool wide; /* has H2_WINDOW_MORE */
	/* The answer. */
	struct body_out promise;
	struct buf out; /* to be sent, from out_at on */
	size_t out_at;
	uint64_t taken;      /* bytes that left `out`, all told */
	uint64_t taken_seen; /* by the timer */
	bool waits_drain;    /* more than STREAM_LOW_WATER waits: on_drain is due some time */
	bool begun, finished, sent_end;
	/* Ends. */
	bool detached; /* nobody is told any more */
	bool closed;   /* for nghttp2 */
	bool reset_by_client;
	uint32_t code;  /* closed */
	bool resets;    /* a reset of our own is under way */
	struct err why; /* closed */
	struct timer input, output;
	/* After a switch. */
	struct stream tunnel;
	bool is_tunnel, failed;
};

struct h2_conn {
	struct http_conn conn;
	struct stream *s; /* NULL when closed */
	struct stream_user user;
	nghttp2_session *session;
	struct h2_request *requests;
	struct {
		struct h2_request *first, **last;
	} due;
	size_t n_requests, n_due;
	/* In. */
	struct buf in; /* arrived, not yet used */
	struct h2_cut cut;
	struct h2_calm calm;
	struct h2_past past;
	struct http_turn turn; /* while feeding */
	bool feeding, more, secret;
	bool greeted; /* the client's SETTINGS came */
	bool gross;   /* a head went over H2_LIST_GROSS */
	size_t heads; /* begun and not whole: 0 or 1 */
	/* What the last frame brought. */
	struct {
		struct h2_request *rq;
		struct bytes piece;
		bool head, end, data;
	} got;
	/* Out. */
	struct buf out;
	struct turn_end end;
	uint64_t out_turn; /* the turn that out_left is of */
	size_t out_left;
	bool blocked;          /* `out` is full */
	size_t held, out_held; /* see H2_HELD_MAX, H2_OUT_MAX */
	bool wide;             /* has H2_WINDOW_MORE */
	/* Ends. */
	bool over; /* nothing more is read; closed when all has left */
	bool draining;
	struct err broke; /* code set: found where nobody could be told */
	enum h2_wait wait;
	struct timer input, output, later, bye;
	uint64_t sent_seen;
};

/* `first` is what was read of the stream already. */
int h2_conn_open(struct http_server *sv, struct stream *s, const struct net_peer *peer,
		 struct bytes first, struct err *err) NODISCARD;

void h2_soon(struct h2_conn *c);      /* something is due */
void h2_flush(struct h2_conn *c);     /* as far as the client, and this turn, take it */
void h2_wants_out(struct h2_conn *c); /* at the end of this turn */
void h2_broke(struct h2_conn *c, enum err_code code, const char *why);
