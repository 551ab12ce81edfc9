/* rpc_unary.h - a Connect call with one JSON message in and one out.
 *
 *	rpc_unary_take() -> on_message -> rpc_unary_answer() or rpc_unary_fail(), at once or later
 *
 * It ends exactly once: by one of those two or by on_gone. Then it no longer exists and its owner
 * may be freed. No call calls back. Calls that never wait use rpc_quick().
 */
#pragma once

#include "agent/rpc/long_answer.h"
#include "agent/rpc/rpc_fault.h"
#include "net/timer.h"
#include "wire/json.h"

struct rpc_unary;
struct rpc_unary_ops {
	void (*on_message)(struct rpc_unary *u, json_t *message); /* once; borrowed */
	/* The client left, or has all of a long answer; or what it sent was no message, or its
	 * time is up, and it was told so. The last call. */
	void (*on_gone)(struct rpc_unary *u);
};

struct rpc_unary { /* embedded by the object that answers one call */
	const struct rpc_unary_ops *ops;
	struct http_handler handler;
	struct http_request *rq;
	struct buf in;
	struct long_answer sending;
	struct timer deadline;
	unsigned int depth; /* of the message's JSON */
	bool lost;          /* no memory for the message */
};

/* Takes the request, or refuses it: false, and answered, when it is not JSON. `depth`: how deep the
 * message may be nested. */
bool rpc_unary_take(struct rpc_unary *u, struct loop *l, struct http_request *rq,
		    const struct rpc_unary_ops *ops, unsigned int depth) NODISCARD;

void rpc_unary_answer(struct rpc_unary *u, struct bytes json); /* at most HTTP_WHOLE_MAX bytes */
/* Of any length; takes the memory of `json`. True: the call has ended. False: on_gone will say. */
bool rpc_unary_send(struct rpc_unary *u, struct buf *json) NODISCARD;
void rpc_unary_fail(struct rpc_unary *u, enum connect_code code, const char *message);

/* --- calls that have their answer at once ------------------------------------------------- */

enum { RPC_ANSWER_MAX = 64 * 1024 * 1024 };

struct agent;
/* Appends the answer, of any length, or says why not (-1). */
typedef int rpc_quick_fn(struct agent *a, const json_t *message, struct buf *answer,
			 struct rpc_fault *fault);

void rpc_quick(struct agent *a, struct http_request *rq, unsigned int depth, rpc_quick_fn *run);
