/* authority.c - who may sign: the installation's root and its branches, as texts and back. */
#include "tls/authority.h"

#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tls/certificate.h"
#include "tls/openssl_inside.h"
#include "wire/domain.h"

struct authority {
	EVP_PKEY *key;
	X509 *cert;
	STACK_OF(X509) * above; /* who signed it, and who signed that one */
};

static void own_authority(struct authority **p)
{
	authority_free(*p);
}

void authority_free(struct authority *a)
{
	if (!a)
		return;
	EVP_PKEY_free(a->key); /* wipes it */
	X509_free(a->cert);
	sk_X509_pop_free(a->above, X509_free);
	free(a);
}

static struct authority *blank(struct err *err)
{
	struct authority *a = calloc(1, sizeof(*a));

	openssl_begin();
	if (a)
		a->above = sk_X509_new_null();
	if (a && a->above)
		return a;
	authority_free(a);
	err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate authority");
	return NULL;
}

static bool push(STACK_OF(X509) * to, X509 *x)
{
	return X509_up_ref(x) == 1 && (sk_X509_push(to, x) > 0 || (X509_free(x), false));
}

int authority_new(const char *label, struct authority **ret, struct err *err)
{
	AUTO(own_authority) struct authority *a = blank(err);
	struct certificate ask = { .label = label,
				   .days = AUTHORITY_ROOT_DAYS,
				   .kind = CERTIFICATE_ROOT };

	if (!a || certificate_new(&ask, &a->cert, &a->key, err) < 0)
		return -1;
	*ret = TAKE(a);
	return 0;
}

int authority_branch(const struct authority *root, const char *label, const char *const *hosts,
		     size_t n_hosts, struct authority **ret, struct err *err)
{
	AUTO(own_authority) struct authority *a = blank(err);
	struct certificate ask = { .label = label,
				   .days = AUTHORITY_BRANCH_DAYS,
				   .kind = CERTIFICATE_BRANCH,
				   .hosts = hosts,
				   .n_hosts = n_hosts,
				   .issuer = root->cert,
				   .issuer_key = root->key };

	if (n_hosts == 0 || n_hosts > AUTHORITY_HOSTS_MAX)
		return err_set(err, ERR_INVALID, 0, "branch: 1 to %d hosts", AUTHORITY_HOSTS_MAX);
	if (!a || certificate_new(&ask, &a->cert, &a->key, err) < 0)
		return -1;
	if (!push(a->above, root->cert))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate branch");
	*ret = TAKE(a);
	return 0;
}

int authority_cert_text(const struct authority *a, struct buf *ret, struct err *err)
{
	AUTO(own_bio) BIO *text = BIO_new(BIO_s_mem());
	bool done = text && PEM_write_bio_X509(text, a->cert) == 1;

	for (int i = 0; done && i < sk_X509_num(a->above); i++)
		done = PEM_write_bio_X509(text, sk_X509_value(a->above, i)) == 1;
	if (!done)
		return openssl_fail(err, ERR_INTERNAL, "write a certificate");
	return openssl_append(text, ret, err);
}

int authority_key_text(const struct authority *a, struct buf *ret, struct err *err)
{
	AUTO(own_bio) BIO *text = BIO_new(BIO_s_secmem()); /* wiped when freed */

	if (!text || PEM_write_bio_PrivateKey(text, a->key, NULL, NULL, 0, NULL, NULL) != 1)
		return openssl_fail(err, ERR_INTERNAL, "write a key");
	return openssl_append(text, ret, err);
}

/* Without one the library would ask at the terminal. */
static int no_password(char *into, int size, int writing, void *user)
{
	(void)into;
	(void)size;
	(void)writing;
	(void)user;
	return -1;
}

static int read_certs(struct bytes text, struct authority *a, struct err *err)
{
	AUTO(own_bio) BIO *in = BIO_new_mem_buf(text.ptr, (int)text.len);

	if (in)
		a->cert = PEM_read_bio_X509(in, NULL, no_password, NULL);
	if (!a->cert)
		return openssl_fail(err, ERR_INVALID, "read a certificate");
	for (int i = 0; i < AUTHORITY_CHAIN_MAX; i++) {
		X509 *x = PEM_read_bio_X509(in, NULL, no_password, NULL);

		if (!x) {
			openssl_begin(); /* "no more" is an error to the library */
			return 0;
		}
		if (sk_X509_push(a->above, x) <= 0) {
			X509_free(x);
			return err_set(err, ERR_EXHAUSTED, ENOMEM, "read certificates");
		}
	}
	return err_set(err, ERR_INVALID, 0, "more than %d certificates", AUTHORITY_CHAIN_MAX);
}

