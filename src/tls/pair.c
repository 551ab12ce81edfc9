/* pair.c - see pair.h. */
#include "tls/pair.h"

#include <errno.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "tls/chain.h"
#include "tls/openssl_inside.h"
#include "tls/pem.h"

static_assert((int)PAIR_CHAIN_MAX == CHAIN_MAX && (int)PAIR_NAMES_MAX == CHAIN_NAMES_MAX &&
		      (int)PAIR_TEXT_MAX == CHAIN_TEXT_MAX,
	      "what is installed is served");

static void own_certs(STACK_OF(X509) * *p)
{
	sk_X509_pop_free(*p, X509_free);
}

static int read_chain(struct bytes text, STACK_OF(X509) * *ret, struct err *err)
{
	*ret = sk_X509_new_null();
	if (!*ret)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read certificates");
	if (text.len > PAIR_TEXT_MAX)
		return err_set(err, ERR_INVALID, 0, "more than %d bytes", PAIR_TEXT_MAX);
	return pem_read_certs(text, PAIR_CHAIN_MAX, *ret, err);
}

static bool seconds_of(const ASN1_TIME *t, int64_t *ret)
{
	struct tm tm = { 0 };

	if (ASN1_TIME_to_tm(t, &tm) != 1)
		return false;
	*ret = timegm(&tm);
	return true;
}

/* Names that are none of a host, such as one with a zero byte, are no names of this server. */
static void read_names(X509 *leaf, struct pair_facts *ret)
{
	GENERAL_NAMES *all = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);

	for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(all, i);
		struct bytes text;
		char *to;

		if (name->type != GEN_DNS)
			continue;
		ret->more_names = ret->n_names == PAIR_NAMES_MAX;
		if (ret->more_names)
			break;
		to = ret->names[ret->n_names];
		text = (struct bytes){ ASN1_STRING_get0_data(name->d.dNSName),
				       (size_t)ASN1_STRING_length(name->d.dNSName) };
		if (domain_pattern(text, to) && strcmp(to, "*") != 0)
			ret->n_names++;
	}
	GENERAL_NAMES_free(all);
}

static void read_issuer(const X509 *leaf, struct pair_facts *ret)
{
	X509_NAME *issuer = X509_get_issuer_name(leaf);

	if (X509_NAME_get_text_by_NID(issuer, NID_commonName, ret->issuer, PAIR_ISSUER_SIZE) < 0 &&
	    X509_NAME_get_text_by_NID(issuer, NID_organizationName, ret->issuer, PAIR_ISSUER_SIZE) <
		    0)
		ret->issuer[0] = '\0';
}

static int read_facts(X509 *leaf, struct pair_facts *ret, struct err *err)
{
	*ret = (struct pair_facts){ 0 };
	if (!seconds_of(X509_get0_notBefore(leaf), &ret->begins_s) ||
	    !seconds_of(X509_get0_notAfter(leaf), &ret->ends_s) ||
	    X509_digest(leaf, EVP_sha256(), ret->sum, NULL) != 1)
		return openssl_fail(err, ERR_INVALID, "read a certificate");
	read_names(leaf, ret);
	read_issuer(leaf, ret);
	return 0;
}

int pair_read(struct bytes chain, struct pair_facts *ret, struct err *err)
{
	AUTO(own_certs) STACK_OF(X509) *certs = NULL;

	if (read_chain(chain, &certs, err) < 0)
		return -1;
	return read_facts(sk_X509_value(certs, 0), ret, err);
}

static bool is_signed(X509 *x, X509 *by)
{
	return X509_check_issued(by, x) == X509_V_OK && X509_verify(x, X509_get0_pubkey(by)) == 1;
}

static int check_times(const STACK_OF(X509) * certs, struct err *err)
{
	for (int i = 0; i < sk_X509_num(certs); i++) {
		X509 *x = sk_X509_value(certs, i);

		if (X509_cmp_current_time(X509_get0_notBefore(x)) >= 0)
			return err_set(err, ERR_INVALID, 0,
				       "certificate %d is not valid yet: set the clock, or wait",
				       i + 1);
		if (X509_cmp_current_time(X509_get0_notAfter(x)) <= 0)
			return err_set(err, ERR_INVALID, 0,
				       "certificate %d is not valid any more: get a new one",
				       i + 1);
	}
	return 0;
}

