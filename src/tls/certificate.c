/* certificate.c - a new certificate, piece by piece: names, time, what it may be used for. */
#include "tls/certificate.h"

#include <openssl/bn.h>
#include <openssl/x509v3.h>

#include "base/random.h"
#include "tls/openssl_inside.h"
#include "wire/domain.h"

enum {
	SERIAL_LEN = 16,
	COMMON_NAME_MAX = 64, /* by the standard; a longer host is only in the list of names */
	ROOT_EARLY_S = 24 * 3600,
	EARLY_S = 3600, /* clocks of guests may be behind */
};

static bool set_serial(X509 *x)
{
	uint8_t raw[SERIAL_LEN];
	AUTO(own_bn) BIGNUM *n = NULL;

	random_fill(raw, sizeof(raw));
	raw[0] = (uint8_t)((raw[0] & 0x3f) | 0x40); /* positive, and always as long */
	n = BN_bin2bn(raw, sizeof(raw), NULL);
	return n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
}

static bool set_names(X509 *x, const struct certificate *ask)
{
	X509_NAME *subject = X509_get_subject_name(x);
	const char *label = strlen(ask->label) <= COMMON_NAME_MAX ? ask->label : "Hotcell";

	if (X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, (const uint8_t *)"Hotcell", -1,
				       -1, 0) != 1 ||
	    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const uint8_t *)label, -1, -1,
				       0) != 1)
		return false;
	return X509_set_issuer_name(x, ask->issuer ? X509_get_subject_name(ask->issuer)
						   : subject) == 1;
}

static bool set_times(X509 *x, const struct certificate *ask)
{
	bool leaf = ask->kind == CERTIFICATE_LEAF;
	const ASN1_TIME *last = leaf ? X509_get0_notAfter(ask->issuer) : NULL;

	if (leaf && ask->days == 0)
		return X509_set1_notBefore(x, X509_get0_notBefore(ask->issuer)) == 1 &&
		       X509_set1_notAfter(x, last) == 1;
	if (!X509_gmtime_adj(X509_getm_notBefore(x), ask->issuer ? -EARLY_S : -ROOT_EARLY_S) ||
	    !X509_time_adj_ex(X509_getm_notAfter(x), ask->days, 0, NULL))
		return false;
	return !leaf || ASN1_TIME_compare(X509_get0_notAfter(x), last) <= 0 ||
	       X509_set1_notAfter(x, last) == 1;
}

static bool add_text(X509 *x, X509V3_CTX *ctx, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, ctx, nid, value);
	bool done = e && X509_add_ext(x, e, -1) == 1;

	X509_EXTENSION_free(e);
	return done;
}

static GENERAL_NAME *general_name(int type, const void *data, size_t n)
{
	bool is_address = type == GEN_IPADD;
	ASN1_STRING *s = is_address ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
	GENERAL_NAME *name = GENERAL_NAME_new();

	if (s && name && ASN1_STRING_set(s, data, (int)n) == 1) {
		GENERAL_NAME_set0_value(name, type, s);
		return name;
	}
	ASN1_STRING_free(s);
	GENERAL_NAME_free(name);
	return NULL;
}

static bool add_subtree(STACK_OF(GENERAL_SUBTREE) * *to, int type, const void *data, size_t n)
{
	GENERAL_SUBTREE *tree = GENERAL_SUBTREE_new();

	if (!*to)
		*to = sk_GENERAL_SUBTREE_new_null();
	if (tree) {
		GENERAL_NAME_free(tree->base);
		tree->base = general_name(type, data, n);
	}
	if (*to && tree && tree->base && sk_GENERAL_SUBTREE_push(*to, tree) > 0)
		return true;
	GENERAL_SUBTREE_free(tree);
	return false;
}

static bool has_any(const struct certificate *ask)
{
	for (size_t i = 0; i < ask->n_hosts; i++)
		if (strcmp(ask->hosts[i], "*") == 0)
			return true;
	return false;
}

