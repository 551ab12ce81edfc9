/* protocol.h - what a gateway asks of the signer: fixed messages over a SOCK_SEQPACKET unix socket.
 * This header is the only part of signer/ that others may include.
 */
#pragma once

#include <stdint.h>

enum {
	SIGNER_VERSION_MIN = 1, /* for the hello (base/link_hello.h) */
	SIGNER_VERSION_MAX = 1,
	SIGNER_ID = 32,        /* of a key: SHA-256 of its public half, as X.509 writes it */
	SIGNER_WHAT_MAX = 172, /* bytes that are signed */
	SIGNER_SIGNATURE_MAX = 512,
};

enum signer_verb {
	SIGNER_SIGN, /* id, scheme, what, n -> signature, n. `what` is what a server signs in a
		      * handshake of TLS 1.2 or 1.3; anything else is ERR_DENIED. No such key:
		      * ERR_NOT_FOUND */
	SIGNER_HAS,  /* id: is there such a key? ERR_NOT_FOUND: no */
	SIGNER_VERBS,
};

struct signer_request {
	uint64_t tag; /* not 0 */
	uint32_t verb;
	uint32_t scheme; /* a number of TLS: enum sign_scheme */
	uint32_t n;      /* bytes of `what`; those behind them are 0 */
	uint8_t id[SIGNER_ID];
	uint8_t what[SIGNER_WHAT_MAX];
};

struct signer_reply {
	uint64_t tag;
	uint32_t code; /* enum err_code */
	uint32_t n;    /* bytes of the signature */
	char msg[128];
	uint8_t signature[SIGNER_SIGNATURE_MAX];
};
