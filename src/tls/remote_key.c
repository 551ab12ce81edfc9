/* remote_key.c - a provider of OpenSSL, built in: key management and signatures of remote keys.
 *
 * What can be asked of a public key is asked of one of the library's own kind, which each of these
 * has inside. Only a signature is our own: it waits.
 */
#include "tls/remote_key.h"

#include <errno.h>
#include <openssl/async.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>
#include <stdio.h>

#include "tls/openssl_inside.h"
#include "tls/sign_key_inside.h"

#define PROVIDER "hotcell"

struct remote_place { /* the provider's context */
	struct tls_sign *now;
};

struct remote_key {
	struct remote_place *place;
	const char *kind; /* "EC", "RSA" */
	EVP_PKEY *half;   /* the public one */
	uint8_t id[SIGN_ID];
};

struct remote_signature { /* one that is being made */
	struct remote_place *place;
	struct remote_key *key; /* borrowed: the library holds it */
	char hash[16];
	bool pss;
};

/* --- keys ----------------------------------------------------------------------------------- */

static void *key_new(void *place, const char *kind)
{
	struct remote_key *k = OPENSSL_zalloc(sizeof(*k));

	if (k) {
		k->place = place;
		k->kind = kind;
	}
	return k;
}

static void *key_new_ec(void *place)
{
	return key_new(place, "EC");
}

static void *key_new_rsa(void *place)
{
	return key_new(place, "RSA");
}

static void key_free(void *key)
{
	struct remote_key *k = key;

	if (k)
		EVP_PKEY_free(k->half);
	OPENSSL_free(k);
}

/* The private half, too: it is just not here. */
static int key_has(const void *key, int what)
{
	(void)what;
	return key && ((const struct remote_key *)key)->half;
}

static int key_match(const void *a, const void *b, int what)
{
	const struct remote_key *x = a, *y = b;

	(void)what;
	return x->half && y->half && EVP_PKEY_eq(x->half, y->half) == 1;
}

static int key_import(void *key, int what, const OSSL_PARAM *params)
{
	struct remote_key *k = key;
	AUTO(own_pkey_ctx) EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, k->kind, NULL);
	OSSL_PARAM *copy = OSSL_PARAM_dup(params);
	struct err err;
	int done;

	(void)what;
	done = !k->half && ctx && copy && EVP_PKEY_fromdata_init(ctx) == 1 &&
	       EVP_PKEY_fromdata(ctx, &k->half, EVP_PKEY_PUBLIC_KEY, copy) == 1 &&
	       sign_id_of(k->half, k->id, &err) == 0;
	OSSL_PARAM_free(copy);
	return done;
}

static const OSSL_PARAM *key_import_types(int what)
{
	static const OSSL_PARAM types[] = {
		OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
		OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
		OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_N, NULL, 0),
		OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_E, NULL, 0),
		OSSL_PARAM_END,
	};

	(void)what;
	return types;
}

static int key_get_params(void *key, OSSL_PARAM params[])
{
	const struct remote_key *k = key;

	return k->half && EVP_PKEY_get_params(k->half, params) == 1;
}

static const OSSL_PARAM *key_gettable_params(void *place)
{
	static const OSSL_PARAM types[] = {
		OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL),
		OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL),
		OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL),
		OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
		OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, NULL, 0),
		OSSL_PARAM_END,
	};

	(void)place;
	return types;
}

/* Under a name that nobody else has, or the library would look for one of its own first. */
static const char *key_operation(int operation)
{
	return operation == OSSL_OP_SIGNATURE ? PROVIDER "-signature" : NULL;
}

/* --- signatures ----------------------------------------------------------------------------- */

static void *sign_new(void *place, const char *prefer)
{
	struct remote_signature *s = OPENSSL_zalloc(sizeof(*s));

	(void)prefer;
	if (s)
		s->place = place;
	return s;
}

static void sign_free(void *signature)
{
	OPENSSL_free(signature);
}

/* A name or a number, as the library's version has it. What it refuses to read leaves an error
 * behind, so it is not tried. */
static bool pad_mode(const OSSL_PARAM *p, bool *ret_pss)
{
	const char *text = NULL;
	int number = 0;

	if (p->data_type != OSSL_PARAM_UTF8_STRING && p->data_type != OSSL_PARAM_UTF8_PTR) {
		*ret_pss = OSSL_PARAM_get_int(p, &number) == 1 && number == RSA_PKCS1_PSS_PADDING;
		return *ret_pss || number == RSA_PKCS1_PADDING;
	}
	if (OSSL_PARAM_get_utf8_string_ptr(p, &text) != 1 || !text)
		return false;
	*ret_pss = strcmp(text, OSSL_PKEY_RSA_PAD_MODE_PSS) == 0;
	return *ret_pss || strcmp(text, OSSL_PKEY_RSA_PAD_MODE_PKCSV15) == 0;
}

