/* test_tls_pair.c - the authority of one domain, its certificates, and pairs that do not fit. */
#include "tests/unit/check.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/clock.h"
#include "tls/authority.h"
#include "tls/chain.h"
#include "tls/openssl_inside.h"
#include "tls/pair.h"

enum { DAYS = 90, DAY_S = 24 * 3600 };

struct scene {
	struct authority *authority;
	struct buf ca, chain, key;
};

static void set_up(struct scene *s, const char *domain, const char *leaf)
{
	struct err err = { 0 };

	*s = (struct scene){ .ca = BUF_MAX(PAIR_TEXT_MAX),
			     .chain = BUF_MAX(2 * PAIR_TEXT_MAX),
			     .key = BUF_SECRET(PAIR_TEXT_MAX) };
	if (authority_new_for(domain, &s->authority, &err) < 0 ||
	    authority_cert_text(s->authority, &s->ca, &err) < 0 ||
	    authority_issue(s->authority, leaf, DAYS, &s->chain, &s->key, &err) < 0)
		fail_msg("%s", err.msg);
}

static void tear_down(struct scene *s)
{
	authority_free(s->authority);
	buf_done(&s->ca);
	buf_done(&s->chain);
	buf_done(&s->key);
}

static X509 *first(const struct buf *text)
{
	AUTO(own_bio) BIO *in = BIO_new_mem_buf(text->ptr, (int)text->len);
	X509 *x = PEM_read_bio_X509(in, NULL, NULL, NULL);

	assert_non_null(x);
	return x;
}

/* Would a client that trusts the authority alone believe this server to be `host`? */
static int verdict(const struct scene *s, const char *host)
{
	X509_STORE *trusted = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	AUTO(own_x509) X509 *ca = first(&s->ca);
	AUTO(own_x509) X509 *leaf = first(&s->chain);
	int result;

	assert_int_equal(X509_STORE_add_cert(trusted, ca), 1);
	assert_int_equal(X509_STORE_CTX_init(ctx, trusted, leaf, NULL), 1);
	assert_int_equal(X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(ctx), host, 0), 1);
	X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
	result = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(trusted);
	return result;
}

