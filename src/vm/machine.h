/* machine.h - one microVM as its owner sees it: a state, a monitor, a table of times.
 *
 * A build or a restore takes the machine over by becoming its user, and gives it back when it is
 * over. The process itself is someone else's to start and to end; qmp_path is where it listens.
 */
#pragma once

#include "net/dial.h"
#include "vm/lifecycle.h"
#include "vm/qmp_link.h"
#include "vm/steps.h"

enum {
	MACHINE_DIAL_MS = 5 * 1000,     /* the socket listens before QEMU starts */
	MACHINE_COMMAND_MS = 10 * 1000, /* one QMP command, on a host that crawls */
	MACHINE_STOP_MS = 120 * 1000,   /* `stop`: as long as its disk takes to be written back */
};

struct machine_user;
struct machine_user_ops {                         /* the first two may be NULL */
	void (*on_open)(struct machine_user *u);  /* commands may be sent, QEMU may still start */
	void (*on_ready)(struct machine_user *u); /* it greeted */
	void (*on_event)(struct machine_user *u, const struct qmp_message *event); /* borrowed */
	/* QEMU ended, broke the rules or cannot be reached: the state is VM_GONE, the process may
	 * still be there. The last call. */
	void (*on_gone)(struct machine_user *u, const struct err *err);
};
struct machine_user {
	const struct machine_user_ops *ops;
};

struct machine { /* embedded by the owner; all zero: new */
	struct vm_life life;
	struct steps steps; /* begun by the owner, who asked for the process */
	struct loop *loop;
	struct machine_user *user; /* NULL: nobody; events are lost, the state is kept */
	struct dial dial;
	struct qmp_link *qmp; /* NULL: not yet, or no more */
	struct qmp_link_user qmp_user;
	unsigned int qemu_major, qemu_minor, qemu_micro;
};

/* From VM_NEW to VM_STARTING; on_open or on_gone follows. Failure (-1): nothing follows. */
int machine_connect(struct machine *m, struct loop *l, const char *qmp_path, struct machine_user *u,
		    struct err *err) NODISCARD;
void machine_set_user(struct machine *m, struct machine_user *u); /* NULL is fine */

/* As qmp_link_call(), with MACHINE_COMMAND_MS; an error when the link is gone. */
int machine_ask(struct machine *m, struct qmp_call *c, const char *command, json_t *arguments,
		qmp_done_fn *on_done, struct err *err) NODISCARD;
/* `add-fd` into that set; `fd` stays the caller's. */
int machine_add_fd(struct machine *m, struct qmp_call *c, int fd, int set, qmp_done_fn *on_done,
		   struct err *err) NODISCARD;
/* `stop`, with MACHINE_STOP_MS: QEMU writes back what it holds of the disk before it answers. */
int machine_stop(struct machine *m, struct qmp_call *c, qmp_done_fn *on_done,
		 struct err *err) NODISCARD;
/* The state of all devices, everything but the memory, into a file that QEMU can open. The guest
 * must be stopped, and stays so. */
int machine_save(struct machine *m, struct qmp_call *c, const char *file, qmp_done_fn *on_done,
		 struct err *err) NODISCARD;

/* No callback follows; the state is VM_GONE. A second time does nothing. */
void machine_close(struct machine *m);

/* The status in an answer to query-status: "paused". False when there is none. */
bool machine_status(const json_t *ret, char *into, size_t size);

/* QEMU stopped the guest: a disk of the host is full. */
bool machine_no_space(const struct qmp_message *event);

/* The guest has ended, or QEMU is told to; "guest-reset" and the like. A VM that was restored
 * stands still then, until it is stopped. */
bool machine_shut_down(const struct qmp_message *event, struct bytes *ret_reason);

/* Of a MIGRATION event: the new status. Empty when it is another event. */
struct bytes machine_migration(const struct qmp_message *event);