static int check_order(const STACK_OF(X509) * certs, struct err *err)
{
	for (int i = 0; i + 1 < sk_X509_num(certs); i++)
		if (!is_signed(sk_X509_value(certs, i), sk_X509_value(certs, i + 1)))
			return err_set(err, ERR_INVALID, 0,
				       "certificate %d is not signed by certificate %d: the "
				       "server's goes first, each is followed by its signer",
				       i + 1, i + 2);
	return 0;
}

/* What the signer signs with, and what no client refuses. */
static int check_kind(const EVP_PKEY *key, struct err *err)
{
	int kind = EVP_PKEY_get_base_id(key), bits = EVP_PKEY_get_bits(key);

	if (kind == EVP_PKEY_EC && (bits == 256 || bits == 384))
		return 0;
	if (kind == EVP_PKEY_RSA && bits >= PAIR_RSA_BITS_MIN && bits <= PAIR_RSA_BITS_MAX)
		return 0;
	return err_set(err, ERR_INVALID, 0,
		       "the key is of a kind that is not served: use EC P-256, EC P-384, or RSA of "
		       "%d to %d bits",
		       PAIR_RSA_BITS_MIN, PAIR_RSA_BITS_MAX);
}

static int check_key(const STACK_OF(X509) * certs, EVP_PKEY *key, struct err *err)
{
	for (int i = 0; i < sk_X509_num(certs); i++) {
		if (X509_check_private_key(sk_X509_value(certs, i), key) != 1)
			continue;
		if (i == 0)
			return check_kind(key, err);
		return err_set(err, ERR_INVALID, 0,
			       "the key is that of certificate %d: the server's goes first", i + 1);
	}
	openssl_begin(); /* what the library noted while it compared */
	return err_set(err, ERR_INVALID, 0, "the key is not that of the certificate");
}

static int check_leaf(X509 *leaf, struct err *err)
{
	struct pair_facts facts;

	if (read_facts(leaf, &facts, err) < 0)
		return -1;
	if (facts.n_names == 0)
		return err_set(err, ERR_INVALID, 0,
			       "the certificate names no host (subject alternative names)");
	if (facts.more_names)
		return err_set(err, ERR_INVALID, 0, "the certificate has more than %d names",
			       PAIR_NAMES_MAX);
	if (X509_check_ca(leaf) != 0)
		return err_set(err, ERR_INVALID, 0,
			       "the first certificate is an authority's: the server's goes first");
	if (X509_check_purpose(leaf, X509_PURPOSE_SSL_SERVER, 0) != 1)
		return err_set(err, ERR_INVALID, 0, "the certificate is not for servers");
	return 0;
}

int pair_check(struct bytes chain, struct bytes key_text, struct buf *ret_chain,
	       struct buf *ret_key, struct err *err)
{
	AUTO(own_certs) STACK_OF(X509) *certs = NULL;
	AUTO(own_pkey) EVP_PKEY *key = NULL;
	AUTO(own_x509) X509 *leaf = NULL;

	if (read_chain(chain, &certs, err) < 0)
		return -1;
	if (key_text.len > PAIR_TEXT_MAX)
		return err_set(err, ERR_INVALID, 0, "more than %d bytes", PAIR_TEXT_MAX);
	if (pem_read_key(key_text, &key, err) < 0 || check_key(certs, key, err) < 0 ||
	    check_leaf(sk_X509_value(certs, 0), err) < 0 || check_order(certs, err) < 0 ||
	    check_times(certs, err) < 0)
		return -1;
	leaf = sk_X509_shift(certs);
	return pem_write_certs(leaf, certs, ret_chain, err) < 0 ||
			       pem_write_key(key, ret_key, err) < 0
		       ? -1
		       : 0;
}

bool pair_signed_by(struct bytes chain, struct bytes signer)
{
	AUTO(own_certs) STACK_OF(X509) *certs = NULL;
	AUTO(own_certs) STACK_OF(X509) *signers = NULL;
	struct err err;
	bool is;

	if (read_chain(chain, &certs, &err) < 0 || read_chain(signer, &signers, &err) < 0)
		return false;
	is = is_signed(sk_X509_value(certs, 0), sk_X509_value(signers, 0));
	openssl_begin();
	return is;
}
