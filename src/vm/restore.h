/* restore.h - from a QEMU that waits for device state to a sandbox with an identity.
 *
 *	monitor -> greeting [-> applied] -> loaded -> paused -> cont -> connected -> clock
 *	        -> identity -> health
 *
 * These are also the names in the machine's table of times. Everything that can overlap does: the
 * first commands leave before QEMU greets, the socket for the agent is asked for meanwhile.
 */
#pragma once

#include "vm/agent_dial.h"
#include "vm/agent_wake.h"
#include "vm/machine.h"

enum {
	RESTORE_MS = 60 * 1000,             /* all of it */
	RESTORE_AGENT_MS = 30 * 1000,       /* until the agent accepts */
	RESTORE_BOOT_MS = 180 * 1000,       /* all of it, for one that boots, */
	RESTORE_BOOT_AGENT_MS = 120 * 1000, /* and until its agent accepts */
};

struct restore_user;
struct restore_user_ops {
	/* Only with spec.apply: its memory is mapped. Write the saved pages into it, then
	 * restore_applied(). */
	void (*want_apply)(struct restore_user *u);
	/* Bring an unconnected socket of the sandbox's network: restore_socket(). Once. */
	void (*want_socket)(struct restore_user *u);
	/* Only with spec.hold: loaded, seen to be paused, not running. Call restore_go(). */
	void (*on_held)(struct restore_user *u);
	/* The last call. Success: it runs, the machine has no user. Failure: *err; the machine is
	 * closed, the process is the callee's to end. */
	void (*on_done)(struct restore_user *u, const struct agent_clock *clock,
			const struct err *err);
	/* Only without spec.identity: it runs, and all it lacks is who it is. Its clock is kept
	 * fresh for as long as it takes, then restore_identity(). Or restore_rehearse(), which
	 * makes that quicker, and then comes here again. */
	void (*on_waiting)(struct restore_user *u);
};
struct restore_user { /* embedded by the owner */
	const struct restore_user_ops *ops;
};

struct restore_spec { /* what it points to is borrowed until the restore is over */
	struct restore_user *user;
	const char *qmp_path, *state_uri;
	struct addr agent;
	const struct agent_identity *identity; /* NULL: comes later */
	bool hold, check_health;
	bool apply; /* saved pages come before the state is loaded */
	bool boot;  /* no state at all: the guest boots from its disk */
};

struct restore {                   /* embedded by the owner; all zero: nothing under way */
	struct restore_user *user; /* NULL: nothing is */
	struct machine *machine;
	struct machine_user machine_user;
	struct restore_spec spec;
	struct timer deadline;
	struct qmp_call capabilities, incoming, status, cont;
	struct agent_dial dial;
	struct agent_wake wake;
	int socket; /* -1: not here yet, or in use */
	bool may_run;
};

/* The machine must be new and outlive the restore. Failure (-1): no callback follows. */
int restore_start(struct restore *r, struct machine *m, struct loop *l,
		  const struct restore_spec *spec, struct err *err) NODISCARD;

/* These may fail the restore, and then call on_done before they return. */
void restore_socket(struct restore *r, int fd);                            /* takes fd */
void restore_applied(struct restore *r);                                   /* after want_apply */
void restore_go(struct restore *r);                                        /* after on_held */
void restore_rehearse(struct restore *r, const struct agent_identity *id); /* after on_waiting */
void restore_identity(struct restore *r, const struct agent_identity *id); /* after on_waiting */
void restore_fail(struct restore *r, const struct err *err);

void restore_cancel(struct restore *r); /* closes the machine; no callback; fine when over */
