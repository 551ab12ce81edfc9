/* certificate.h - inside tls/: one certificate and its key, new. */
#pragma once

#include <openssl/x509.h>

#include "base/bytes.h"

enum certificate_kind { CERTIFICATE_ROOT, CERTIFICATE_BRANCH, CERTIFICATE_LEAF };

struct certificate {
	const char *label; /* common name */
	enum certificate_kind kind;
	int days;                 /* of a leaf never longer than its issuer's; 0: as long */
	const char *const *hosts; /* of a branch what it is limited to, of a leaf its names */
	size_t n_hosts;
	X509 *issuer; /* NULL: itself; a branch may be its own root */
	EVP_PKEY *issuer_key;
};

/* Both are the caller's, also on failure, if they are not NULL then. */
int certificate_new(const struct certificate *ask, X509 **ret, EVP_PKEY **ret_key,
		    struct err *err) NODISCARD;
