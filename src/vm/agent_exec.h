/* agent_exec.h - start a process in the guest and collect what it says, within limits. */
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

struct agent_exec_spec {           /* borrowed for the call that starts it */
	struct bytes command;      /* for bash -l -c */
	struct bytes user;         /* empty: the sandbox's default */
	struct bytes access_token; /* may be empty */
	json_t *env;               /* object of strings, or NULL */
	uint64_t timeout_ms;       /* of the process; the agent kills it. 0: none */
	uint64_t deadline_ms;      /* of all of it */
	bool detach;               /* done as soon as it runs; it goes on */
};

struct agent_exec_result {
	uint32_t pid;
	int32_t exit_code;
	bool exited;                       /* false: ended by a signal, or detached */
	char status[AGENT_STATUS_MAX + 1]; /* "exit status 0" */
	struct bytes out, err;             /* borrowed for the call */
	bool cut_off;                      /* more than AGENT_OUTPUT_MAX was said */
};

struct agent_exec;
typedef void agent_exec_done_fn(struct agent_exec *e, const struct agent_exec_result *ret,
				const struct err *err);
struct agent_exec { /* embedded by the caller; all zero: nothing under way */
	/* Once. The connection is closed. */
	agent_exec_done_fn *on_done;
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
void agent_exec_cancel(struct agent_exec *e); /* fine when nothing is under way */
