/* daemon_client.h - a daemon that holds something for our sandboxes, as long as it takes.
 *
 * Fixed messages over a SOCK_SEQPACKET socket; they arrive in the order they were sent. Each
 * connection begins with a message that makes it forget all; when that is answered on_up is told,
 * and everything is brought anew by the owner.
 */
#pragma once

#include "base/bytes.h"
#include "net/timer.h"
#include "net/watch.h"

enum {
	DAEMON_RETRY_MS = 100,
	DAEMON_CALL_MS = 10 * 1000, /* no answer for so long: the connection is given up */
	DAEMON_QUEUE_MAX = 8192,    /* messages it has not taken or not answered yet */
	DAEMON_WORDS_MAX = 512,     /* of one message, either way */
	DAEMON_FDS_MAX = 2,
};

/* How each request, and each reply, begins. */
struct daemon_request {
	uint32_t version, verb;
	uint64_t tag; /* filled in */
	uint32_t slot;
};
struct daemon_reply {
	uint64_t tag;  /* 0: nobody asked, see on_unasked */
	uint32_t code; /* enum err_code */
};

/* What is spoken with it. */
struct daemon_words {
	const char *name;
	size_t request, reply;       /* bytes of each */
	size_t msg, msg_size;        /* of a reply: where its error is, in words */
	struct daemon_request hello; /* that makes it forget all */
};

struct daemon_client;
struct daemon_client_ops {
	void (*on_up)(struct daemon_client *k);
	void (*on_down)(struct daemon_client *k);
	void (*on_unasked)(struct daemon_client *k, struct bytes reply); /* NULL: it never does */
};

struct daemon_message;
struct daemon_call { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop. ERR_UNAVAILABLE: it is gone, and with it all it held. */
	void (*on_done)(struct daemon_call *c, const struct err *err);
	struct daemon_message *message; /* NULL: not under way */
	int *came; /* during on_done: the descriptor that came along, to be taken; or -1 */
};

struct daemon_client {
	const struct daemon_client_ops *ops;
	const struct daemon_words *words;
	struct loop *loop;
	const char *path; /* "": there is none, and it counts as up */
	int sock;         /* -1: not connected */
	struct watch ready;
	struct timer retry, late;
	struct daemon_call hello;
	bool up, told;
	uint64_t down_since_ms, next_tag;
	struct daemon_message *first, **last, *unsent; /* `unsent`: the first that is not sent */
	size_t n_messages;
};

void daemon_client_open(struct daemon_client *k, struct loop *l, const char *path,
			const struct daemon_words *words, const struct daemon_client_ops *ops);
void daemon_client_close(struct daemon_client *k);
bool daemon_exists(const struct daemon_client *k); /* false: none was configured */

struct daemon_asked {         /* descriptors are taken in any case */
	struct bytes request; /* borrowed for the call */
	int fds[DAEMON_FDS_MAX];
	size_t n_fds;
};

/* Fails when it is not up. `c` NULL: no answer is waited for. */
int daemon_ask(struct daemon_client *k, struct daemon_call *c, const struct daemon_asked *what,
	       void (*on_done)(struct daemon_call *c, const struct err *err),
	       struct err *err) NODISCARD;
void daemon_call_cancel(struct daemon_call *c);
