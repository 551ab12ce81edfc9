/* test_tls_sign_key.c - keys that sign handshakes: which are taken, what they sign. */
#include "tests/unit/tls_keys.h"

#include "tls/sign_key.h"

static struct sign_key *load(EVP_PKEY *key)
{
	AUTO(buf_done) struct buf text = BUF_MAX(TEST_PEM_MAX);
	struct sign_key *k = NULL;
	struct err err = { 0 };

	test_key_text(key, &text);
	if (sign_key_load(buf_view(&text), &k, &err) < 0)
		fail_msg("%s", err.msg);
	return k;
}

static bool verifies(EVP_PKEY *key, const char *hash, int padding, struct bytes what,
		     struct bytes signature)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_PKEY_CTX *how;
	bool good;

	assert_int_equal(EVP_DigestVerifyInit_ex(ctx, &how, hash, NULL, NULL, key, NULL), 1);
	if (padding)
		assert_int_equal(EVP_PKEY_CTX_set_rsa_padding(how, padding), 1);
	if (padding == RSA_PKCS1_PSS_PADDING) /* no other salt is TLS */
		assert_int_equal(EVP_PKEY_CTX_set_rsa_pss_saltlen(how, RSA_PSS_SALTLEN_DIGEST), 1);
	good = EVP_DigestVerify(ctx, signature.ptr, signature.len, what.ptr, what.len) == 1;
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return good;
}

static void what_is_signed_verifies(void **state)
{
	static const struct {
		const char *name, *kind;
		enum sign_scheme scheme;
		const char *hash;
		int padding;
	} rows[] = {
		{ "P-256", "P-256", SIGN_ECDSA_SHA256, "SHA256", 0 },
		{ "P-384", "P-384", SIGN_ECDSA_SHA384, "SHA384", 0 },
		{ "P-384 with less", "P-384", SIGN_ECDSA_SHA256, "SHA256", 0 },
		{ "P-256 with more", "P-256", SIGN_ECDSA_SHA512, "SHA512", 0 },
		{ "PSS", "RSA", SIGN_PSS_SHA256, "SHA256", RSA_PKCS1_PSS_PADDING },
		{ "PSS 384", "RSA", SIGN_PSS_SHA384, "SHA384", RSA_PKCS1_PSS_PADDING },
		{ "PSS 512", "RSA", SIGN_PSS_SHA512, "SHA512", RSA_PKCS1_PSS_PADDING },
		{ "PKCS", "RSA", SIGN_PKCS_SHA256, "SHA256", RSA_PKCS1_PADDING },
		{ "PKCS 384", "RSA", SIGN_PKCS_SHA384, "SHA384", RSA_PKCS1_PADDING },
		{ "PKCS 512", "RSA", SIGN_PKCS_SHA512, "SHA512", RSA_PKCS1_PADDING },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		EVP_PKEY *key = test_key(row->kind);
		struct sign_key *k = load(key);
		uint8_t signature[SIGN_MAX];
		struct err err = { 0 };
		size_t n = 0;

		assert_int_equal(
			sign_key_sign(k, row->scheme, BYTES_LIT("handshake"), signature, &n, &err),
			0);
		assert_true(verifies(key, row->hash, row->padding, BYTES_LIT("handshake"),
				     (struct bytes){ signature, n }));
		assert_false(verifies(key, row->hash, row->padding, BYTES_LIT("handshakf"),
				      (struct bytes){ signature, n }));
		sign_key_free(k);
		EVP_PKEY_free(key);
	}
}

static void a_scheme_of_another_kind_of_key_is_refused(void **state)
{
	static const struct {
		const char *name, *kind;
		unsigned int scheme;
	} rows[] = {
		{ "RSA's of EC", "P-256", SIGN_PSS_SHA256 },
		{ "EC's of RSA", "RSA", SIGN_ECDSA_SHA256 },
		{ "SHA-1", "RSA", 0x0201 },
		{ "Ed25519", "P-256", 0x0807 },
		{ "none", "P-256", 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		EVP_PKEY *key = test_key(row->kind);
		struct sign_key *k = load(key);
		uint8_t signature[SIGN_MAX];
		struct err err = { 0 };
		size_t n = 0;

		assert_int_equal(sign_key_sign(k, (enum sign_scheme)row->scheme, BYTES_LIT("x"),
					       signature, &n, &err),
				 -1);
		assert_int_equal(err.code, ERR_INVALID);
		sign_key_free(k);
		EVP_PKEY_free(key);
	}
}

static void the_id_is_of_the_public_half(void **state)
{
	EVP_PKEY *key = test_key("P-256");
	struct sign_key *k = load(key);
	unsigned char *der = NULL;
	uint8_t hash[32];
	char text[SIGN_ID_HEX + 1];
	int n = i2d_PUBKEY(key, &der);

	(void)state;
	assert_true(n > 0);
	assert_int_equal(EVP_Digest(der, (size_t)n, hash, NULL, EVP_sha256(), NULL), 1);
	assert_memory_equal(sign_key_id(k), hash, sizeof(hash));
	sign_id_text(hash, text);
	assert_int_equal(strlen(text), SIGN_ID_HEX);
	OPENSSL_free(der);
	sign_key_free(k);
	EVP_PKEY_free(key);
}

static void what_is_no_key_for_us_is_refused(void **state)
{
	static const struct {
		const char *name, *kind, *said;
	} rows[] = {
		{ "P-521", "P-521", "neither P-256" },
		{ "Ed25519", "ED25519", "neither P-256" },
		{ "short RSA", "RSA1024", "1024 bits" },
	};
	struct sign_key *k = NULL;
	struct err err = { 0 };

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf text = BUF_MAX(TEST_PEM_MAX);
		EVP_PKEY *key = test_key(row->kind);

		test_key_text(key, &text);
		assert_int_equal(sign_key_load(buf_view(&text), &k, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_non_null(strstr(err.msg, row->said));
		EVP_PKEY_free(key);
	}
	assert_int_equal(sign_key_load(BYTES_LIT("nothing of that kind"), &k, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
}

/* It must not ask at a terminal, either. */
static void an_encrypted_key_is_refused(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(TEST_PEM_MAX);
	EVP_PKEY *key = test_key("P-256");
	BIO *out = BIO_new(BIO_s_mem());
	struct sign_key *k = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(PEM_write_bio_PrivateKey(out, key, EVP_aes_256_cbc(),
						  (const unsigned char *)"pw", 2, NULL, NULL),
			 1);
	test_take_text(out, &text);
	assert_int_equal(sign_key_load(buf_view(&text), &k, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.msg, "without a password"));
	EVP_PKEY_free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_signed_verifies),
		cmocka_unit_test(a_scheme_of_another_kind_of_key_is_refused),
		cmocka_unit_test(the_id_is_of_the_public_half),
		cmocka_unit_test(what_is_no_key_for_us_is_refused),
		cmocka_unit_test(an_encrypted_key_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
