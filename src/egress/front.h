/* front.h - one connection that a guest began: whom it means, whether that may be, and then bytes.
 *
 *	peek -> decide -> resolve -> dial -> pump
 *
 * A name it says (TLS, HTTP) decides, and only addresses that our own resolver gave for that name
 * are dialled, never the one the guest chose. Where no name is said, or nothing for a while, the
 * address decides; a name that is said before the server has spoken counts as if said at once, so
 * that waiting is no way to reach another site at an allowed name's address.
 */
#pragma once

#include "egress/sandbox_egress.h"

enum {
	FRONT_QUIET_MS = 300,  /* no byte of the client for so long: the server speaks first */
	FRONT_PEEK_MS = 10000, /* for a first message to be whole */
	FRONT_DIAL_MS = 10000, /* for each address */
	FRONT_IDLE_MS = 3600 * 1000,
	FRONT_PART_MS = 5000, /* for who was told why not to take that and leave */
};

/* Takes fd, also on failure. `ip`, `port`: where the guest meant to go. */
int front_start(struct sandbox_egress *o, int fd, uint32_t ip, uint16_t port,
		struct err *err) NODISCARD;

void fronts_cut(struct sandbox_egress *o);   /* all of them */
void fronts_check(struct sandbox_egress *o); /* those that the rules do not allow any more */

/* --- for front_decide.c and front_pass.c --------------------------------------------------- */

void front_free(struct front *f);
/* Who speaks HTTP is told in HTTP, and counted until it has left; the rest sees a reset. Frees it.
 */
void front_refuse(struct front *f, unsigned int status, const char *why);
void front_audit(struct front *f, enum audit_verdict verdict, uint32_t ip, const char *why);
void front_turn_away(struct front *f, const struct policy_verdict *v); /* 403, and the audit */
/* Nobody has spoken yet: whoever does it first says what this is. */
void front_wait(struct front *f, struct stream *server, struct bytes early);