/* Names: only those below the hosts. Addresses: none, or a leaf for one would be unlimited. */
static int add_constraints(X509 *x, const struct certificate *ask, struct err *err)
{
	static const uint8_t no_ip4[8], no_ip6[32];
	AUTO(own_constraints) NAME_CONSTRAINTS *limits = NAME_CONSTRAINTS_new();
	bool any = has_any(ask);
	bool done = limits &&
		    add_subtree(&limits->excludedSubtrees, GEN_IPADD, no_ip4, sizeof(no_ip4)) &&
		    add_subtree(&limits->excludedSubtrees, GEN_IPADD, no_ip6, sizeof(no_ip6));

	for (size_t i = 0; done && !any && i < ask->n_hosts; i++) {
		const char *host = ask->hosts[i];
		char normal[DOMAIN_SIZE];

		host += strncmp(host, "*.", 2) == 0 ? 2 : 0;
		if (!domain_normal(bytes_str(host), normal))
			return err_set(err, ERR_INVALID, 0, "branch: %.64s is not a host", host);
		done = add_subtree(&limits->permittedSubtrees, GEN_DNS, normal, strlen(normal));
	}
	if (!done || X509_add1_ext_i2d(x, NID_name_constraints, limits, 1, 0) != 1)
		return openssl_fail(err, ERR_INTERNAL, "limit a branch");
	return 0;
}

static bool add_hosts(X509 *x, const struct certificate *ask)
{
	GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
	bool done = names && ask->n_hosts > 0;

	for (size_t i = 0; done && i < ask->n_hosts; i++) {
		GENERAL_NAME *name = general_name(GEN_DNS, ask->hosts[i], strlen(ask->hosts[i]));

		done = name && sk_GENERAL_NAME_push(names, name) > 0;
		if (!done)
			GENERAL_NAME_free(name);
	}
	done = done && X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, 0) == 1;
	GENERAL_NAMES_free(names);
	return done;
}

static int add_uses(X509 *x, const struct certificate *ask, struct err *err)
{
	const char *const basic[] = { "critical,CA:TRUE,pathlen:1", "critical,CA:TRUE,pathlen:0",
				      "critical,CA:FALSE" };
	bool leaf = ask->kind == CERTIFICATE_LEAF, done;
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, ask->issuer ? ask->issuer : x, x, NULL, NULL, 0);
	done = add_text(x, &ctx, NID_basic_constraints, basic[ask->kind]) &&
	       add_text(x, &ctx, NID_key_usage,
			leaf ? "critical,digitalSignature" : "critical,keyCertSign,cRLSign") &&
	       add_text(x, &ctx, NID_subject_key_identifier, "hash") &&
	       add_text(x, &ctx, NID_authority_key_identifier, "keyid:always");
	if (done && ask->kind != CERTIFICATE_ROOT)
		done = add_text(x, &ctx, NID_ext_key_usage, "serverAuth");
	if (done && leaf)
		done = add_hosts(x, ask);
	if (!done)
		return openssl_fail(err, ERR_INTERNAL, "say what a certificate is for");
	return ask->kind == CERTIFICATE_BRANCH ? add_constraints(x, ask, err) : 0;
}

int certificate_new(const struct certificate *ask, X509 **ret, EVP_PKEY **ret_key, struct err *err)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	X509 *x = X509_new();

	*ret_key = key;
	*ret = x;
	if (!key || !x || X509_set_version(x, X509_VERSION_3) != 1 || !set_serial(x) ||
	    !set_names(x, ask) || !set_times(x, ask) || X509_set_pubkey(x, key) != 1)
		return openssl_fail(err, ERR_INTERNAL, "make a certificate");
	if (add_uses(x, ask, err) < 0)
		return -1;
	if (X509_sign(x, ask->issuer ? ask->issuer_key : key, EVP_sha256()) <= 0)
		return openssl_fail(err, ERR_INTERNAL, "sign a certificate");
	return 0;
}
