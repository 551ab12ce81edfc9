/* seal.c - X25519, HKDF-SHA-256 and AES-256-GCM, put together as is usual.
 *
 *	1 byte    version
 *	4 bytes   which key: the beginning of its public half
 *	32 bytes  public half of the key of this one use
 *	n bytes   the value, encrypted
 *	16 bytes  tag, over all before it and the label
 *
 * Key and nonce are drawn from the shared secret and both public halves. The one-use key makes them
 * new for every text, so the nonce needs no randomness of its own.
 */
#include "tls/seal.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/params.h>

#include "base/wipe.h"
#include "tls/openssl_inside.h"
#include "wire/base64.h"

enum {
	VERSION = 1,
	ID_LEN = 4,
	HALF_LEN = 32,
	TAG_LEN = 16,
	HEAD_LEN = 1 + ID_LEN + HALF_LEN,
	KEY_LEN = 32,
	NONCE_LEN = 12,
};
static_assert(HEAD_LEN + TAG_LEN == SEAL_OVERHEAD, "as seal.h says");

struct seal_key {
	EVP_PKEY *pair;
	uint8_t public_half[HALF_LEN];
};

static int half_text(const uint8_t half[HALF_LEN], char ret[SEAL_KEY_TEXT + 1], struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(SEAL_KEY_TEXT);

	if (base64_encode((struct bytes){ half, HALF_LEN }, &text, err) < 0)
		return -1;
	(void)bytes_to_str(buf_view(&text), ret, SEAL_KEY_TEXT + 1);
	return 0;
}

static int half_read(struct bytes text, uint8_t ret[HALF_LEN], struct err *err)
{
	AUTO(buf_done) struct buf raw = BUF_SECRET(HALF_LEN + 1);

	if (text.len != SEAL_KEY_TEXT || base64_decode(text, &raw, err) < 0 || raw.len != HALF_LEN)
		return err_set(err, ERR_INVALID, 0, "sealing key: not 32 bytes in base64");
	memcpy(ret, raw.ptr, HALF_LEN);
	return 0;
}

static int key_of(EVP_PKEY *pair, struct seal_key **ret, struct err *err)
{
	struct seal_key *k = calloc(1, sizeof(*k));
	size_t n = HALF_LEN;

	if (!k) {
		EVP_PKEY_free(pair);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate sealing key");
	}
	k->pair = pair;
	if (EVP_PKEY_get_raw_public_key(pair, k->public_half, &n) != 1 || n != HALF_LEN) {
		seal_key_free(k);
		return openssl_fail(err, ERR_INTERNAL, "public half of the sealing key");
	}
	*ret = k;
	return 0;
}

int seal_key_new(struct seal_key **ret, struct err *err)
{
	EVP_PKEY *pair;

	openssl_begin();
	pair = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
	if (!pair)
		return openssl_fail(err, ERR_INTERNAL, "make a sealing key");
	return key_of(pair, ret, err);
}

int seal_key_load(struct bytes text, struct seal_key **ret, struct err *err)
{
	uint8_t half[HALF_LEN];
	EVP_PKEY *pair;

	openssl_begin();
	if (half_read(text, half, err) < 0)
		return -1;
	pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, half, sizeof(half));
	wipe(half, sizeof(half));
	if (!pair)
		return openssl_fail(err, ERR_INVALID, "load the sealing key");
	return key_of(pair, ret, err);
}

int seal_key_text(const struct seal_key *k, char ret[SEAL_KEY_TEXT + 1], struct err *err)
{
	uint8_t half[HALF_LEN];
	size_t n = sizeof(half);
	int rc;

	if (EVP_PKEY_get_raw_private_key(k->pair, half, &n) != 1 || n != sizeof(half))
		return openssl_fail(err, ERR_INTERNAL, "write the sealing key");
	rc = half_text(half, ret, err);
	wipe(half, sizeof(half));
	return rc;
}

int seal_key_public(const struct seal_key *k, char ret[SEAL_KEY_TEXT + 1], struct err *err)
{
	return half_text(k->public_half, ret, err);
}

