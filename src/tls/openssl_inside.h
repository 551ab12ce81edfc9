/* openssl_inside.h - what the files of tls/ share: starting the library, its reasons, its owners.
 */
#pragma once

#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/bytes.h"

/* Before anything else of it: without its configuration file, which would be read behind our back,
 * perhaps by a process that may open none. Cheap when it was done before. */
void openssl_begin(void);

/* The newest reason of the library as an error: "what: reason". The others are forgotten. */
int openssl_fail(struct err *err, enum err_code code, const char *what);

/* All of a BIO in memory, appended at once, so that no half-grown copy stays behind. */
int openssl_append(BIO *from, struct buf *ret, struct err *err) NODISCARD;

/* AUTO(own_x) X *x: freed at the end of the block. */
#define OPENSSL_OWNER(type, name, free_it) \
	static inline void name(type **p)  \
	{                                  \
		free_it(*p);               \
	}
OPENSSL_OWNER(BIO, own_bio, BIO_free_all)
OPENSSL_OWNER(EVP_PKEY, own_pkey, EVP_PKEY_free)
OPENSSL_OWNER(EVP_PKEY_CTX, own_pkey_ctx, EVP_PKEY_CTX_free)
OPENSSL_OWNER(EVP_CIPHER_CTX, own_cipher_ctx, EVP_CIPHER_CTX_free)
OPENSSL_OWNER(EVP_MD_CTX, own_md_ctx, EVP_MD_CTX_free)
OPENSSL_OWNER(EVP_KDF, own_kdf, EVP_KDF_free)
OPENSSL_OWNER(EVP_KDF_CTX, own_kdf_ctx, EVP_KDF_CTX_free)
OPENSSL_OWNER(SSL_CTX, own_ssl_ctx, SSL_CTX_free)
OPENSSL_OWNER(X509, own_x509, X509_free)
OPENSSL_OWNER(ASN1_TIME, own_time, ASN1_TIME_free)
OPENSSL_OWNER(BIGNUM, own_bn, BN_free)
OPENSSL_OWNER(GENERAL_NAME, own_name, GENERAL_NAME_free)
OPENSSL_OWNER(NAME_CONSTRAINTS, own_constraints, NAME_CONSTRAINTS_free)

struct tls_context { /* context.h makes them, tls_stream.c uses them */
	SSL_CTX *ssl;
	BIO_METHOD *pipe;         /* how the library reads and writes: the bytes of a tls_stream */
	struct remote_keys *keys; /* of a service; NULL */
	unsigned int refs;
	bool server, unverified;
};

struct identity { /* authority.h makes them, tls_stream.c shows them */
	EVP_PKEY *key;
	X509 *leaf;
	STACK_OF(X509) * above; /* without the root, which the other side has */
};
