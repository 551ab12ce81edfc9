/* relay_guard.h - who may enter a port that is not for everybody.
 *
 *	private sandbox, any port       the header
 *	guarded port of a template      the header; an address with a pass, which becomes a cookie;
 *the cookie, for the pages of that very port
 */
#pragma once

#include "gateway/relay/relay_refuse.h"
#include "wire/guarded_ports.h"

struct relay;

enum relay_entry {
	ENTRY_FREE,     /* it goes on to the guest */
	ENTRY_REFUSED,  /* for *ret_why */
	ENTRY_EXCHANGE, /* the address is exchanged: relay_exchange() */
};

/* Node has been asked. */
enum relay_entry relay_entry(const struct relay *r, enum relay_refusal *ret_why);

/* Answers: a cookie, and the same address without what became of it. */
void relay_exchange(const struct relay *r);

/* What is known of its port by its template; NULL: not guarded. */
const struct guarded_port *relay_guarded(const struct relay *r);

/* What a visitor brings, for a sandbox that is paused; empty: nothing. */
struct bytes relay_credential(const struct relay *r);