/* Of PSS TLS knows one salt and one mask: what else is said of it is what the signer does. */
static int sign_set_params(void *signature, const OSSL_PARAM params[])
{
	struct remote_signature *s = signature;
	const OSSL_PARAM *p =
		params ? OSSL_PARAM_locate_const(params, OSSL_SIGNATURE_PARAM_PAD_MODE) : NULL;

	return !p || pad_mode(p, &s->pss);
}

static const OSSL_PARAM *sign_settable(void *signature, void *place)
{
	static const OSSL_PARAM types[] = {
		OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PAD_MODE, NULL, 0),
		OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PSS_SALTLEN, NULL, 0),
		OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_MGF1_DIGEST, NULL, 0),
		OSSL_PARAM_END,
	};

	(void)signature;
	(void)place;
	return types;
}

static int sign_init(void *signature, const char *hash, void *key, const OSSL_PARAM params[])
{
	struct remote_signature *s = signature;

	s->key = key;
	if (!s->key || !hash || !bytes_to_str(bytes_str(hash), s->hash, sizeof(s->hash)))
		return 0;
	return sign_set_params(signature, params);
}

static bool find_scheme(const struct remote_signature *s, enum sign_scheme *ret)
{
	static const struct {
		const char *name;
		enum sign_scheme ec, pss, pkcs;
	} hashes[] = {
		{ "SHA256", SIGN_ECDSA_SHA256, SIGN_PSS_SHA256, SIGN_PKCS_SHA256 },
		{ "SHA2-256", SIGN_ECDSA_SHA256, SIGN_PSS_SHA256, SIGN_PKCS_SHA256 },
		{ "SHA384", SIGN_ECDSA_SHA384, SIGN_PSS_SHA384, SIGN_PKCS_SHA384 },
		{ "SHA2-384", SIGN_ECDSA_SHA384, SIGN_PSS_SHA384, SIGN_PKCS_SHA384 },
		{ "SHA512", SIGN_ECDSA_SHA512, SIGN_PSS_SHA512, SIGN_PKCS_SHA512 },
		{ "SHA2-512", SIGN_ECDSA_SHA512, SIGN_PSS_SHA512, SIGN_PKCS_SHA512 },
	};

	for (size_t i = 0; i < COUNT(hashes); i++)
		if (strcmp(hashes[i].name, s->hash) == 0) {
			*ret = s->key->kind[0] == 'E' ? hashes[i].ec
			       : s->pss               ? hashes[i].pss
						      : hashes[i].pkcs;
			return true;
		}
	return false;
}

/* On the small stack of its handshake. It goes on when somebody has the answer; whoever calls the
 * handshake before that finds it waiting still. */
static bool wait_for_answer(struct tls_sign *now)
{
	while (now->state == TLS_SIGN_ASKED)
		if (ASYNC_pause_job() != 1)
			return false;
	return now->state == TLS_SIGN_DONE;
}

static int sign(void *signature, unsigned char *ret, size_t *ret_n, size_t room,
		const unsigned char *what, size_t n)
{
	const struct remote_signature *s = signature;
	struct tls_sign *now = s->place->now;
	size_t size = (size_t)EVP_PKEY_get_size(s->key->half);

	if (!ret) {
		*ret_n = size;
		return 1;
	}
	if (!now || !ASYNC_get_current_job() || n > sizeof(now->what) ||
	    !find_scheme(s, &now->scheme))
		return 0;
	memcpy(now->id, s->key->id, sizeof(now->id));
	memcpy(now->what, what, n);
	now->n_what = n;
	now->state = TLS_SIGN_ASKED;
	if (!wait_for_answer(now) || now->n_signature > room || now->n_signature > size)
		return 0;
	memcpy(ret, now->signature, now->n_signature);
	*ret_n = now->n_signature;
	return 1;
}

/* --- what the library sees of it ------------------------------------------------------------ */

#define FN(f) ((void (*)(void))(f)) /* tables of functions of any type: the library casts back */

#define KEY_FUNCTIONS(new_key)                                                  \
	{                                                                       \
		{ OSSL_FUNC_KEYMGMT_NEW, FN(new_key) },                         \
		{ OSSL_FUNC_KEYMGMT_FREE, FN(key_free) },                       \
		{ OSSL_FUNC_KEYMGMT_HAS, FN(key_has) },                         \
		{ OSSL_FUNC_KEYMGMT_MATCH, FN(key_match) },                     \
		{ OSSL_FUNC_KEYMGMT_IMPORT, FN(key_import) },                   \
		{ OSSL_FUNC_KEYMGMT_IMPORT_TYPES, FN(key_import_types) },       \
		{ OSSL_FUNC_KEYMGMT_GET_PARAMS, FN(key_get_params) },           \
		{ OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, FN(key_gettable_params) }, \
		{ OSSL_FUNC_KEYMGMT_QUERY_OPERATION_NAME, FN(key_operation) },  \
		{ 0, NULL },                                                    \
	}

