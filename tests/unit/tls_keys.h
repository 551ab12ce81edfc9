/* tls_keys.h - for tests of keys and certificates: made here, as the texts that are in files. */
#pragma once

#include "tests/unit/check.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "base/bytes.h"

enum { TEST_PEM_MAX = 32 * 1024 };

/* kind: "P-256", "P-384", "P-521", "RSA" (2048), "RSA1024", "ED25519". */
static inline EVP_PKEY *test_key(const char *kind)
{
	EVP_PKEY *key;

	if (strncmp(kind, "RSA", 3) == 0)
		key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)(kind[3] ? 1024 : 2048));
	else if (kind[0] == 'P')
		key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", kind);
	else
		key = EVP_PKEY_Q_keygen(NULL, NULL, kind);
	assert_non_null(key);
	return key;
}

static inline void test_take_text(BIO *out, struct buf *ret)
{
	struct err err = { 0 };
	char *at = NULL;
	long n = BIO_get_mem_data(out, &at);

	assert_int_equal(buf_add(ret, (struct bytes){ (uint8_t *)at, (size_t)n }, &err), 0);
	BIO_free(out);
}

static inline void test_key_text(EVP_PKEY *key, struct buf *ret)
{
	BIO *out = BIO_new(BIO_s_mem());

	assert_int_equal(PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL), 1);
	test_take_text(out, ret);
}

struct test_cert {
	const char *names; /* "DNS:a.example,DNS:*.a.example" */
	const char *uses;  /* extended key usage; NULL: serverAuth */
	long from_s, to_s; /* from now; to_s 0: a day */
	X509 *issuer;      /* NULL: itself */
	EVP_PKEY *issuer_key;
	bool authority;
};

static inline void test_extend(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *e;
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(e);
	assert_int_equal(X509_add_ext(x, e, -1), 1);
	X509_EXTENSION_free(e);
}

static inline X509 *test_cert(EVP_PKEY *key, const struct test_cert *how)
{
	static long serial = 1;
	X509 *x = X509_new(), *issuer = how->issuer ? how->issuer : x;
	X509_NAME *name = X509_get_subject_name(x);
	char label[32];

	snprintf(label, sizeof(label), "test %ld", serial);
	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
	X509_gmtime_adj(X509_getm_notBefore(x), how->from_s ? how->from_s : -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), how->to_s ? how->to_s : 86400);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)label, -1, -1,
				   0);
	X509_set_issuer_name(x, X509_get_subject_name(issuer));
	X509_set_pubkey(x, key);
	test_extend(x, issuer, NID_basic_constraints,
		    how->authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
	if (how->names)
		test_extend(x, issuer, NID_subject_alt_name, how->names);
	if (!how->authority)
		test_extend(x, issuer, NID_ext_key_usage, how->uses ? how->uses : "serverAuth");
	assert_true(X509_sign(x, how->issuer_key ? how->issuer_key : key, EVP_sha256()) > 0);
	return x;
}

static inline void test_cert_text(X509 *x, struct buf *ret)
{
	BIO *out = BIO_new(BIO_s_mem());

	assert_int_equal(PEM_write_bio_X509(out, x), 1);
	test_take_text(out, ret);
}
