/* context.h - a kernel with a name, and the executions that wait for it.
 *
 * One execution at a time. Around the user's code there may be code of ours, which nobody sees:
 *
 *	warm     once, in kernels that are there from the start: what a first execution needs is in
 *	         memory when a template is made of it
 *	envs     the agent is asked for the sandbox's variables: once in the life of a kernel
 *	before   these are set, the kernel becomes its own (language_own()), the variables of this
 *	         execution are set
 *	main     the user's code
 *	after    the variables are as before; the client was answered already
 *
 * Code whose client leaves is interrupted. Code whose client was left behind, because this machine
 * was paused or copied, goes on, and nobody hears it; what had not begun does not begin.
 *
 * A kernel that dies is replaced, and so is one that does not let itself be interrupted.
 */
#pragma once

#include "base/uuid.h"
#include "interp/envs.h"
#include "interp/execution.h"
#include "interp/kernel.h"

enum {
	CONTEXTS_MAX = 64,
	CONTEXT_MEMORY_MIB = 96, /* a kernel of Python has 51 of its own when it starts */
	CONTEXTS_HELD_MAX = 128 * 1024 * 1024, /* bytes of requests that are read, wait or run */
	CONTEXT_WAITING_MAX = 256,             /* executions */
	CONTEXT_CWD_MAX = 1024,                /* the list of all contexts is one answer */
	CONTEXT_CODE_MAX = 4 * 1024 * 1024,    /* of ours, around the user's */
	/* between the two signs that an execution is over: for the reply, which is small; and for
	 * "idle", which comes behind all that was published */
	CONTEXT_GRACE_MS = 2000,
	CONTEXT_IDLE_GRACE_MS = 10 * 1000,
	CONTEXT_OURS_MS = 20 * 1000, /* for code of ours; then it is interrupted */
	CONTEXT_FIRST_MS = 100,      /* before the first of them: some kernels die of one that comes
				       before      they run the code */
	CONTEXT_INTERRUPT_MS = 1000, /* between two interrupts of one that nobody waits for */
	CONTEXT_INTERRUPTS_MAX = 10, /* then the kernel is replaced */
	CONTEXT_STARTS_MAX = 3,      /* of a kernel that dies before it is ready */
};

struct context_waiter { /* a client that waits for the kernel to be ready */
	struct http_handler handler;
	struct http_request *rq;
	bool created; /* told what was created; else: null */
	struct context_waiter *next, **prev;
};

enum context_step { STEP_NONE, STEP_WARM, STEP_ENVS, STEP_BEFORE, STEP_MAIN, STEP_AFTER };

struct contexts;
struct context {
	struct contexts *all;
	struct context *next, **prev;
	char id[UUID_SIZE], language[KERNEL_NAME_MAX + 1];
	char *cwd;
	bool is_default; /* of its language */
	struct kernel kernel;
	bool ready, own;
	bool cold;           /* is to be warmed before it is ready */
	unsigned int starts; /* since it was last ready */
	struct {
		struct execution *first, **last;
	} waiting;
	size_t n_waiting;
	struct context_waiter *waiters;
	struct execution *current; /* NULL, too, while steps go on for one who left */
	enum context_step step;
	char asked[MESSAGE_ID_SIZE]; /* of this step */
	bool idle;
	json_t *reply;      /* to it; NULL: not yet */
	json_t *envs, *env; /* of the sandbox, NULL: not known; of this execution */
	struct envs_ask ask;
	struct timer grace, nudge;
	unsigned int interrupts;
};

struct contexts { /* embedded by the server */
	struct kernel_place place;
	struct kernel_dirs dirs;
	const struct addr *agent; /* NULL: there is none to ask */
	const char *partings;     /* a file, see partings.h */
	struct {
		struct context *first, **last;
	} list; /* the newest last */
	size_t n;
	size_t held; /* see CONTEXTS_HELD_MAX */
};

void contexts_init(struct contexts *all);
void contexts_done(struct contexts *all);
struct context *context_find(struct contexts *all, struct bytes id);
struct context *context_default(struct contexts *all, const char *language); /* NULL: none yet */

/* Begins to start a kernel. ERR_EXHAUSTED: too many; ERR_NOT_FOUND: no such kernel. */
int context_new(struct contexts *all, const char *language, struct bytes cwd, struct context **ret,
		struct err *err) NODISCARD;
/* As long as it was not told that its kernel is ready: code is run in that first. */
void context_warm(struct context *c);
void context_delete(struct context *c); /* whoever waits is told */

/* These three take the request; code and env are taken, too. */
void context_execute(struct context *c, struct http_request *rq, json_t *code, json_t *env);
void context_restart(struct context *c, struct http_request *rq);
void context_wait(struct context *c, struct http_request *rq); /* and then tell what it is */

json_t *context_json(const struct context *c);
