/* tls_service.h - TLS for many clients that nobody knows, with keys that are somewhere else.
 *
 *	tls_service_open()     once: before the process is confined
 *	chain_load()           for each certificate (chain.h); the chooser picks one by name
 *	tls_service_accept()   for each client
 *	  guest->on_open()     the handshake is over: the stream is given to whom it is for
 *	  on_fail              of the stream's user, who owns it all the time; it closes it
 *
 * A handshake costs nothing but a small struct and what the client said until its hello is whole
 * (wire/tls_hello.h). Then it takes its turn, TLS_STEPS in a turn of the loop, so that others get
 * theirs, however many shake hands. Turns go round: who has many handshakes under way, an address
 * for example, has one turn in each round. When it wants a signature it is put aside until the
 * signer has answered, TLS_SIGNING_MAX at once. It is given up after TLS_SERVICE_MS, or when more
 * than TLS_SAID_MAX bytes were said before it is over.
 *
 * TLS 1.2 and 1.3, forward-secret suites only, no renegotiation, no early data. Sessions are
 * resumed by tickets (tickets.h).
 */
#pragma once

#include "net/stream.h"
#include "tls/sign_key.h"
#include "tls/tls_stream.h"

enum {
	TLS_SERVICE_MS = 10 * 1000,
	TLS_SAID_MAX = 20 * 1024, /* of all that a client says until its handshake is over */
	TLS_STEPS = 1,            /* of handshakes, per turn of the loop; 0.5 ms each */
	TLS_ROUNDS = 2048,        /* ahead; who would have a later turn has it in the last one */
	TLS_SIGNING_MAX = 256,    /* each has a stack of 32 KiB, which is kept for the next */
	TLS_SIGN_WHAT_MAX = 172,
	TLS_PROTOCOLS_MAX = 64, /* bytes of the list of protocols */
};

/* --- signatures ----------------------------------------------------------------------------- */

enum tls_sign_state { TLS_SIGN_NOT, TLS_SIGN_ASKED, TLS_SIGN_DONE, TLS_SIGN_FAILED };

struct signer_ask; /* the signer's own */
struct tls_sign {  /* what a handshake waits for */
	enum tls_sign_state state;
	uint8_t id[SIGN_ID];
	enum sign_scheme scheme;
	uint8_t what[TLS_SIGN_WHAT_MAX];
	size_t n_what;
	uint8_t signature[SIGN_MAX];
	size_t n_signature;
	struct signer_ask *ask;
};

struct tls_signer { /* embedded by who gets them signed; outlives the service */
	/* Exactly one tls_sign_done() follows, from the loop, unless it is cancelled. -1: none */
	int (*ask)(struct tls_signer *s, struct tls_sign *what, struct err *err);
	void (*cancel)(struct tls_signer *s, struct tls_sign *what);
};

/* `err`: why there is none; else `signature` is copied. */
void tls_sign_done(struct tls_sign *what, struct bytes signature, const struct err *err);

/* --- the service ---------------------------------------------------------------------------- */

struct tls_service;

struct tls_service_terms {
	struct tls_chooser *chooser;
	struct tls_signer *signer;
	const char *protocols; /* "h2,http/1.1": those spoken, the preferred first */
	uint64_t ticket_ms;    /* how long a key of tickets makes new ones */
};

/* One per thread. */
int tls_service_open(struct tls_service **ret, struct loop *l,
		     const struct tls_service_terms *terms, struct err *err) NODISCARD;
/* No handshake is under way; what is open lives on. NULL is fine. */
void tls_service_close(struct tls_service *s);

struct tls_guest { /* embedded by who waits for a handshake; lives until it is over */
	/* `protocol` is one of the service's, or "" when the client spoke of none. The stream may
	 * be given to another user now, or closed. */
	void (*on_open)(struct tls_guest *g, const char *protocol);
	/* Shared by the guests who have one turn in a round together, 0 at first; NULL: nobody
	 * shares this one's. */
	uint64_t *round;
};

/* Takes `below` in any case. */
int tls_service_accept(struct tls_service *s, struct stream *below, struct tls_guest *g,
		       struct stream **ret, struct err *err) NODISCARD;
