/* context.h - what all TLS connections of one kind share: what is spoken, and whom a client trusts.
 *
 * Opened once per process, before it is confined: that reads files. Its streams may outlive it.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* Where distributions keep the certificates they trust, all in one file. */
#define TLS_SYSTEM_ROOTS "/etc/ssl/certs/ca-certificates.crt"

struct tls_context;

struct tls_trust {
	const char *roots; /* PEM; NULL: TLS_SYSTEM_ROOTS; "": none */
	const char *extra; /* PEM, an operator's own; NULL, "" or empty: none */
	bool unverified;   /* anybody will do: nothing is read, nothing checked */
};

int tls_client_open(const struct tls_trust *trust, struct tls_context **ret,
		    struct err *err) NODISCARD;
int tls_server_open(struct tls_context **ret, struct err *err) NODISCARD;
void tls_context_free(struct tls_context *c); /* NULL is fine */
