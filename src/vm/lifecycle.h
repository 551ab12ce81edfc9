/* lifecycle.h - the states of one microVM, and every legal step between them.
 *
 *	         +--> LOADING --+                     (restore: device state is read)
 *	NEW -> STARTING         +--> PAUSED <--> RUNNING
 *	         +--------------+                     (build: waits to boot)
 *
 *	any of them -> STOPPING -> GONE, or straight to GONE when QEMU is found dead
 *
 * Nothing runs before PAUSED was seen: only our own `cont` leads to RUNNING.
 */
#pragma once

enum vm_state {
	VM_NEW,
	VM_STARTING, /* QEMU is being reached */
	VM_LOADING,  /* device state is being read */
	VM_PAUSED,   /* QEMU said so */
	VM_RUNNING,
	VM_STOPPING, /* told to quit */
	VM_GONE,
	VM_STATES,
};

struct vm_life {
	enum vm_state state;
};

/* Enter `next`: the only writer. An illegal step is a bug in the caller and aborts. */
void vm_life_enter(struct vm_life *life, enum vm_state next);

const char *vm_state_name(enum vm_state s);
