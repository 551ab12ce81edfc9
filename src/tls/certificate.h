/* certificate.h - inside tls/: one certificate and its key, new. */
#pragma once

#include <openssl/x509.h>

#include "base/bytes.h"

enum certificate_kind { CERTIFICATE_ROOT, CERTIFICATE_BRANCH, CERTIFICATE_LEAF };

struct certificate {
	const char *label; /* common name; of a leaf the host's, normal */
	enum certificate_kind kind;
	int days;                 /* of a leaf: as long as its issuer's */
	const char *const *hosts; /* of a branch: what it is limited to */
	size_t n_hosts;
	X509 *issuer; /* NULL: itself */
	EVP_PKEY *issuer_key;
};

/* Both are the caller's, also on failure, if they are not NULL then. */
int certificate_new(const struct certificate *ask, X509 **ret, EVP_PKEY **ret_key,
		    struct err *err) NODISCARD;
