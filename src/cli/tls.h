/* tls.h - `hotcell tls`: certificates of the gateway. It works on files; no daemon is asked. */
#pragma once

#include "cli/tls_files.h"

#define TLS_DEFAULT_DOMAIN "hotcell.localhost"

int tls_run(struct cli *c);

/* "NAME" or "NAME:PORT", the name as it stands in certificates. *ret_port is 0 without one. */
int tls_read_domain(const char *text, char ret[static DOMAIN_SIZE], uint16_t *ret_port,
		    struct err *err) NODISCARD;

struct tls_made {
	char domain[DOMAIN_SIZE];
	char authority_domain[DOMAIN_SIZE]; /* the same, or above it */
	uint16_t port;
	struct pair_facts facts; /* of the certificate that is there now */
	bool made_authority, made_certificate;
	const char *fix; /* of a failure */
};
/* What `tls init` does: an authority and a certificate for DOMAIN[:PORT], where they are missing.
 */
int tls_make(struct tls_files *f, const char *domain, struct tls_made *ret,
	     struct err *err) NODISCARD;