static int read_key(struct bytes text, struct authority *a, struct err *err)
{
	AUTO(own_bio) BIO *in = BIO_new_mem_buf(text.ptr, (int)text.len);

	if (in)
		a->key = PEM_read_bio_PrivateKey(in, NULL, no_password, NULL);
	if (!a->key || EVP_PKEY_get_base_id(a->key) != EVP_PKEY_EC)
		return openssl_fail(err, ERR_INVALID, "read the key of a certificate");
	return 0;
}

/* Each signed by the next, and all of them now valid and allowed to sign. */
static int check_chain(const struct authority *a, struct err *err)
{
	X509 *x = a->cert;

	for (int i = 0; x; i++) {
		X509 *next = i < sk_X509_num(a->above) ? sk_X509_value(a->above, i) : NULL;
		X509 *signer = next ? next : x;

		if (X509_check_ca(x) != 1)
			return err_set(err, ERR_INVALID, 0, "a certificate may not sign others");
		if (X509_cmp_current_time(X509_get0_notBefore(x)) >= 0 ||
		    X509_cmp_current_time(X509_get0_notAfter(x)) <= 0)
			return err_set(err, ERR_MISMATCH, 0, "a certificate is not valid now");
		if (X509_check_issued(signer, x) != X509_V_OK ||
		    X509_verify(x, X509_get0_pubkey(signer)) != 1)
			return openssl_fail(err, ERR_INVALID,
					    "a certificate is not signed by the next");
		x = next;
	}
	return 0;
}

int authority_load(struct bytes cert_text, struct bytes key_text, struct authority **ret,
		   struct err *err)
{
	AUTO(own_authority) struct authority *a = blank(err);

	if (!a)
		return -1;
	if (cert_text.len > AUTHORITY_TEXT_MAX || key_text.len > AUTHORITY_TEXT_MAX)
		return err_set(err, ERR_INVALID, 0, "certificate or key too long");
	if (read_certs(cert_text, a, err) < 0 || read_key(key_text, a, err) < 0)
		return -1;
	if (X509_check_private_key(a->cert, a->key) != 1)
		return openssl_fail(err, ERR_INVALID, "the key is not that of the certificate");
	if (check_chain(a, err) < 0)
		return -1;
	*ret = TAKE(a);
	return 0;
}

static void own_identity(struct identity **p)
{
	identity_free(*p);
}

void identity_free(struct identity *i)
{
	if (!i)
		return;
	EVP_PKEY_free(i->key);
	X509_free(i->leaf);
	sk_X509_pop_free(i->above, X509_free);
	free(i);
}

/* Those between leaf and root, to be shown with the leaf. */
static bool show_above(const struct authority *a, struct identity *i)
{
	i->above = sk_X509_new_null();
	if (!i->above)
		return false;
	if (X509_self_signed(a->cert, 0) == 1)
		return true;
	if (!push(i->above, a->cert))
		return false;
	for (int k = 0; k < sk_X509_num(a->above); k++) {
		X509 *x = sk_X509_value(a->above, k);

		if (X509_self_signed(x, 0) != 1 && !push(i->above, x))
			return false;
	}
	return true;
}

int identity_new(const struct authority *a, const char *name, struct identity **ret,
		 struct err *err)
{
	AUTO(own_identity) struct identity *i = calloc(1, sizeof(*i));
	char normal[DOMAIN_SIZE];
	struct certificate ask = {
		.label = normal, .kind = CERTIFICATE_LEAF, .issuer = a->cert, .issuer_key = a->key
	};

	openssl_begin();
	if (!domain_normal(bytes_str(name), normal))
		return err_set(err, ERR_INVALID, 0, "leaf: not the name of a host");
	if (!i || !show_above(a, i))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate leaf");
	if (certificate_new(&ask, &i->leaf, &i->key, err) < 0)
		return -1;
	*ret = TAKE(i);
	return 0;
}
