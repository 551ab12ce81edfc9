/* client_inside.h - one HTTP/1.1 connection of a client, seen from inside.
 *
 * client.c has the calls, the life and the times, client_input.c what arrives. Closed by its owner,
 * a client is freed in the next turn of the loop, since its own code may be on the stack.
 */
#pragma once

#include "http/body.h"
#include "http/client.h"
#include "net/timer.h"

enum client_wait { CLIENT_WAIT_NOTHING, CLIENT_WAIT_HEAD, CLIENT_WAIT_BODY };

struct http_exchange {
	struct http_client *client;
	struct http_reply *reply;
	uint8_t method[HTTP1_METHOD_MAX];
	size_t method_len;
	bool wants_switch;
	struct body_out out;
	bool sent; /* the whole request */
	unsigned int interim;
	struct http1_head head; /* of the answer; borrows from head_bytes */
	struct buf head_bytes;
	bool has_head;
	struct body_in body;
	bool paused;
	struct timer deadline;
};

struct http_client {
	struct stream *s; /* NULL: given up, or taken over */
	struct stream_user user;
	struct http_out out;
	struct loop *loop;
	struct http_limits limits;
	struct http_exchange *x; /* under way, or NULL */
	struct buf in;           /* arrived, not yet used */
	struct bytes view;       /* the same while feeding; may borrow from the stream instead */
	bool feeding;
	struct http_turn turn; /* while feeding */
	bool closed;           /* by the owner */
	size_t scanned;        /* of the head, see http1_head_end() */
	enum client_wait wait;
	struct timer input, output, later;
	uint64_t sent_seen;
	struct err why; /* to be told by `later` */
};

void exchange_free(struct http_exchange *x);
void client_drop_stream(struct http_client *c, bool graceful);
void client_fail(struct http_client *c, const struct err *why); /* tells who asks, if anyone */
bool client_step(struct http_client *c);                        /* false: waits for something */
void client_on_end(struct http_client *c);                      /* the server finished writing */
