/* authority.c - who may sign: the installation's root and its branches, as texts and back. */
#include "tls/authority.h"

#include <errno.h>
#include <openssl/x509v3.h>

#include "tls/certificate.h"
#include "tls/openssl_inside.h"
#include "tls/pem.h"
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

/* `ask` says for which hosts and how long. */
static int new_branch(const struct authority *root, struct certificate *ask, struct authority **ret,
		      struct err *err)
{
	AUTO(own_authority) struct authority *a = blank(err);

	ask->kind = CERTIFICATE_BRANCH;
	ask->issuer = root->cert;
	ask->issuer_key = root->key;
	if (!a || certificate_new(ask, &a->cert, &a->key, err) < 0)
		return -1;
	if (!push(a->above, root->cert))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate branch");
	*ret = TAKE(a);
	return 0;
}

int authority_branch(const struct authority *root, const char *label, const char *const *hosts,
		     size_t n_hosts, struct authority **ret, struct err *err)
{
	struct certificate ask = {
		.label = label, .days = AUTHORITY_BRANCH_DAYS, .hosts = hosts, .n_hosts = n_hosts
	};

	if (n_hosts == 0 || n_hosts > AUTHORITY_HOSTS_MAX)
		return err_set(err, ERR_INVALID, 0, "branch: 1 to %d hosts", AUTHORITY_HOSTS_MAX);
	return new_branch(root, &ask, ret, err);
}

int authority_branch_any(const struct authority *root, const char *label, struct authority **ret,
			 struct err *err)
{
	const char *const hosts[] = { "*" };
	struct certificate ask = {
		.label = label, .days = AUTHORITY_ANY_DAYS, .hosts = hosts, .n_hosts = 1
	};

	return new_branch(root, &ask, ret, err);
}

int authority_cert_text(const struct authority *a, struct buf *ret, struct err *err)
{
	return pem_write_certs(a->cert, a->above, ret, err);
}

int authority_key_text(const struct authority *a, struct buf *ret, struct err *err)
{
	return pem_write_key(a->key, ret, err);
}

static int read_certs(struct bytes text, struct authority *a, struct err *err)
{
	if (pem_read_certs(text, AUTHORITY_CHAIN_MAX, a->above, err) < 0)
		return -1;
	a->cert = sk_X509_shift(a->above);
	return 0;
}

static int read_key(struct bytes text, struct authority *a, struct err *err)
{
	if (pem_read_key(text, &a->key, err) < 0)
		return -1;
	if (EVP_PKEY_get_base_id(a->key) != EVP_PKEY_EC)
		return err_set(err, ERR_INVALID, 0, "the key of an authority is of another kind");
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

static int new_leaf(const struct authority *a, struct certificate *ask, struct identity **ret,
		    struct err *err)
{
	AUTO(own_identity) struct identity *i = calloc(1, sizeof(*i));

	ask->kind = CERTIFICATE_LEAF;
	ask->issuer = a->cert;
	ask->issuer_key = a->key;
	if (!i || !show_above(a, i))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate leaf");
	if (certificate_new(ask, &i->leaf, &i->key, err) < 0)
		return -1;
	*ret = TAKE(i);
	return 0;
}

int identity_new(const struct authority *a, const char *name, struct identity **ret,
		 struct err *err)
{
	char normal[DOMAIN_SIZE];
	const char *const hosts[] = { normal };
	struct certificate ask = { .label = normal, .hosts = hosts, .n_hosts = 1 };

	openssl_begin();
	if (!domain_normal(bytes_str(name), normal))
		return err_set(err, ERR_INVALID, 0, "leaf: not the name of a host");
	return new_leaf(a, &ask, ret, err);
}

/* --- an authority for one domain ------------------------------------------------------------ */

static size_t count_dots(const char *name)
{
	size_t n = 0;

	for (; *name; name++)
		n += *name == '.';
	return n;
}

int authority_domain_normal(const char *text, char ret[static DOMAIN_SIZE], struct err *err)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c > 127)
			return err_set(err, ERR_INVALID, 0,
				       "%.200s: write the name in its ASCII form, xn--...", text);
	if (!domain_normal(bytes_str(text), ret) || strchr(ret, '_'))
		return err_set(err, ERR_INVALID, 0,
			       "`%.100s` is no name of hosts: labels of letters, digits and -, "
			       "with dots between; no address",
			       text);
	if (count_dots(ret) < 1)
		return err_set(err, ERR_INVALID, 0,
			       "%.63s has one label, and Python, Node and browsers refuse "
			       "*.%.63s: use two or more, such as hotcell.localhost",
			       ret, ret);
	if (strlen(ret) > AUTHORITY_DOMAIN_MAX)
		return err_set(err, ERR_INVALID, 0,
			       "the name has more than %d characters: none is left for PORT-ID",
			       AUTHORITY_DOMAIN_MAX);
	return 0;
}

int authority_new_for(const char *domain, struct authority **ret, struct err *err)
{
	AUTO(own_authority) struct authority *a = blank(err);
	char label[DOMAIN_SIZE + 32], normal[DOMAIN_SIZE];
	const char *const hosts[] = { normal };
	struct certificate ask = { .label = label,
				   .days = AUTHORITY_ROOT_DAYS,
				   .kind = CERTIFICATE_BRANCH,
				   .hosts = hosts,
				   .n_hosts = 1 };

	if (!a || authority_domain_normal(domain, normal, err) < 0)
		return -1;
	snprintf(label, sizeof(label), "Hotcell for %s", normal);
	if (certificate_new(&ask, &a->cert, &a->key, err) < 0)
		return -1;
	*ret = TAKE(a);
	return 0;
}

bool authority_domain(const struct authority *a, char ret[static DOMAIN_SIZE])
{
	AUTO(own_constraints)
	NAME_CONSTRAINTS *limits = X509_get_ext_d2i(a->cert, NID_name_constraints, NULL, NULL);
	GENERAL_NAME *base;
	struct bytes name;

	if (!limits || sk_GENERAL_SUBTREE_num(limits->permittedSubtrees) != 1)
		return false;
	base = sk_GENERAL_SUBTREE_value(limits->permittedSubtrees, 0)->base;
	if (base->type != GEN_DNS)
		return false;
	name = (struct bytes){ ASN1_STRING_get0_data(base->d.dNSName),
			       (size_t)ASN1_STRING_length(base->d.dNSName) };
	return domain_normal(name, ret);
}

int authority_issue(const struct authority *a, const char *domain, int days, struct buf *ret_chain,
		    struct buf *ret_key, struct err *err)
{
	AUTO(own_identity) struct identity *i = NULL;
	char normal[DOMAIN_SIZE], below[DOMAIN_SIZE + 2];
	const char *const hosts[] = { normal, below };
	struct certificate ask = { .label = normal, .hosts = hosts, .n_hosts = 2, .days = days };

	openssl_begin();
	if (authority_domain_normal(domain, normal, err) < 0)
		return -1;
	snprintf(below, sizeof(below), "*.%s", normal);
	if (new_leaf(a, &ask, &i, err) < 0 || pem_write_key(i->key, ret_key, err) < 0)
		return -1;
	return pem_write_certs(i->leaf, i->above, ret_chain, err);
}