static const OSSL_ALGORITHM *query(void *place, int operation, int *no_cache)
{
	static const OSSL_DISPATCH ec[] = KEY_FUNCTIONS(key_new_ec);
	static const OSSL_DISPATCH rsa[] = KEY_FUNCTIONS(key_new_rsa);
	static const OSSL_DISPATCH signature[] = {
		{ OSSL_FUNC_SIGNATURE_NEWCTX, FN(sign_new) },
		{ OSSL_FUNC_SIGNATURE_FREECTX, FN(sign_free) },
		{ OSSL_FUNC_SIGNATURE_DIGEST_SIGN_INIT, FN(sign_init) },
		{ OSSL_FUNC_SIGNATURE_DIGEST_SIGN, FN(sign) },
		{ OSSL_FUNC_SIGNATURE_SET_CTX_PARAMS, FN(sign_set_params) },
		{ OSSL_FUNC_SIGNATURE_SETTABLE_CTX_PARAMS, FN(sign_settable) },
		{ 0, NULL },
	};
	/* the names that the library's own have, so that a key and a certificate's fit */
	static const OSSL_ALGORITHM keys[] = {
		{ "EC:id-ecPublicKey:1.2.840.10045.2.1", "provider=" PROVIDER, ec, NULL },
		{ "RSA:rsaEncryption:1.2.840.113549.1.1.1", "provider=" PROVIDER, rsa, NULL },
		{ NULL, NULL, NULL, NULL },
	};
	static const OSSL_ALGORITHM signatures[] = {
		{ PROVIDER "-signature", "provider=" PROVIDER, signature, NULL },
		{ NULL, NULL, NULL, NULL },
	};

	(void)place;
	*no_cache = 0;
	if (operation == OSSL_OP_KEYMGMT)
		return keys;
	return operation == OSSL_OP_SIGNATURE ? signatures : NULL;
}

static void tear_down(void *place)
{
	OPENSSL_free(place);
}

static int begin(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *theirs,
		 const OSSL_DISPATCH **ours, void **place)
{
	static const OSSL_DISPATCH functions[] = {
		{ OSSL_FUNC_PROVIDER_QUERY_OPERATION, FN(query) },
		{ OSSL_FUNC_PROVIDER_TEARDOWN, FN(tear_down) },
		{ 0, NULL },
	};

	(void)handle;
	(void)theirs;
	*place = OPENSSL_zalloc(sizeof(struct remote_place));
	*ours = functions;
	return *place != NULL;
}

/* --- for the rest of tls/ ------------------------------------------------------------------- */

int remote_keys_open(struct remote_keys **ret, struct err *err)
{
	struct remote_keys *k = calloc(1, sizeof(*k));

	openssl_begin();
	if (!k)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "keys that are elsewhere");
	k->lib = OSSL_LIB_CTX_new();
	if (!k->lib || OSSL_PROVIDER_add_builtin(k->lib, PROVIDER, begin) != 1 ||
	    !(k->usual = OSSL_PROVIDER_load(k->lib, "default")) ||
	    !(k->own = OSSL_PROVIDER_load(k->lib, PROVIDER))) {
		remote_keys_close(k);
		return openssl_fail(err, ERR_INTERNAL, "keys that are elsewhere");
	}
	k->place = OSSL_PROVIDER_get0_provider_ctx(k->own);
	*ret = k;
	return 0;
}

void remote_keys_close(struct remote_keys *k)
{
	if (!k)
		return;
	if (k->own)
		(void)OSSL_PROVIDER_unload(k->own);
	if (k->usual)
		(void)OSSL_PROVIDER_unload(k->usual);
	OSSL_LIB_CTX_free(k->lib);
	free(k);
}

void remote_keys_now(struct remote_keys *k, struct tls_sign *now)
{
	k->place->now = now;
}

int remote_key_new(struct remote_keys *k, EVP_PKEY *half, EVP_PKEY **ret, struct err *err)
{
	const char *kind = EVP_PKEY_is_a(half, "RSA") ? "RSA" : "EC";
	AUTO(own_pkey_ctx)
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(k->lib, kind, "provider=" PROVIDER);
	OSSL_PARAM *params = NULL;
	bool done;

	*ret = NULL;
	done = ctx && EVP_PKEY_todata(half, EVP_PKEY_PUBLIC_KEY, &params) == 1 &&
	       EVP_PKEY_fromdata_init(ctx) == 1 &&
	       EVP_PKEY_fromdata(ctx, ret, EVP_PKEY_KEYPAIR, params) == 1;
	OSSL_PARAM_free(params);
	return done ? 0 : openssl_fail(err, ERR_INTERNAL, "a key that is elsewhere");
}
