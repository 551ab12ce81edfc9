/* link.h - ask another daemon of this host, without waiting for it; it may be gone for a while and
 * come back.
 *
 * Datagrams over a SOCK_SEQPACKET unix socket, which leave in the order asked; what is sent again
 * leaves after them, in any order. Any number of calls may be under way; a reply finds its call by
 * its tag, and those whose connection ended fail in any order. The link connects again by itself.
 * Each connection begins with a hello (base/link_hello.h); where the two speak no common version
 * every call fails with ERR_VERSION, until one of them is replaced.
 *
 * What is said is the owner's: a request begins with struct link_head, and so does a reply.
 */
#pragma once

#include "base/fdmsg.h"
#include "base/link_hello.h"
#include "net/timer.h"
#include "net/watch.h"

enum {
	LINK_RETRY_MS = 100,     /* between two attempts to connect */
	LINK_MISMATCH_MS = 1000, /* the same, to one that speaks another version */
	LINK_HELLO_MS = 10 * 1000,
	LINK_LISTS = 1024, /* of calls that were sent; a power of 2 */
};

#define LINK_EVER UINT64_MAX /* in place of milliseconds, or of a number */

struct link_head {
	uint64_t tag;  /* of a reply, 0: nobody asked for it */
	uint32_t what; /* a request's verb; a reply's enum err_code */
};

/* Which words are spoken, and the limits; lives as long as the link. */
struct link_words {
	const char *name, *own_name; /* of the daemon, and of who asks */
	uint32_t min, max;           /* versions of the protocol */
	size_t request_max, reply_min, reply_max;
	size_t msg, msg_size, sys; /* of a reply: where its error is, in words and as errno; 0: no
				    * errno */
	bool named;                /* errors begin with its name */
	size_t calls_max;          /* without a reply yet, but for those that wait for ever */
	size_t sent_max;           /* of these, at once with the daemon; 0: no limit */
	size_t fds_max;            /* with a reply */
	unsigned int batch;        /* replies taken per turn of the loop */
	uint64_t silence_ms; /* no answer at all for so long: the connection is given up; 0: for
				ever */
	int room;            /* wished for in the kernel, in bytes; 0: as it is */
};

struct link;
struct link_call;

struct link_reply { /* borrowed for the length of the callback */
	struct link *link;
	struct bytes request; /* what was asked */
	struct bytes head;    /* the fixed part; empty: no reply came */
	struct bytes after;   /* what is behind it */
	int *fds; /* the callee takes what it wants with take_fd(), the rest is closed */
	size_t n_fds;
	const struct err *err; /* also of a reply that is an error; then nothing is behind it */
};

/* The one descriptor that came along, borrowed, or -1; and the same taken. */
static inline int link_reply_fd(const struct link_reply *r)
{
	return r->n_fds > 0 ? r->fds[0] : -1;
}

static inline int link_reply_take_fd(const struct link_reply *r)
{
	return r->n_fds > 0 ? take_fd(&r->fds[0]) : -1;
}

typedef void link_done_fn(struct link_call *c, const struct link_reply *r);

struct link_ops { /* each may be NULL, but for on_up and on_down */
	/* A connection is there. It is not up before the owner says link_up(). NULL: it is at once
	 */
	void (*on_hello)(struct link *l);
	void (*on_up)(struct link *l);
	/* What was under way has failed, or waits to be sent again. Events may be missed until
	 * on_up. */
	void (*on_down)(struct link *l);
	void (*on_unasked)(struct link *l, const struct link_reply *r);
	bool (*reply_ok)(struct bytes reply); /* false: the connection ends */
	/* Before on_done, of a reply that is no error. True: it is not the last, the call goes on;
	 * it may have been cancelled meanwhile. */
	bool (*on_more)(struct link_call *c, const struct link_reply *r);
	/* It is to be sent another time: change what it says. */
	void (*on_again)(struct link_call *c);
	/* A request that was sent ends without its reply: late, failed or cancelled. */
	void (*on_unanswered)(struct link *l, struct bytes request);
	/* It was closed, and none of its callbacks runs: an owner on the heap goes. */
	void (*on_free)(struct link *l);
};

enum link_call_state { LINK_WAITING, LINK_SENT, LINK_RESTING, LINK_FAILING };

struct link_call {             /* embedded by the caller; all zero: nothing under way */
	link_done_fn *on_done; /* once, from the loop */
	struct link *link;     /* NULL: not under way */
	enum link_call_state state;
	uint64_t tag;
	uint64_t until_ms, wait_ms, answer_ms, busy_ms; /* as in struct link_ask */
	unsigned int n_sends, sends_max;
	bool first, owned; /* `owned`: by the link, which frees it */
	uint8_t *message;
	size_t len;
	int fds[FDMSG_FDS_MAX];
	size_t n_fds;
	struct timer timer;
	struct link_call *next, **prev;
};

struct link_ask {
	struct bytes request, text; /* copied; the tag is filled in */
	const int *fds;             /* taken in any case */
	size_t n_fds;
	uint64_t deadline_ms; /* in all; 0: none. Then ERR_TIMEOUT */
	uint64_t wait_ms;     /* for the daemon to be there; 0: not at all. Then ERR_UNAVAILABLE */
	uint64_t answer_ms;   /* for the answer to what was sent; 0: as the deadline */
	uint64_t busy_ms;     /* answered with ERR_UNAVAILABLE: asked again after so long; 0: not */
	unsigned int sends_max; /* each over a connection that then ended; 0: once */
	bool first;             /* of a connection that is not up yet; never one too many */
};

struct link { /* embedded by the owner, who reads it and changes nothing */
	const struct link_words *words;
	const struct link_ops *ops;
	struct loop *loop;
	const char *path; /* "": there is none, and it counts as up */
	int sock;         /* -1: not connected */
	bool up, greeted;
	bool mismatch;         /* `peer` speaks no version that we do */
	bool told, told_hello; /* in the log, since it was up: nobody is there; it says no hello */
	bool closed;
	struct link_hello peer, told_of; /* the last it said; whose mismatch is in the log */
	uint64_t down_since_ms, next_tag;
	struct watch ready;
	struct timer retry, quiet;
	struct {
		struct link_call *first, **last;
	} waiting; /* to be sent, in order */
	struct link_call *sent[LINK_LISTS];
	struct link_call *resting, *failing;
	size_t n_calls, n_sent;
	unsigned int held; /* by callbacks that run now */
	uint8_t *in;       /* room for a reply */
};

void link_open(struct link *l, struct loop *loop, const char *path, const struct link_words *words,
	       const struct link_ops *ops);
/* No callback follows, of the link or of its calls. From inside a callback too; then the struct
 * must stay until that has returned (on_free). */
void link_close(struct link *l);
bool link_exists(const struct link *l); /* false: none was configured */

/* Failure (-1): on_done will not come. `c` NULL: nobody waits; on_done may be NULL, too. */
int link_ask(struct link *l, struct link_call *c, const struct link_ask *what,
	     link_done_fn *on_done, struct err *err) NODISCARD;
void link_cancel(struct link_call *c); /* on_done will not come; fine when over */

void link_up(struct link *l);      /* after on_hello: it may be asked */
void link_hang_up(struct link *l); /* as if the daemon had, with all that follows from the loop */
/* Why it cannot be asked: it is gone, or speaks another version. Returns -1. */
int link_why(const struct link *l, struct err *err);
