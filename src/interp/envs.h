/* envs.h - the variables that a sandbox was created with: the agent of this machine has them. */
#pragma once

#include "http/call.h"
#include "net/dial.h"
#include "wire/json.h"

enum {
	ENVS_MS = 5000,         /* to be told them; else the code runs without */
	ENVS_MAX = 1024 * 1024, /* bytes of them */
	ENVS_TOKEN_SIZE = 256,
};

struct envs_ask;
/* `envs` is the callee's, an object of strings; NULL: they were not to be had. */
typedef void envs_done_fn(struct envs_ask *a, json_t *envs);
struct envs_ask { /* embedded by the caller; all zero: nothing under way */
	envs_done_fn *on_done;
	struct dial dial;
	struct http_call call;
	char token[ENVS_TOKEN_SIZE]; /* "": none. A copy: who showed it may go meanwhile */
};

int envs_ask_start(struct envs_ask *a, struct loop *l, const struct addr *agent, const char *token,
		   envs_done_fn *on_done, struct err *err) NODISCARD;
void envs_ask_cancel(struct envs_ask *a); /* on_done will not come */
