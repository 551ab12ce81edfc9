/* tickets.h - inside tls/: the keys of session tickets.
 *
 * A ticket is what the server would have to remember of a session, sealed, for the client to bring
 * back. A key makes tickets for one period, and opens them for one more. Keys are made here, at
 * random, and are never written down: after a restart nobody's ticket opens, and that client shakes
 * hands in full.
 */
#pragma once

#include "net/timer.h"
#include "tls/openssl_inside.h"

enum { TICKET_NAME = 16, TICKET_KEY = 32, TICKET_KEYS = 2 };

struct tickets { /* embedded by the service */
	struct ticket_key {
		uint8_t name[TICKET_NAME];
		uint8_t cipher[TICKET_KEY], mac[TICKET_KEY];
		bool made;
	} key[TICKET_KEYS]; /* the newest first */
	struct timer rotation;
	EVP_CIPHER *aes;
};

/* For the sessions of `ssl`, whose application data is the tickets. */
int tickets_open(struct tickets *t, struct loop *l, OSSL_LIB_CTX *lib, SSL_CTX *ssl,
		 uint64_t period_ms, struct err *err) NODISCARD;
void tickets_close(struct tickets *t); /* fine when it is all zero */
void tickets_rotate(struct tickets *t);
