/* agent_identity.h - who a restored machine is told to be. Holds secrets: end it with _done(). */
#pragma once

#include "base/bytes.h"
#include "wire/json.h"

enum {
	AGENT_NAME_MAX = 63,
	AGENT_TOKEN_LENGTH = 32, /* of [0-9a-z]: 165 bits */
	AGENT_TOKEN_MAX = 127,
	AGENT_WORKDIR_MAX = 1023,
	AGENT_ENTROPY_BYTES = 64,
	AGENT_IDENTITY_MAX = 64 * 1024, /* as JSON, in bytes */
};

struct agent_identity {
	char sandbox_id[AGENT_NAME_MAX + 1];
	char template_id[AGENT_NAME_MAX + 1];
	char hostname[AGENT_NAME_MAX + 1];
	char machine_id[32 + 1];                 /* hexadecimal */
	char boot_id[36 + 1];                    /* a UUID */
	char access_token[AGENT_TOKEN_MAX + 1];  /* of the sandbox's owner; empty: anyone */
	char control_token[AGENT_TOKEN_MAX + 1]; /* of the host */
	uint8_t entropy[AGENT_ENTROPY_BYTES];
	/* As whom and where commands run that do not say it; empty: as its template has it */
	char user[AGENT_NAME_MAX + 1], workdir[AGENT_WORKDIR_MAX + 1];
	json_t *env;      /* owned; an object of strings, or NULL */
	bool stay_frozen; /* do it all but let nothing run: it will come again */
	bool resume;      /* it is who it was: clock and entropy alone, then the thaw. Names, tokens
			   * and environment stay as they are; control_token proves the host */
	/* Of whom it is a copy, when that was somebody: proves the host the first time. Empty: it
	 * was nobody, or was told already */
	char was_token[AGENT_TOKEN_MAX + 1];
	bool left_behind; /* it is such a copy: the connections it knows of are another's */
	bool in_place;    /* with resume: it never left its process, so its connections are good */
};

/* Everything but the two ids and env is drawn anew; the hostname is the sandbox's id. */
int agent_identity_make(struct agent_identity *ret, struct bytes sandbox_id,
			struct bytes template_id, struct err *err) NODISCARD;
void agent_identity_refresh(struct agent_identity *id); /* before it is told again: new entropy */
void agent_identity_done(struct agent_identity *id);

/* The message of /control/identity. The offset is of the host's real time to the guest's
 * monotonic clock. */
int agent_identity_put(const struct agent_identity *id, int64_t clock_offset_ns, struct buf *out,
		       struct err *err) NODISCARD;
