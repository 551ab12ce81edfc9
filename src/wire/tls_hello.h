/* tls_hello.h - whom a client greets: the server's name in a ClientHello (RFC 8446, RFC 6066).
 *
 * Two phases, as with http1_head.h: tls_hello_settled() finds out, looking at each byte once,
 * whether enough has arrived; tls_hello_read() reads it whole. It decides who is dialled, so it
 * reads as strictly as any server would: two names, or a length that does not fit, is no greeting.
 */
#pragma once

#include "wire/domain.h"

enum {
	TLS_HELLO_MAX = 16 * 1024, /* of bytes that must be seen; browsers send up to 2,000 */
	TLS_HELLO_BEGIN = 4,       /* of the message: its type and length */
};

struct tls_hello {
	char name[DOMAIN_SIZE]; /* normal; empty: none was sent */
	bool encrypted;         /* the true greeting is inside (encrypted_client_hello) */
	bool http2;             /* it would speak HTTP/2 */
};

enum tls_hello_verdict {
	TLS_HELLO_MORE,   /* so far it is one */
	TLS_HELLO_WHOLE,  /* *ret is filled */
	TLS_HELLO_OTHER,  /* the client speaks something else */
	TLS_HELLO_BROKEN, /* it began as one, and no server would take it */
};

struct tls_hello_place { /* how far was looked; all zero: nowhere yet */
	size_t at;       /* what follows was not looked at */
	size_t left;     /* of the content of the record there */
	size_t len;      /* of the message, so far */
	uint8_t begin[TLS_HELLO_BEGIN];
};

/* Would tls_hello_read() say anything but TLS_HELLO_MORE? *place is the caller's, left alone
 * between calls with ever longer prefixes. */
bool tls_hello_settled(struct bytes so_far, struct tls_hello_place *place);

/* Once it is settled, without reading it: all of one is there, as far as its length goes; or at
 * least its beginning. */
bool tls_hello_arrived(const struct tls_hello_place *place);
bool tls_hello_begun(const struct tls_hello_place *place);

enum tls_hello_verdict tls_hello_read(struct bytes so_far, struct tls_hello *ret);
