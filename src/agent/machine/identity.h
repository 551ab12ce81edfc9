/* identity.h - become one particular sandbox: the steps between `cont` and the thaw.
 *
 * A restored machine has the clock, the random numbers and the names of the one it was copied
 * from. The host sends one message; everything in it is checked before anything is done, then the
 * steps run in a fixed order and the first that fails is the last that was tried. The session
 * (tokens, environment) changes only when all of them succeeded. The caller thaws.
 *
 * One that was paused and goes on is who it was: the same message with "resume" brings the clock
 * and fresh entropy, and proves with the control token that it comes from the same host.
 */
#pragma once

#include "agent/session.h"

enum {
	IDENTITY_ENTROPY_BYTES = 64,
	IDENTITY_HOSTNAME_MAX = 63,
	IDENTITY_PATH_MAX = 512,
	IDENTITY_HOSTS_MAX = 8 * 1024 * 1024, /* of /etc/hosts, in bytes */
};

struct identity {
	int64_t clock_offset_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	uint8_t entropy[IDENTITY_ENTROPY_BYTES];
	char hostname[IDENTITY_HOSTNAME_MAX + 1];
	char machine_id[32 + 1];
	char boot_id[36 + 1];
	bool stay_frozen; /* a rehearsal: the same message comes again, and then the thaw */
	bool resume;      /* it is who it was: clock and entropy, and nothing else is set */
	bool in_place;    /* with resume: it was only stopped, its connections are still good */
	bool left_behind; /* it is a copy of one that had connections: they are not its own */
	struct session session;
};

/* What only the kernel can do. Tests bring their own. */
struct identity_effects {
	int (*set_clock)(int64_t offset_ns, struct err *err);
	int (*add_entropy)(struct bytes entropy, struct err *err);
	int (*set_hostname)(const char *name, struct err *err);
	/* Let `file` be seen in the place of the kernel's boot id, if it is not already. */
	int (*show_boot_id)(const char *file, struct err *err);
	/* Write back all there is; NULL: nothing. For when the memory will not be kept. */
	void (*flush_disks)(void);
};
extern const struct identity_effects identity_effects_linux;

/* Where files are written: "" in a guest, a folder of their own in tests. */
struct identity_place {
	const char *root;
	const struct identity_effects *effects;
};

/* With "resume" the rest of the message is the clock, the entropy and the control token, which must
 * be `base`'s. */
int identity_parse(struct bytes json, const struct session *base, struct identity *ret,
		   struct err *err) NODISCARD;
void identity_done(struct identity *id);

/* Do all its connections end by it? Their other ends are in the network it was paused or copied in.
 */
bool identity_parts(const struct identity *id);

/* All steps. On success *session was replaced. err names the step. With `resume` only those of them
 * that do not change who it is; the session stays. */
int identity_assume(struct identity *id, const struct identity_place *place,
		    struct session *session, struct err *err) NODISCARD;

/* The folders and files under /run that the steps write to; what is there stays. */
int identity_prepare(const struct identity_place *place, struct err *err) NODISCARD;

/* `<root>/run/hotcell/session`: for session_load() at the start of a server. */
void identity_session_path(const struct identity_place *place, char ret[static IDENTITY_PATH_MAX]);

/* /etc/hosts with `hostname` at 127.0.1.1, all else kept. */
int identity_hosts(struct bytes old, const char *hostname, struct buf *out,
		   struct err *err) NODISCARD;
