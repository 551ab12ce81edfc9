/* execution.h - one POST /execute: the client's end of it.
 *
 * Lines go to the client as fast as it reads. What does not fit is kept here, and meanwhile the
 * kernel is not listened to: so the memory of one message is all that it takes.
 */
#pragma once

#include "http/request.h"
#include "interp/envs.h"
#include "net/timer.h"
#include "wire/json.h"

enum {
	EXECUTION_KEEPALIVE_MS = 5000,    /* of silence; then a line that says nothing */
	EXECUTION_QUEUE_MAX = 128 * 1024, /* bytes given to the connection at a time */
};

struct execution;
struct execution_ops {
	/* What waited has left: the kernel may go on. */
	void (*on_flushed)(struct execution *x);
	/* The client has gone, or was left behind. The owner frees it, now or later. */
	void (*on_gone)(struct execution *x);
};

struct execution {
	struct http_handler handler;
	const struct execution_ops *ops;
	void *owner;             /* the context */
	struct http_request *rq; /* NULL: nobody is there any more */
	struct timer keepalive;
	struct buf out; /* lines that wait */
	size_t sent;    /* of them */
	bool ending;    /* with the last line */
	bool errored;
	const char *partings_file;
	uint64_t partings;           /* when it came */
	json_t *code, *env;          /* owned: a string; an object of strings or NULL */
	size_t size, *held;          /* bytes of these, counted there while it lives */
	char token[ENVS_TOKEN_SIZE]; /* of the sandbox, that the client showed; or empty */
	struct execution *next, **prev;
};

/* What all of them are made for. */
struct execution_place {
	struct loop *loop;
	const struct execution_ops *ops;
	void *owner;
	const char *partings_file;
	size_t *held; /* bytes of all their code and variables, while they live */
};

/* Takes the request and both values. */
struct execution *execution_new(const struct execution_place *p, struct http_request *rq,
				json_t *code, json_t *env);
/* Is its client in another network than this machine by now? */
bool execution_left_behind(const struct execution *x);
void execution_free(struct execution *x); /* resets the connection if it was not ended */

void execution_begin(struct execution *x); /* the head of the answer */
/* To send what was appended to x->out. False: it waits, on_flushed will come. */
bool execution_flush(struct execution *x);
void execution_end(struct execution *x); /* after what waits: the last line. It frees itself. */
/* Instead of an answer: a status and a text. It frees itself. */
void execution_refuse(struct execution *x, unsigned int status, const char *text);
