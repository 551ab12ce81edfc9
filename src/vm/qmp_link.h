/* qmp_link.h - a conversation with one QEMU over its monitor socket.
 *
 *	qmp_link_open() -> qmp_link_call() ... -> on_done each, in order -> qmp_link_close()
 *
 * Opening sends qmp_capabilities, and commands may follow at once: QEMU reads them when it is up,
 * which saves a round trip each. The guest may own QEMU, so nothing it says is trusted: garbage,
 * a flood, an answer nobody asked for or an early end break the link, which then fails every
 * command and says on_gone. A command without an answer in its time breaks it too, for answers
 * come in order.
 */
#pragma once

#include "net/stream.h"
#include "net/timer.h"
#include "wire/qmp.h"

enum {
	QMP_LINK_CALLS_MAX = 16,          /* commands without an answer yet */
	QMP_LINK_GREETING_MS = 30 * 1000, /* for greeting and capabilities: it may be starting */
	QMP_LINK_WINDOW_MS = 1000,        /* in which it may say at most: */
	QMP_LINK_WINDOW_LINES = 1000,     /* so many messages, */
	QMP_LINK_WINDOW_BYTES = 2 * 1024 * 1024 /* of so many bytes */
};

struct qmp_link;

struct qmp_link_user;
struct qmp_link_ops {
	/* Greeting and capabilities are done. `hello` is borrowed; it has QEMU's version. */
	void (*on_ready)(struct qmp_link_user *u, const struct qmp_message *hello);
	void (*on_event)(struct qmp_link_user *u, const struct qmp_message *event); /* borrowed */
	/* The last call, after every command has failed. The owner now closes. */
	void (*on_gone)(struct qmp_link_user *u, const struct err *err);
};
struct qmp_link_user { /* embedded by the owner */
	const struct qmp_link_ops *ops;
};

struct qmp_call;
typedef void qmp_done_fn(struct qmp_call *c, const json_t *ret, const struct err *err);
struct qmp_call { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop: what QEMU returned (any JSON value, borrowed), or NULL and why. An
	 * error that QEMU answered is ERR_INVALID; any other means that the link is broken. */
	qmp_done_fn *on_done;
	struct qmp_link *link; /* NULL: not under way */
	const char *command;   /* a literal */
	uint64_t id;
	struct timer deadline;
	struct qmp_call *next, **prev;
};

/* Takes the stream in any case. */
int qmp_link_open(struct stream *s, struct qmp_link_user *u, struct qmp_link **ret,
		  struct err *err) NODISCARD;

struct qmp_command {
	const char *name;  /* a literal */
	json_t *arguments; /* may be NULL; stolen, also on failure */
	uint64_t deadline_ms;
};
/* Failure (-1): on_done will not come. */
int qmp_link_call(struct qmp_link *l, struct qmp_call *c, const struct qmp_command *command,
		  qmp_done_fn *on_done, struct err *err) NODISCARD;

/* For the `add-fd` that follows: QEMU keeps it until then. It stays the caller's. */
int qmp_link_pass_fd(struct qmp_link *l, int fd, struct err *err) NODISCARD;

/* No callback comes any more, neither of the link nor of its commands; their owners may be freed
 * at once, also from inside a callback. NULL is fine. */
void qmp_link_close(struct qmp_link *l);
