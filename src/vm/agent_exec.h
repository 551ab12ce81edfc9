/* agent_exec.h - start a process in the guest; what it says is collected within limits, or handed
 * on as it comes. */
#pragma once

#include "http/client.h"
#include "vm/agent_identity.h"
#include "wire/json.h"

enum {
	AGENT_OUTPUT_MAX =
		4 * 1024 * 1024,        /* kept of each of stdout and stderr; the rest is lost */
	AGENT_MESSAGE_MAX = 256 * 1024, /* one message of the stream */
	AGENT_STATUS_MAX = 127,
};

struct agent_exec;
enum agent_output { AGENT_STDOUT, AGENT_STDERR };
/* As it comes, cut anywhere, at most AGENT_MESSAGE_MAX at once; borrowed for the call. From inside,
 * the process may be paused and cancelled, and its owner must not be freed. */
typedef void agent_output_fn(struct agent_exec *e, enum agent_output which, struct bytes piece);

struct agent_exec_spec {            /* borrowed for the call that starts it */
	struct bytes command;       /* for bash -l -c */
	struct bytes user;          /* empty: the sandbox's default */
	struct bytes cwd;           /* empty: the sandbox's default */
	struct bytes access_token;  /* may be empty */
	json_t *env;                /* object of strings, or NULL */
	uint64_t timeout_ms;        /* of the process; the agent kills it. 0: none */
	uint64_t deadline_ms;       /* of all of it */
	bool detach;                /* done as soon as it runs; it goes on */
	agent_output_fn *on_output; /* or NULL */
	size_t keep_max; /* collected of each of stdout and stderr; 0: AGENT_OUTPUT_MAX */
};

struct agent_exec_result {
	uint32_t pid;
	int32_t exit_code;
	bool exited;                       /* false: ended by a signal, or detached */
	char status[AGENT_STATUS_MAX + 1]; /* "exit status 0" */
	struct bytes out, err;             /* borrowed for the call */
	bool cut_off;                      /* more was said than is collected */
	uint64_t said;                     /* bytes, of both; collected or not */
};

typedef void agent_exec_done_fn(struct agent_exec *e, const struct agent_exec_result *ret,
				const struct err *err);
struct agent_exec { /* embedded by the caller; all zero: nothing under way */
	/* Once. The connection is closed. */
	agent_exec_done_fn *on_done;
	agent_output_fn *on_output;
	struct http_client *client;
	struct http_exchange *exchange;
	struct http_reply reply;
	struct buf in, out, err;
	struct agent_exec_result result;
	bool detach, started, ended;
};

/* Takes the stream in any case. */
int agent_exec_start(struct agent_exec *e, struct stream *s, const struct agent_exec_spec *spec,
		     agent_exec_done_fn *on_done, struct err *err) NODISCARD;
/* Nothing more is read, so that the process waits when its pipe is full. What was read already, up
 * to AGENT_MESSAGE_MAX, still comes. */
void agent_exec_pause(struct agent_exec *e, bool on);
/* No callback follows; fine when nothing is under way. The process goes on, until
 * timeout_ms or its sandbox ends. */
void agent_exec_cancel(struct agent_exec *e);