static void domains_have_one_form_and_two_labels(void **state)
{
	static const struct {
		const char *name;
		const char *normal; /* NULL: refused */
		const char *why;    /* a word of the reason */
	} rows[] = {
		{ "hotcell.localhost", "hotcell.localhost", NULL },
		{ "Hotcell.LOCALHOST.", "hotcell.localhost", NULL },
		{ "a.b.c.example", "a.b.c.example", NULL },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example", NULL },
		{ "localhost", NULL, "*.localhost" },
		{ "com.", NULL, "*.com" },
		{ "b\303\274cher.example", NULL, "xn--" },
		{ "a_b.example", NULL, "no name" },
		{ "10.1.2.3", NULL, "no address" },
		{ "::1", NULL, "no address" },
		{ "*.example.com", NULL, "no name" },
		{ "", NULL, "no name" },
		{ "a b.example", NULL, "no name" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char normal[DOMAIN_SIZE] = "?";
		struct err err = { 0 };

		assert_int_equal(authority_domain_normal(row->name, normal, &err),
				 row->normal ? 0 : -1);
		if (row->normal)
			assert_string_equal(normal, row->normal);
		else
			assert_non_null(strstr(err.msg, row->why));
	}
}

static void a_label_for_a_sandbox_must_fit_before_the_domain(void **state)
{
	char name[AUTHORITY_DOMAIN_MAX + 2], normal[DOMAIN_SIZE];
	struct err err = { 0 };

	(void)state;
	memset(name, 'a', sizeof(name));
	for (size_t i = 60; i < sizeof(name) - 2; i += 61)
		name[i] = '.';
	name[AUTHORITY_DOMAIN_MAX + 1] = '\0';
	assert_int_equal(authority_domain_normal(name, normal, &err), -1);
	name[AUTHORITY_DOMAIN_MAX] = '\0';
	assert_int_equal(authority_domain_normal(name, normal, &err), 0);
}

static void an_authority_is_believed_for_its_domain_alone(void **state)
{
	static const struct {
		const char *name, *leaf, *host;
		int verdict;
	} rows[] = {
		{ "the domain", "box.test", "box.test", X509_V_OK },
		{ "the API", "box.test", "api.box.test", X509_V_OK },
		{ "a sandbox", "box.test", "49983-i8x2.box.test", X509_V_OK },
		{ "two labels below", "box.test", "a.b.box.test", X509_V_ERR_HOSTNAME_MISMATCH },
		{ "a domain below", "eu.box.test", "api.eu.box.test", X509_V_OK },
		{ "another domain", "bank.example", "bank.example",
		  X509_V_ERR_PERMITTED_VIOLATION },
		{ "one that ends alike", "evilbox.test", "evilbox.test",
		  X509_V_ERR_PERMITTED_VIOLATION },
		{ "one that begins alike", "box.test.evil", "api.box.test.evil",
		  X509_V_ERR_PERMITTED_VIOLATION },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct scene s;

		set_up(&s, "box.test", row->leaf);
		assert_int_equal(verdict(&s, row->host), row->verdict);
		tear_down(&s);
	}
}

static void an_authority_knows_its_domain(void **state)
{
	struct authority *plain = NULL;
	char domain[DOMAIN_SIZE];
	struct scene s;
	struct err err = { 0 };

	(void)state;
	set_up(&s, "Box.Test", "box.test");
	assert_true(authority_domain(s.authority, domain));
	assert_string_equal(domain, "box.test");
	tear_down(&s);
	assert_int_equal(authority_new("Hotcell test", &plain, &err), 0);
	assert_false(authority_domain(plain, domain)); /* the injector's is for every name */
	authority_free(plain);
}

static void facts_are_those_of_the_leaf(void **state)
{
	int64_t now = (int64_t)(clock_wall_ns() / NSEC_PER_SEC);
	struct pair_facts facts;
	struct scene s, other;
	struct err err = { 0 };

	(void)state;
	set_up(&s, "box.test", "box.test");
	set_up(&other, "box.test", "box.test");
	assert_int_equal(pair_read(buf_view(&s.chain), &facts, &err), 0);
	assert_int_equal(facts.n_names, 2);
	assert_string_equal(facts.names[0], "box.test");
	assert_string_equal(facts.names[1], "*.box.test");
	assert_string_equal(facts.issuer, "Hotcell for box.test");
	assert_true(facts.begins_s < now && facts.begins_s > now - DAY_S);
	assert_in_range(facts.ends_s, now + (DAYS - 1) * DAY_S, now + DAYS * DAY_S);
	assert_true(pair_signed_by(buf_view(&s.chain), buf_view(&s.ca)));
	assert_false(pair_signed_by(buf_view(&s.chain), buf_view(&other.ca))); /* of one name */
	assert_false(pair_signed_by(buf_view(&s.chain), (struct bytes){ 0 }));
	assert_int_equal(pair_read(BYTES_LIT("nothing"), &facts, &err), -1);
	tear_down(&s);
	tear_down(&other);
}

static int check(struct bytes chain, struct bytes key, struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(2 * PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf out_key = BUF_SECRET(2 * PAIR_TEXT_MAX);

	return pair_check(chain, key, &out, &out_key, err);
}

static void must_refuse(struct bytes chain, struct bytes key, const char *why)
{
	struct err err = { 0 };

	assert_int_equal(check(chain, key, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	if (!strstr(err.msg, why))
		fail_msg("`%s` does not say `%s`", err.msg, why);
}

static void a_pair_that_does_not_fit_is_refused_with_the_reason(void **state)
{
	AUTO(buf_done) struct buf mixed = BUF_MAX(2 * PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf ca_key = BUF_SECRET(PAIR_TEXT_MAX);
	struct scene s, other;
	struct err err = { 0 };

	(void)state;
	set_up(&s, "box.test", "box.test");
	set_up(&other, "box.test", "box.test");
	assert_int_equal(authority_key_text(s.authority, &ca_key, &err), 0);
	assert_int_equal(check(buf_view(&s.chain), buf_view(&s.key), &err), 0);
	must_refuse(buf_view(&s.chain), buf_view(&other.key), "not that of the certificate");
	must_refuse(buf_view(&s.chain), (struct bytes){ 0 }, "read the key");
	must_refuse((struct bytes){ 0 }, buf_view(&s.key), "read a certificate");
	must_refuse(buf_view(&s.key), buf_view(&s.chain), "read a certificate");
	must_refuse(buf_view(&s.ca), buf_view(&ca_key), "names no host");
	/* the authority first, the server second */
	assert_int_equal(buf_add(&mixed, buf_view(&s.ca), &err), 0);
	assert_int_equal(buf_add(&mixed, buf_view(&s.chain), &err), 0);
	must_refuse(buf_view(&mixed), buf_view(&s.key), "server's goes first");
	/* the server first, and above it somebody who did not sign it */
	buf_clear(&mixed);
	assert_int_equal(buf_add(&mixed, buf_view(&s.chain), &err), 0);
	assert_int_equal(buf_add(&mixed, buf_view(&other.ca), &err), 0);
	must_refuse(buf_view(&mixed), buf_view(&s.key), "certificate 1 is not signed by");
	tear_down(&s);
	tear_down(&other);
}

static void what_stands_between_is_left_out(void **state)
{
	AUTO(buf_done) struct buf chain = BUF_MAX(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf out = BUF_MAX(2 * PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_SECRET(2 * PAIR_TEXT_MAX);
	struct scene s;
	struct err err = { 0 };

	(void)state;
	set_up(&s, "box.test", "box.test");
	assert_int_equal(buf_add(&chain, BYTES_LIT("Bag Attributes\n  friendlyName: x\n"), &err),
			 0);
	assert_int_equal(buf_add(&chain, buf_view(&s.chain), &err), 0);
	assert_int_equal(buf_add(&chain, BYTES_LIT("and more\n"), &err), 0);
	assert_int_equal(buf_add(&chain, buf_view(&s.ca), &err), 0);
	assert_int_equal(pair_check(buf_view(&chain), buf_view(&s.key), &out, &key, &err), 0);
	assert_int_equal(out.len, s.chain.len + s.ca.len);
	assert_true(bytes_eq(buf_view(&key), buf_view(&s.key)));
	tear_down(&s);
}

/* A certificate made here, for what authority.h does not make. */
static void sign_named(EVP_PKEY *key, const char *text, long from_s, long to_s, struct buf *ret)
{
	AUTO(own_x509) X509 *x = X509_new();
	AUTO(own_bio) BIO *out = BIO_new(BIO_s_mem());
	X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, text);
	struct err err = { 0 };

	assert_non_null(names);
	assert_int_equal(X509_set_version(x, X509_VERSION_3), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), from_s);
	X509_gmtime_adj(X509_getm_notAfter(x), to_s);
	assert_int_equal(X509_set_pubkey(x, key), 1);
	assert_int_equal(X509_add_ext(x, names, -1), 1);
	X509_EXTENSION_free(names);
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	assert_int_equal(PEM_write_bio_X509(out, x), 1);
	buf_clear(ret);
	assert_int_equal(openssl_append(out, ret, &err), 0);
}

static void sign_own(EVP_PKEY *key, long from_s, long to_s, struct buf *ret)
{
	sign_named(key, "DNS:box.test", from_s, to_s, ret);
}

static void key_text(EVP_PKEY *key, struct buf *ret)
{
	AUTO(own_bio) BIO *out = BIO_new(BIO_s_mem());
	struct err err = { 0 };

	assert_int_equal(PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL), 1);
	buf_clear(ret);
	assert_int_equal(openssl_append(out, ret, &err), 0);
}

static void times_and_kinds_of_keys_are_looked_at(void **state)
{
	AUTO(buf_done) struct buf chain = BUF_MAX(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_SECRET(PAIR_TEXT_MAX);
	AUTO(own_pkey) EVP_PKEY *ec = EVP_EC_gen("P-384");
	AUTO(own_pkey) EVP_PKEY *large = EVP_EC_gen("P-521");
	AUTO(own_pkey) EVP_PKEY *rsa = EVP_RSA_gen(2048);
	AUTO(own_pkey) EVP_PKEY *small = EVP_RSA_gen(1024);
	struct err err = { 0 };

	(void)state;
	key_text(ec, &key);
	sign_own(ec, -60, 600, &chain);
	assert_int_equal(check(buf_view(&chain), buf_view(&key), &err), 0);
	sign_own(ec, -600, -60, &chain);
	must_refuse(buf_view(&chain), buf_view(&key), "not valid any more");
	sign_own(ec, 600, 1200, &chain);
	must_refuse(buf_view(&chain), buf_view(&key), "not valid yet");
	key_text(rsa, &key);
	sign_own(rsa, -60, 600, &chain);
	assert_int_equal(check(buf_view(&chain), buf_view(&key), &err), 0);
	key_text(small, &key);
	sign_own(small, -60, 600, &chain);
	must_refuse(buf_view(&chain), buf_view(&key), "RSA of 2048");
	key_text(large, &key);
	sign_own(large, -60, 600, &chain);
	must_refuse(buf_view(&chain), buf_view(&key), "of a kind");
}

/* The gateway would refuse them later, when nobody looks. */
static void what_is_not_served_is_not_installed(void **state)
{
	AUTO(buf_done) struct buf chain = BUF_MAX(PAIR_TEXT_MAX), longer = BUF_MAX(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_SECRET(PAIR_TEXT_MAX), names = BUF_MAX(65536);
	AUTO(own_pkey) EVP_PKEY *ec = EVP_EC_gen("P-256");
	struct err err = { 0 };

	(void)state;
	key_text(ec, &key);
	assert_int_equal(buf_printf(&names, &err, "DNS:n1.test"), 0);
	for (int i = 2; i <= CHAIN_NAMES_MAX; i++)
		assert_int_equal(buf_printf(&names, &err, ",DNS:n%d.test", i), 0);
	assert_int_equal(buf_add(&names, (struct bytes){ (const uint8_t *)"", 1 }, &err), 0);
	sign_named(ec, (const char *)names.ptr, -60, 600, &chain);
	assert_int_equal(check(buf_view(&chain), buf_view(&key), &err), 0);
	names.len--;
	assert_int_equal(buf_printf(&names, &err, ",DNS:one.test"), 0);
	assert_int_equal(buf_add(&names, (struct bytes){ (const uint8_t *)"", 1 }, &err), 0);
	sign_named(ec, (const char *)names.ptr, -60, 600, &chain);
	must_refuse(buf_view(&chain), buf_view(&key), "more than 128 names");
	sign_own(ec, -60, 600, &chain);
	for (int i = 0; i <= CHAIN_MAX; i++)
		assert_int_equal(buf_add(&longer, buf_view(&chain), &err), 0);
	must_refuse(buf_view(&longer), buf_view(&key), "more than 8");
}

static void a_certificate_does_not_outlive_its_authority(void **state)
{
	AUTO(buf_done) struct buf chain = BUF_MAX(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_SECRET(PAIR_TEXT_MAX);
	struct pair_facts ca, leaf;
	struct scene s;
	struct err err = { 0 };

	(void)state;
	set_up(&s, "box.test", "box.test");
	assert_int_equal(authority_issue(s.authority, "box.test", 2 * AUTHORITY_ROOT_DAYS, &chain,
					 &key, &err),
			 0);
	assert_int_equal(pair_read(buf_view(&chain), &leaf, &err), 0);
	assert_int_equal(pair_read(buf_view(&s.ca), &ca, &err), 0);
	assert_int_equal(leaf.ends_s, ca.ends_s);
	tear_down(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(domains_have_one_form_and_two_labels),
		cmocka_unit_test(a_label_for_a_sandbox_must_fit_before_the_domain),
		cmocka_unit_test(an_authority_is_believed_for_its_domain_alone),
		cmocka_unit_test(an_authority_knows_its_domain),
		cmocka_unit_test(facts_are_those_of_the_leaf),
		cmocka_unit_test(a_pair_that_does_not_fit_is_refused_with_the_reason),
		cmocka_unit_test(what_stands_between_is_left_out),
		cmocka_unit_test(times_and_kinds_of_keys_are_looked_at),
		cmocka_unit_test(what_is_not_served_is_not_installed),
		cmocka_unit_test(a_certificate_does_not_outlive_its_authority),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
