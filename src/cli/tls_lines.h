/* tls_lines.h - what to type so that clients trust the authority and find the names. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tls_site {
	const char *domain;
	uint16_t port;       /* 0: 443 */
	const char *tls_dir; /* where authority/ca.pem is */
};

void tls_lines_print(FILE *out, const struct tls_site *s);

/* The value of E2B_DOMAIN: a port is there unless it is 443. */
enum { TLS_E2B_DOMAIN_SIZE = 264 };
void tls_e2b_domain(const struct tls_site *s, char ret[static TLS_E2B_DOMAIN_SIZE]);
/* By RFC 6761 names below localhost are this machine itself. */
bool tls_is_local(const char *domain);
