/* kernel.h - one kernel: its process and the three channels to it.
 *
 * It is ready when it has answered a question on the shell channel *and* was heard on iopub: a
 * subscription may still be on its way when the answer is here.
 */
#pragma once

#include <sys/types.h>

#include "interp/kernel_message.h"
#include "interp/kernel_spec.h"
#include "interp/zsock.h"

enum {
	KERNEL_START_MS = 300 * 1000, /* from exec until it is ready; an emulated JVM is slow */
	KERNEL_ASK_MS = 250,          /* between two questions whether it is, once it answers */
	KERNEL_ASK_TICKS = 40,        /* of that time, before it does */
	KERNEL_KEY_SIZE = 65,
	KERNEL_FOLDER_SIZE = 80, /* the path of a unix socket has 108 */
};

enum kernel_channel { KERNEL_SHELL, KERNEL_IOPUB, KERNEL_CONTROL, KERNEL_CHANNELS };

struct kernel;
struct kernel_ops {
	void (*on_ready)(struct kernel *k);
	/* Of the shell or iopub. The message is borrowed. */
	void (*on_message)(struct kernel *k, enum kernel_channel from,
			   const struct kernel_message *m);
	/* It ended, or did not become ready. The owner closes it. */
	void (*on_death)(struct kernel *k, const struct err *why);
};

struct kernel_place { /* what all kernels of a server share */
	struct loop *loop;
	void *zmq;
	const char *run;        /* folder for connection files and sockets */
	const char *const *env; /* of the server, ends with NULL */
	const char *cwd;        /* where kernels start whose own folder is not there */
	const char *programs;   /* the folder that the server's program is in */
};

struct kernel { /* embedded by its owner; all zero: closed */
	const struct kernel_ops *ops;
	const struct kernel_place *place;
	pid_t pid;
	int pidfd;
	struct watch death;
	struct zsock channel[KERNEL_CHANNELS];
	struct timer ask, deadline;
	bool interrupt_message, ready, answered, heard;
	char key[KERNEL_KEY_SIZE], session[33], folder[KERNEL_FOLDER_SIZE];
	uint64_t asked; /* messages so far */
	unsigned int ticks;
};

int kernel_open(struct kernel *k, const struct kernel_place *p, const struct kernel_ops *ops,
		const struct kernel_spec *spec, const char *cwd, struct err *err) NODISCARD;
void kernel_close(struct kernel *k); /* kills it; a second time does nothing */

/* An execute_request; *ret_id names it. */
int kernel_execute(struct kernel *k, struct bytes code, bool silent, char ret_id[MESSAGE_ID_SIZE],
		   struct err *err) NODISCARD;
void kernel_interrupt(struct kernel *k);
void kernel_pause(struct kernel *k, bool on); /* what it publishes waits */

/* Who was killed is waited for here, when a child has ended. */
void kernels_reap(void);
