/* signer_link.h - what the signer is asked: who has the private keys of our certificates. */
#pragma once

#include "net/link.h"
#include "signer/protocol.h"
#include "tls/tls_service.h"

enum {
	SIGNER_CALLS_MAX = 1024,
	SIGNER_SENT_MAX = 128, /* at once with the signer: its answers fit into the kernel's room */
	SIGNER_BATCH = 8,      /* answers taken per turn: each is a step of a handshake */
	SIGNER_WAIT_MS = 1000, /* for a signer that is being restarted */
	SIGNER_ANSWER_MS = 5000, /* in all */
	SIGNER_SENDS_MAX = 3,    /* a signature may be asked for again */
};

struct signer_link { /* embedded by its owner */
	struct link link;
	struct tls_signer signer; /* for the service */
	uint64_t n_signed, n_failed;
	void (*on_up)(struct signer_link *s); /* it may have other keys than the one before it */
};

void signer_link_open(struct signer_link *s, struct loop *l, const char *path,
		      void (*on_up)(struct signer_link *s));
void signer_link_close(struct signer_link *s); /* no handshake waits for it any more */

/* Has it the key of that id? ERR_NOT_FOUND: no. Not while it is gone. */
int signer_link_has(struct signer_link *s, struct link_call *c, const uint8_t id[static SIGN_ID],
		    link_done_fn *on_done, struct err *err) NODISCARD;
