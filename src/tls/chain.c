/* chain.c - see chain.h. */
#include "tls/chain.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <time.h>

#include "tls/chain_inside.h"
#include "tls/remote_key.h"
#include "tls/sign_key_inside.h"

struct chain {
	struct identity who;
	uint8_t id[SIGN_ID];
	int64_t until;
	size_t n_names;
	bool addresses; /* it names some, too */
	char names[CHAIN_NAMES_MAX][DOMAIN_SIZE];
};

/* --- reading -------------------------------------------------------------------------------- */

static int read_all_of(struct chain *c, BIO *in, struct err *err)
{
	X509 *x;

	c->who.above = sk_X509_new_null();
	c->who.leaf = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL);
	if (!c->who.leaf || !c->who.above)
		return openssl_fail(err, ERR_INVALID, "not a certificate in PEM");
	while ((x = PEM_read_bio_X509(in, NULL, NULL, NULL))) {
		if (sk_X509_num(c->who.above) < CHAIN_MAX - 1 && sk_X509_push(c->who.above, x) > 0)
			continue;
		X509_free(x);
		return err_set(err, ERR_INVALID, 0, "more than %d certificates", CHAIN_MAX);
	}
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return openssl_fail(err, ERR_INVALID, "what follows its first certificate");
	ERR_clear_error();
	return 0;
}

static int check_order(struct chain *c, struct err *err)
{
	X509 *below = c->who.leaf;

	for (int i = 0; i < sk_X509_num(c->who.above); i++) {
		X509 *x = sk_X509_value(c->who.above, i);

		if (X509_check_issued(x, below) != X509_V_OK)
			return err_set(err, ERR_INVALID, 0,
				       "certificate %d did not sign the one before it: the "
				       "server's comes first, then each that signed it",
				       i + 2);
		below = x;
	}
	return 0;
}

/* The client has it, or will not believe it. */
static void drop_root(struct chain *c)
{
	int last = sk_X509_num(c->who.above) - 1;
	X509 *x = last >= 0 ? sk_X509_value(c->who.above, last) : NULL;

	if (x && X509_check_issued(x, x) == X509_V_OK)
		X509_free(sk_X509_delete(c->who.above, last));
}

/* --- what it says --------------------------------------------------------------------------- */

static int seconds_of(const ASN1_TIME *t, int64_t *ret)
{
	struct tm tm = { 0 };

	if (ASN1_TIME_to_tm(t, &tm) != 1)
		return -1;
	*ret = timegm(&tm);
	return 0;
}

static int check_time(struct chain *c, struct err *err)
{
	int64_t now = time(NULL), from;

	if (seconds_of(X509_get0_notBefore(c->who.leaf), &from) < 0 ||
	    seconds_of(X509_get0_notAfter(c->who.leaf), &c->until) < 0)
		return err_set(err, ERR_INVALID, 0, "when it is valid cannot be read");
	if (c->until <= now)
		return err_set(err, ERR_INVALID, 0, "it expired %ld hours ago",
			       (long)((now - c->until) / 3600));
	if (from > now)
		return err_set(err, ERR_INVALID, 0, "it is not valid yet: in %ld hours",
			       (long)((from - now) / 3600 + 1));
	return 0;
}

static int take_name(struct chain *c, const GENERAL_NAME *g, struct err *err)
{
	struct bytes text;

	c->addresses = c->addresses || g->type == GEN_IPADD;
	if (g->type != GEN_DNS)
		return 0;
	if (c->n_names == CHAIN_NAMES_MAX)
		return err_set(err, ERR_INVALID, 0, "more than %d names", CHAIN_NAMES_MAX);
	text.ptr = ASN1_STRING_get0_data(g->d.dNSName);
	text.len = (size_t)ASN1_STRING_length(g->d.dNSName);
	if (!bytes_eq(text, BYTES_LIT("*")) && domain_pattern(text, c->names[c->n_names]))
		c->n_names++;
	return 0;
}

