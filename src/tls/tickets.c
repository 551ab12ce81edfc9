/* tickets.c - see tickets.h. AES-256-CBC and HMAC-SHA-256, as RFC 5077 has it. */
#include "tls/tickets.h"

#include <openssl/core_names.h>

#include "base/random.h"
#include "base/wipe.h"

/* What the library wants to hear of a ticket. */
enum { TICKET_FAILED = -1, TICKET_UNKNOWN = 0, TICKET_GOOD = 1, TICKET_RENEW = 2 };

static bool set_mac(EVP_MAC_CTX *mac, struct ticket_key *k)
{
	char hash[] = "SHA256"; /* the library wants one it could change */
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, k->mac, sizeof(k->mac)),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, hash, 0),
		OSSL_PARAM_construct_end(),
	};

	return EVP_MAC_CTX_set_params(mac, params) == 1;
}

static int seal_with(struct tickets *t, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *c,
		     EVP_MAC_CTX *mac)
{
	struct ticket_key *k = &t->key[0];

	memcpy(name, k->name, sizeof(k->name));
	random_fill(iv, (size_t)EVP_CIPHER_get_iv_length(t->aes));
	if (EVP_EncryptInit_ex2(c, t->aes, k->cipher, iv, NULL) != 1 || !set_mac(mac, k))
		return TICKET_FAILED;
	return TICKET_GOOD;
}

static int open_with(struct tickets *t, const unsigned char *name, const unsigned char *iv,
		     EVP_CIPHER_CTX *c, EVP_MAC_CTX *mac)
{
	for (size_t i = 0; i < TICKET_KEYS; i++) {
		struct ticket_key *k = &t->key[i];

		if (!k->made || memcmp(k->name, name, sizeof(k->name)) != 0)
			continue;
		if (EVP_DecryptInit_ex2(c, t->aes, k->cipher, iv, NULL) != 1 || !set_mac(mac, k))
			return TICKET_FAILED;
		return i == 0 ? TICKET_GOOD : TICKET_RENEW;
	}
	return TICKET_UNKNOWN;
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *c,
		     EVP_MAC_CTX *mac, int sealing)
{
	struct tickets *t = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	return sealing ? seal_with(t, name, iv, c, mac) : open_with(t, name, iv, c, mac);
}

void tickets_rotate(struct tickets *t)
{
	struct ticket_key *k = &t->key[0];

	memmove(&t->key[1], &t->key[0], (TICKET_KEYS - 1) * sizeof(t->key[0]));
	random_fill(k->name, sizeof(k->name));
	random_fill(k->cipher, sizeof(k->cipher));
	random_fill(k->mac, sizeof(k->mac));
	k->made = true;
}

static void on_rotation(struct timer *timer)
{
	tickets_rotate(CONTAINER_OF(timer, struct tickets, rotation));
}

int tickets_open(struct tickets *t, struct loop *l, OSSL_LIB_CTX *lib, SSL_CTX *ssl,
		 uint64_t period_ms, struct err *err)
{
	t->aes = EVP_CIPHER_fetch(lib, "AES-256-CBC", NULL);
	if (!t->aes || SSL_CTX_set_app_data(ssl, t) != 1 ||
	    SSL_CTX_set_tlsext_ticket_key_evp_cb(ssl, on_ticket) != 1)
		return openssl_fail(err, ERR_INTERNAL, "begin tickets");
	(void)SSL_CTX_set_timeout(ssl, (long)(period_ms / 1000));
	timer_init(&t->rotation, l, on_rotation);
	timer_repeat(&t->rotation, period_ms);
	tickets_rotate(t);
	return 0;
}

void tickets_close(struct tickets *t)
{
	timer_stop(&t->rotation);
	EVP_CIPHER_free(t->aes);
	wipe(t, sizeof(*t));
}
