/* rpc_feed.h - what a process says, as the stream of one client: the half that Start and Connect
 * share. The client may go, the process stays.
 */
#pragma once

#include "agent/agent.h"
#include "agent/process/process_event.h"
#include "agent/rpc/rpc_stream.h"

enum { FEED_COMMAND_MAX = 1024 };

struct rpc_feed;
typedef void rpc_feed_message_fn(struct rpc_feed *f, struct bytes json);
struct rpc_feed { /* on the heap; frees itself when the stream ends */
	struct rpc_stream stream;
	struct process_listener listener;
	rpc_feed_message_fn *on_message;
	struct agent *agent;
	struct timer deadline;          /* of the stream alone */
	bool overdue;                   /* the end of the process's time ends the stream */
	char command[FEED_COMMAND_MAX]; /* for messages */
};

/* on_message gets the request, and calls one of the functions below. */
void rpc_feed_open(struct agent *a, struct http_request *rq, rpc_feed_message_fn *on_message);

/* Listen to `p`, from now on. */
void rpc_feed_listen(struct rpc_feed *f, struct process *p);

void rpc_feed_past(struct rpc_feed *f,
		   const struct past *past); /* start and end, then it is over */
void rpc_feed_fail(struct rpc_feed *f, enum connect_code code, const char *why);