static int take_names(struct chain *c, struct err *err)
{
	GENERAL_NAMES *all = X509_get_ext_d2i(c->who.leaf, NID_subject_alt_name, NULL, NULL);
	int rc = 0;

	for (int i = 0; rc == 0 && i < sk_GENERAL_NAME_num(all); i++)
		rc = take_name(c, sk_GENERAL_NAME_value(all, i), err);
	GENERAL_NAMES_free(all);
	ERR_clear_error();
	if (rc == 0 && c->n_names == 0 && !c->addresses)
		return err_set(err, ERR_INVALID, 0, "it names no host (subjectAltName)");
	return rc;
}

static int check_use(struct chain *c, struct err *err)
{
	if (X509_check_purpose(c->who.leaf, X509_PURPOSE_SSL_SERVER, 0) == 1)
		return 0;
	ERR_clear_error();
	return err_set(err, ERR_INVALID, 0, "it is not for a server (extendedKeyUsage)");
}

static int take_key(struct chain *c, struct tls_service *s, struct err *err)
{
	EVP_PKEY *half = X509_get0_pubkey(c->who.leaf); /* borrowed */
	bool rsa;

	if (!half)
		return openssl_fail(err, ERR_INVALID, "its key cannot be read");
	if (sign_kind_check(half, &rsa, err) < 0 || sign_id_of(half, c->id, err) < 0)
		return -1;
	return remote_key_new(tls_service_keys(s), half, &c->who.key, err);
}

/* All that the library would find wrong with it when a client is there already. */
static int try_it(struct chain *c, struct tls_service *s, struct err *err)
{
	SSL *ssl = SSL_new(tls_service_ssl(s));
	bool done = ssl && SSL_use_cert_and_key(ssl, c->who.leaf, c->who.key, c->who.above, 1) == 1;

	SSL_free(ssl);
	return done ? 0 : openssl_fail(err, ERR_INVALID, "it cannot be shown");
}

/* --- for others ----------------------------------------------------------------------------- */

static void own_chain(struct chain **p)
{
	chain_free(*p);
}

int chain_load(struct tls_service *s, struct bytes text, struct chain **ret, struct err *err)
{
	AUTO(own_chain) struct chain *c = calloc(1, sizeof(*c));
	AUTO(own_bio) BIO *in = NULL;

	if (!c || text.len > CHAIN_TEXT_MAX)
		return err_set(err, ERR_EXHAUSTED, c ? 0 : ENOMEM, "read a certificate");
	ERR_clear_error();
	in = BIO_new_mem_buf(text.ptr, (int)text.len);
	if (!in || read_all_of(c, in, err) < 0)
		return in ? -1 : openssl_fail(err, ERR_EXHAUSTED, "read a certificate");
	if (check_time(c, err) < 0 || check_use(c, err) < 0 || take_names(c, err) < 0 ||
	    take_key(c, s, err) < 0 || check_order(c, err) < 0)
		return -1;
	drop_root(c);
	if (try_it(c, s, err) < 0)
		return -1;
	*ret = TAKE(c);
	return 0;
}

void chain_free(struct chain *c)
{
	if (!c)
		return;
	EVP_PKEY_free(c->who.key);
	X509_free(c->who.leaf);
	sk_X509_pop_free(c->who.above, X509_free);
	free(c);
}

const uint8_t *chain_key_id(const struct chain *c)
{
	return c->id;
}

int64_t chain_until(const struct chain *c)
{
	return c->until;
}

const struct identity *chain_identity(const struct chain *c)
{
	return &c->who;
}

size_t chain_names(const struct chain *c)
{
	return c->n_names;
}

const char *chain_name(const struct chain *c, size_t i)
{
	return c->names[i];
}

enum chain_fit chain_fits(const struct chain *c, const char *name)
{
	const char *rest = strchr(name, '.');
	enum chain_fit fit = CHAIN_NO_FIT;

	for (size_t i = 0; i < c->n_names; i++) {
		if (strcmp(c->names[i], name) == 0)
			return CHAIN_EXACT;
		if (rest && c->names[i][0] == '*' && strcmp(c->names[i] + 1, rest) == 0)
			fit = CHAIN_WILDCARD;
	}
	return fit;
}
