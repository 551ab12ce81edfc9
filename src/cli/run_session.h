/* run_session.h - a sandbox to run code in, made or found by its id, and what ends the wait for it.
 *
 * Ctrl-C, SIGTERM and SIGHUP are read from a descriptor, so that a sandbox that was made is ended
 * whatever the program was doing. While one is being made the first of them waits for its id.
 */
#pragma once

#include "cli/client.h"
#include "net/timer.h"
#include "wire/json.h"

enum {
	RUN_ID_MAX = 63,
	RUN_USER_MAX = 64,
	RUN_TOKEN_MAX = 255,
	RUN_ASK_MS = 180 * 1000, /* one request: a create may wait for its template */
	RUN_ANSWER_MAX = 1024 * 1024,
	RUN_SPARE_S = 60, /* a sandbox outlives its execution so long, if nobody ends it */
};

#define RUN_PORT       "49999" /* of the code interpreter in a sandbox */
#define RUN_AGENT_PORT "49983" /* of the agent */

struct guest_process;
struct run_execution;
struct run_session {
	const struct cli *c;
	struct client client;
	struct client_place api, interp, agent; /* the API; of the sandbox */
	char as[RUN_USER_MAX * 2 + 16];         /* the user inside, for the agent */
	char id[RUN_ID_MAX + 1], token[RUN_TOKEN_MAX + 1], traffic[RUN_TOKEN_MAX + 1];
	bool made; /* here: it is ours to end */

	int signals; /* -1: none are waited for */
	struct watch watch;
	int signo;    /* the first that came; 0: none */
	bool patient; /* the next one waits for the answer */

	/* one request */
	struct client_exchange x;
	struct timer deadline;
	struct buf answer;
	struct run_execution *execution; /* whose it is; NULL: a small one */
	struct guest_process *process;   /* the same */
	bool over, late;
	struct err why; /* ERR_NONE: there is an answer */
};

int run_session_open(struct run_session *s, const struct cli *c, struct err *err) NODISCARD;
void run_session_close(struct run_session *s);

/* A new sandbox of c->template; or the one with this id, which is resumed if it is paused. It lives
 * for `seconds` from now, at least. Interrupted: -1 and s->signo. */
int run_session_make(struct run_session *s, uint64_t seconds, struct err *err) NODISCARD;
int run_session_find(struct run_session *s, const char *id, uint64_t seconds,
		     struct err *err) NODISCARD;
int run_session_kill(struct run_session *s, struct err *err) NODISCARD; /* if it was made here */

/* One request to the API as a client, or with a message to the agent of the sandbox, which answers
 * once; the answer is in s->answer. */
int run_session_ask(struct run_session *s, const char *method, const char *target,
		    const json_t *body, struct err *err) NODISCARD;
int run_session_ask_agent(struct run_session *s, const char *target, const json_t *message,
			  struct err *err) NODISCARD;
/* Any request: 0 when there is an answer, s->answer, whatever its status, s->x.status. */
int run_session_send(struct run_session *s, const struct client_ask *ask,
		     struct err *err) NODISCARD;
/* Takes what a create, a fork or a connect answered: the session's sandbox is that one. */
int run_session_take(struct run_session *s, const json_t *answer, struct err *err) NODISCARD;
/* To the agent, but for the method, the target and the body. */
void run_session_to_agent(const struct run_session *s, const char *type, struct client_ask *ret);

int run_session_signal(struct run_session *s); /* that has come; 0: none */

/* Until the exchange that s->x has begun is over or a signal came; `ms`: no longer than that. */
void run_session_wait(struct run_session *s, uint64_t ms);
void run_session_end_wait(struct run_session *s, const struct err *err); /* from a callback */
/* The answer to a request that was refused, as an error; it is in s->answer. */
int run_session_refused(const struct run_session *s, const char *who, struct err *err);