void seal_key_free(struct seal_key *k)
{
	if (!k)
		return;
	EVP_PKEY_free(k->pair);
	free(k);
}

/* What both sides find, each with its own half: secret for GCM, key first, then nonce. */
static int agree(EVP_PKEY *mine, const uint8_t theirs[HALF_LEN], uint8_t ret[HALF_LEN],
		 struct err *err)
{
	AUTO(own_pkey)
	EVP_PKEY *other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, theirs, HALF_LEN);
	AUTO(own_pkey_ctx) EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(mine, NULL);
	size_t n = HALF_LEN;

	/* refuses the few points of small order, whose secret everybody knows */
	if (!other || !ctx || EVP_PKEY_derive_init(ctx) != 1 ||
	    EVP_PKEY_derive_set_peer(ctx, other) != 1 || EVP_PKEY_derive(ctx, ret, &n) != 1 ||
	    n != HALF_LEN)
		return openssl_fail(err, ERR_INVALID, "agree on a key");
	return 0;
}

static int stretch(uint8_t shared[HALF_LEN], uint8_t salt[2 * HALF_LEN],
		   uint8_t ret[KEY_LEN + NONCE_LEN], struct err *err)
{
	char digest[] = "SHA256", info[] = "hotcell seal 1";
	AUTO(own_kdf) EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	AUTO(own_kdf_ctx) EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, shared, HALF_LEN),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt, 2 * (size_t)HALF_LEN),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, sizeof(info) - 1),
		OSSL_PARAM_construct_end(),
	};

	if (!ctx || EVP_KDF_derive(ctx, ret, KEY_LEN + NONCE_LEN, params) != 1)
		return openssl_fail(err, ERR_INTERNAL, "draw a key");
	return 0;
}

/* `head` is that of the text: it holds the one-use half. `to` is whom it is sealed for. */
static int draw(EVP_PKEY *mine, const uint8_t theirs[HALF_LEN], const uint8_t head[HEAD_LEN],
		const uint8_t to[HALF_LEN], uint8_t ret[KEY_LEN + NONCE_LEN], struct err *err)
{
	uint8_t shared[HALF_LEN], salt[2 * HALF_LEN];
	int rc;

	memcpy(salt, head + 1 + ID_LEN, HALF_LEN);
	memcpy(salt + HALF_LEN, to, HALF_LEN);
	rc = agree(mine, theirs, shared, err);
	if (rc == 0)
		rc = stretch(shared, salt, ret, err);
	wipe(shared, sizeof(shared));
	return rc;
}

/* Both ways: `in` through the cipher to `out`, with the tag over it, the head and the label. */
static bool run_cipher(bool sealing, const uint8_t keys[KEY_LEN + NONCE_LEN],
		       const uint8_t head[HEAD_LEN], struct bytes label, struct bytes in,
		       uint8_t *out, uint8_t tag[TAG_LEN])
{
	AUTO(own_cipher_ctx) EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n = 0;

	if (!c ||
	    EVP_CipherInit_ex2(c, EVP_aes_256_gcm(), keys, keys + KEY_LEN, sealing, NULL) != 1)
		return false;
	if (EVP_CipherUpdate(c, NULL, &n, head, HEAD_LEN) != 1)
		return false;
	if (label.len > 0 && EVP_CipherUpdate(c, NULL, &n, label.ptr, (int)label.len) != 1)
		return false;
	if (in.len > 0 && EVP_CipherUpdate(c, out, &n, in.ptr, (int)in.len) != 1)
		return false;
	if (!sealing && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, TAG_LEN, tag) != 1)
		return false;
	if (EVP_CipherFinal_ex(c, out + in.len, &n) != 1) /* GCM has nothing left to write here */
		return false;
	return !sealing || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, TAG_LEN, tag) == 1;
}

