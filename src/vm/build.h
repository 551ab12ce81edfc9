/* build.h - from a QEMU that waits to boot to a sealed template.
 *
 *	monitor -> greeting -> overlay -> cont -> healthy [-> provisioned] [-> trusted]
 *	        [-> packages] [-> started]
 *	        [-> ready] -> frozen -> settled -> stopped -> saved -> quit -> (the caller ends it)
 *-> sealed
 *
 * These are also the names in the machine's table of times.
 */
#pragma once

#include "vm/agent_dial.h"
#include "vm/agent_exec.h"
#include "vm/agent_link.h"
#include "vm/machine.h"
#include "vm/template_job.h"

enum {
	BUILD_BOOT_MS = 120 * 1000,         /* until the agent is healthy, under emulation */
	BUILD_PACKAGES_MS = 3 * 60 * 1000,  /* until it has named its package hosts */
	BUILD_PROVISION_MS = 3 * 60 * 1000, /* until an image has what sandboxes count on */
	BUILD_TRUST_MS = 8 * 60 * 1000,     /* until its stores have been written: Java, emulated */
	BUILD_START_MS = 60 * 1000,         /* until the start command runs */
	BUILD_READY_MS = 120 * 1000,        /* until the ready command ends */
	BUILD_FREEZE_MS = 60 * 1000, /* the agent itself allows 200 ms, then writes back its disk */
	BUILD_SETTLE_MS = 200,       /* between the two, for the guest to go idle */
	BUILD_SAVE_MS = 60 * 1000,   /* the device state */
	BUILD_OVERLAY_MS = 30 * 1000,
	BUILD_MS = 10 * 60 * 1000, /* all of it */
};

struct build_user;
struct build_user_ops {
	/* Bring an unconnected socket of its network: build_socket(). One after the other. */
	void (*want_socket)(struct build_user *u);
	/* QEMU has quit. End the process for good, then build_stopped(). Once. */
	void (*want_stop)(struct build_user *u);
	/* The last call. Success: what was written. Failure: the process is the callee's to end. */
	void (*on_done)(struct build_user *u, const struct manifest *m, const struct err *err);
};
struct build_user { /* embedded by the owner */
	const struct build_user_ops *ops;
};

struct build_spec { /* what it points to is borrowed until the build is over */
	struct build_user *user;
	const char *qmp_path, *overlay_node;
	const char *state_file; /* where QEMU writes its device state */
	uint64_t disk_bytes;    /* the size of the overlay */
	struct addr agent;
	bool provision;    /* its disk is of an image: provision.h */
	struct bytes ca;   /* PEM that its guests trust (trust_ca.h); or none */
	bool ask_packages; /* what the manifest's `packages` are */
	struct bytes start_command, start_user; /* no command: none */
	struct bytes ready_command; /* ends with status 0 when it is ready to be taken */
	struct manifest manifest;   /* but for the files and the kernel's version */
};

struct build; /* one build */

/* The machine must be new and outlive the build. Failure (-1): no callback follows. */
int build_start(struct machine *m, struct loop *l, const struct build_spec *spec,
		struct build **ret, struct err *err) NODISCARD;

/* These may fail the build, and then call on_done before they return. */
void build_socket(struct build *b, int fd); /* takes fd */
/* After want_stop; takes the template's files and the empty manifest file. */
void build_stopped(struct build *b, struct template_files *files, int manifest);
void build_fail(struct build *b, const struct err *err);

void build_cancel(struct build *b); /* closes the machine; no callback; NULL is fine */
