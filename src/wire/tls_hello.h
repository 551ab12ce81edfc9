/* tls_hello.h - whom a client greets: the server's name in a ClientHello (RFC 8446, RFC 6066).
 *
 * Read from what has arrived so far, as often as more arrives; nothing is kept. It decides who is
 * dialled, so it reads as strictly as any server would: two names, or a length that does not fit,
 * is no greeting.
 */
#pragma once

#include "wire/domain.h"

enum {
	TLS_HELLO_MAX = 16 * 1024, /* of bytes that must be seen; browsers send up to 2,000 */
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

enum tls_hello_verdict tls_hello_read(struct bytes so_far, struct tls_hello *ret);