/* All of a text but its base64, into `ret`, which has room for it. */
static int seal_raw(const uint8_t to[HALF_LEN], struct bytes label, struct bytes value,
		    uint8_t *ret, struct err *err)
{
	AUTO(own_pkey) EVP_PKEY *once = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
	uint8_t keys[KEY_LEN + NONCE_LEN];
	size_t n = HALF_LEN;
	bool done;

	ret[0] = VERSION;
	memcpy(ret + 1, to, ID_LEN);
	if (!once || EVP_PKEY_get_raw_public_key(once, ret + 1 + ID_LEN, &n) != 1)
		return openssl_fail(err, ERR_INTERNAL, "seal: make a key");
	if (draw(once, to, ret, to, keys, err) < 0)
		return err_wrap(err, "seal");
	done = run_cipher(true, keys, ret, label, value, ret + HEAD_LEN,
			  ret + HEAD_LEN + value.len);
	wipe(keys, sizeof(keys));
	return done ? 0 : openssl_fail(err, ERR_INTERNAL, "seal");
}

int seal(struct bytes public_text, struct bytes label, struct bytes value, struct buf *ret,
	 struct err *err)
{
	AUTO(buf_done) struct buf raw = BUF_SECRET(SEAL_VALUE_MAX + SEAL_OVERHEAD);
	uint8_t to[HALF_LEN], *room;

	openssl_begin();
	if (value.len > SEAL_VALUE_MAX || label.len > SEAL_LABEL_MAX)
		return err_set(err, ERR_INVALID, 0, "seal: a value has at most %d bytes",
			       SEAL_VALUE_MAX);
	if (half_read(public_text, to, err) < 0 ||
	    buf_reserve(&raw, value.len + SEAL_OVERHEAD, &room, err) < 0 ||
	    seal_raw(to, label, value, room, err) < 0)
		return -1;
	buf_claim(&raw, value.len + SEAL_OVERHEAD);
	return base64_encode(buf_view(&raw), ret, err);
}

static int unseal_raw(const struct seal_key *k, struct bytes label, struct bytes raw, uint8_t *ret,
		      struct err *err)
{
	struct bytes body = bytes_head(bytes_tail(raw, HEAD_LEN), raw.len - SEAL_OVERHEAD);
	uint8_t keys[KEY_LEN + NONCE_LEN], tag[TAG_LEN];
	bool done;

	if (draw(k->pair, raw.ptr + 1 + ID_LEN, raw.ptr, k->public_half, keys, err) < 0)
		return err_wrap(err, "unseal");
	memcpy(tag, raw.ptr + raw.len - TAG_LEN, TAG_LEN);
	done = run_cipher(false, keys, raw.ptr, label, body, ret, tag);
	wipe(keys, sizeof(keys));
	if (done)
		return 0;
	wipe(ret, body.len); /* what a wrong tag lets through is nobody's */
	return err_set(err, ERR_INVALID, 0, "unseal: changed, or sealed under another label");
}

int unseal(const struct seal_key *k, struct bytes label, struct bytes text, struct buf *ret,
	   struct err *err)
{
	AUTO(buf_done) struct buf raw = BUF_MAX(SEAL_VALUE_MAX + SEAL_OVERHEAD);
	uint8_t *room;

	openssl_begin();
	if (text.len > SEAL_TEXT_MAX || label.len > SEAL_LABEL_MAX ||
	    base64_decode(text, &raw, err) < 0 || raw.len < SEAL_OVERHEAD || raw.ptr[0] != VERSION)
		return err_set(err, ERR_INVALID, 0, "unseal: not a sealed text");
	if (memcmp(raw.ptr + 1, k->public_half, ID_LEN) != 0)
		return err_set(err, ERR_MISMATCH, 0,
			       "unseal: sealed for another key: set the secret anew");
	/* one more: an empty value has an address, too */
	if (buf_reserve(ret, raw.len - SEAL_OVERHEAD + 1, &room, err) < 0 ||
	    unseal_raw(k, label, buf_view(&raw), room, err) < 0)
		return -1;
	buf_claim(ret, raw.len - SEAL_OVERHEAD);
	return 0;
}
