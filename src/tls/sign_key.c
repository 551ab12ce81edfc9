/* sign_key.c - see sign_key.h. */
#include "tls/sign_key.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "tls/openssl_inside.h"
#include "tls/sign_key_inside.h"

struct sign_key {
	EVP_PKEY *key;
	uint8_t id[SIGN_ID];
	bool rsa;
};

static const struct scheme {
	enum sign_scheme number;
	const char *hash;
	int padding; /* 0: of an EC key */
} schemes[] = {
	{ SIGN_PKCS_SHA256, "SHA256", RSA_PKCS1_PADDING },
	{ SIGN_ECDSA_SHA256, "SHA256", 0 },
	{ SIGN_PKCS_SHA384, "SHA384", RSA_PKCS1_PADDING },
	{ SIGN_ECDSA_SHA384, "SHA384", 0 },
	{ SIGN_PKCS_SHA512, "SHA512", RSA_PKCS1_PADDING },
	{ SIGN_ECDSA_SHA512, "SHA512", 0 },
	{ SIGN_PSS_SHA256, "SHA256", RSA_PKCS1_PSS_PADDING },
	{ SIGN_PSS_SHA384, "SHA384", RSA_PKCS1_PSS_PADDING },
	{ SIGN_PSS_SHA512, "SHA512", RSA_PKCS1_PSS_PADDING },
};

static const struct scheme *find_scheme(const struct sign_key *k, enum sign_scheme number)
{
	for (size_t i = 0; i < COUNT(schemes); i++)
		if (schemes[i].number == number && (schemes[i].padding != 0) == k->rsa)
			return &schemes[i];
	return NULL;
}

/* --- loading -------------------------------------------------------------------------------- */

/* The library would ask at a terminal for what opens a key. */
static int no_password(char *into, int size, int writing, void *unused)
{
	(void)into;
	(void)size;
	(void)writing;
	(void)unused;
	return -1;
}

int sign_kind_check(EVP_PKEY *key, bool *ret_rsa, struct err *err)
{
	int bits = EVP_PKEY_get_bits(key);
	char group[32] = "";

	*ret_rsa = EVP_PKEY_is_a(key, "RSA");
	if (*ret_rsa && bits >= SIGN_RSA_MIN && bits <= SIGN_RSA_MAX)
		return 0;
	if (*ret_rsa)
		return err_set(err, ERR_INVALID, 0, "an RSA key of %d bits: %d to %d are served",
			       bits, SIGN_RSA_MIN, SIGN_RSA_MAX);
	if (EVP_PKEY_is_a(key, "EC") &&
	    EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof(group),
					   NULL) == 1 &&
	    (strcmp(group, "prime256v1") == 0 || strcmp(group, "secp384r1") == 0))
		return 0;
	ERR_clear_error();
	return err_set(err, ERR_INVALID, 0, "a key that is neither P-256, P-384 nor RSA");
}

int sign_id_of(EVP_PKEY *key, uint8_t ret[static SIGN_ID], struct err *err)
{
	unsigned char *der = NULL;
	int n = i2d_PUBKEY(key, &der);
	bool done = n > 0 && EVP_Digest(der, (size_t)n, ret, NULL, EVP_sha256(), NULL) == 1;

	OPENSSL_free(der);
	return done ? 0 : openssl_fail(err, ERR_INTERNAL, "the name of a key");
}

static int check_halves(EVP_PKEY *key, struct err *err)
{
	AUTO(own_pkey_ctx) EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL);

	if (!ctx || EVP_PKEY_pairwise_check(ctx) != 1)
		return openssl_fail(err, ERR_INVALID, "its two halves do not fit");
	return 0;
}

static void own_key(struct sign_key **p)
{
	sign_key_free(*p);
}

int sign_key_load(struct bytes text, struct sign_key **ret, struct err *err)
{
	AUTO(own_key) struct sign_key *k = calloc(1, sizeof(*k));
	AUTO(own_bio) BIO *in = NULL;

	openssl_begin();
	if (!k || text.len > SIGN_TEXT_MAX)
		return err_set(err, ERR_EXHAUSTED, k ? 0 : ENOMEM, "read a key");
	in = BIO_new_mem_buf(text.ptr, (int)text.len);
	k->key = in ? PEM_read_bio_PrivateKey(in, NULL, no_password, NULL) : NULL;
	if (!k->key)
		return openssl_fail(err, ERR_INVALID,
				    "not a private key in PEM without a password");
	if (sign_kind_check(k->key, &k->rsa, err) < 0 || check_halves(k->key, err) < 0 ||
	    sign_id_of(k->key, k->id, err) < 0)
		return -1;
	*ret = TAKE(k);
	return 0;
}

void sign_key_free(struct sign_key *k)
{
	if (!k)
		return;
	EVP_PKEY_free(k->key);
	free(k);
}

const uint8_t *sign_key_id(const struct sign_key *k)
{
	return k->id;
}

void sign_id_text(const uint8_t id[static SIGN_ID], char ret[static SIGN_ID_HEX + 1])
{
	for (size_t i = 0; i < SIGN_ID_HEX / 2; i++)
		snprintf(ret + 2 * i, 3, "%02x", id[i]);
}

/* --- signing -------------------------------------------------------------------------------- */

static bool pad(EVP_PKEY_CTX *ctx, int padding)
{
	if (padding == 0)
		return true;
	return EVP_PKEY_CTX_set_rsa_padding(ctx, padding) == 1 &&
	       (padding != RSA_PKCS1_PSS_PADDING ||
		EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_DIGEST) == 1);
}

int sign_key_sign(const struct sign_key *k, enum sign_scheme number, struct bytes what,
		  uint8_t ret[static SIGN_MAX], size_t *ret_n, struct err *err)
{
	const struct scheme *s = find_scheme(k, number);
	AUTO(own_md_ctx) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_PKEY_CTX *how = NULL; /* part of ctx */

	if (!s)
		return err_set(err, ERR_INVALID, 0, "no scheme %04x with %s key", number,
			       k->rsa ? "an RSA" : "an EC");
	*ret_n = SIGN_MAX;
	if (!ctx || EVP_DigestSignInit_ex(ctx, &how, s->hash, NULL, NULL, k->key, NULL) != 1 ||
	    !pad(how, s->padding) || EVP_DigestSign(ctx, ret, ret_n, what.ptr, what.len) != 1)
		return openssl_fail(err, ERR_INTERNAL, "sign");
	return 0;
}
