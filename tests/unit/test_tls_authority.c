/* test_tls_authority.c - certificates are what authority.h says, in OpenSSL's own judgement. */
#include "tests/unit/check.h"

#include <openssl/pem.h>

#include "tls/authority.h"
#include "tls/openssl_inside.h"
#include "tls/seal.h"

static struct authority *new_root(void)
{
	struct authority *a = NULL;
	struct err err = { 0 };

	if (authority_new("Hotcell test", &a, &err) < 0)
		fail_msg("%s", err.msg);
	return a;
}

static struct authority *new_branch(const struct authority *root, const char *const *hosts,
				    size_t n)
{
	struct authority *a = NULL;
	struct err err = { 0 };

	if (authority_branch(root, "Hotcell branch", hosts, n, &a, &err) < 0)
		fail_msg("%s", err.msg);
	return a;
}

static struct identity *new_leaf(const struct authority *a, const char *name)
{
	struct identity *i = NULL;
	struct err err = { 0 };

	if (identity_new(a, name, &i, &err) < 0)
		fail_msg("%s", err.msg);
	return i;
}

static X509 *cert_of(const struct authority *a)
{
	AUTO(buf_done) struct buf text = BUF_MAX(AUTHORITY_TEXT_MAX);
	AUTO(own_bio) BIO *in = NULL;
	struct err err = { 0 };

	assert_int_equal(authority_cert_text(a, &text, &err), 0);
	in = BIO_new_mem_buf(text.ptr, (int)text.len);
	return PEM_read_bio_X509(in, NULL, NULL, NULL);
}

/* Would a client that trusts `root` alone believe this server to be `host`? */
static int verdict(const struct authority *root, const struct identity *i, const char *host)
{
	X509_STORE *trusted = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509 *anchor = cert_of(root);
	int result;

	assert_int_equal(X509_STORE_add_cert(trusted, anchor), 1);
	assert_int_equal(X509_STORE_CTX_init(ctx, trusted, i->leaf, i->above), 1);
	assert_int_equal(X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(ctx), host, 0), 1);
	X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
	result = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(trusted);
	X509_free(anchor);
	return result;
}

static void a_branch_speaks_for_its_hosts_and_no_others(void **state)
{
	static const char *const hosts[] = { "api.example.com", "*.example.org" };
	static const struct {
		const char *name;
		int verdict;
	} rows[] = {
		{ "api.example.com", X509_V_OK },
		{ "a.example.org", X509_V_OK },
		{ "a.b.example.org", X509_V_OK },
		{ "www.example.com", X509_V_ERR_PERMITTED_VIOLATION },
		{ "example.com", X509_V_ERR_PERMITTED_VIOLATION },
		{ "badexample.org", X509_V_ERR_PERMITTED_VIOLATION },
		{ "example.org.evil.net", X509_V_ERR_PERMITTED_VIOLATION },
	};
	struct authority *root = new_root(), *branch = new_branch(root, hosts, COUNT(hosts));

	(void)state;
	FOR_ROWS(row, rows) {
		struct identity *i = new_leaf(branch, row->name);

		assert_int_equal(verdict(root, i, row->name), row->verdict);
		identity_free(i);
	}
	authority_free(branch);
	authority_free(root);
}

static void a_leaf_is_for_its_name(void **state)
{
	static const char *const any[] = { "*" };
	struct authority *root = new_root(), *branch = new_branch(root, any, 1);
	struct authority *other = new_root();
	struct identity *i = new_leaf(branch, "www.example.com");
	struct err err = { 0 };

	(void)state;
	assert_int_equal(verdict(root, i, "www.example.com"), X509_V_OK);
	assert_int_equal(verdict(root, i, "example.com"), X509_V_ERR_HOSTNAME_MISMATCH);
	assert_int_not_equal(verdict(other, i, "www.example.com"), X509_V_OK);
	assert_int_equal(sk_X509_num(i->above), 1);
	identity_free(i);
	assert_int_equal(identity_new(branch, "10.0.0.1", &i, &err), -1);
	assert_int_equal(identity_new(branch, "not,DNS:a.host", &i, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	authority_free(branch);
	authority_free(root);
	authority_free(other);
}

static void long_names_have_leaves_too(void **state)
{
	static const char name[] = "a23456789012345678901234567890123456789012345678901234567890."
				   "b23456789012345678901234567890.example.com";
	static const char *const hosts[] = { "*.example.com" };
	struct authority *root = new_root(), *branch = new_branch(root, hosts, 1);
	struct identity *i = new_leaf(branch, name);

	(void)state;
	assert_int_equal(verdict(root, i, name), X509_V_OK);
	identity_free(i);
	authority_free(branch);
	authority_free(root);
}

static struct authority *again(const struct authority *a)
{
	AUTO(buf_done) struct buf cert = BUF_MAX(AUTHORITY_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_SECRET(AUTHORITY_TEXT_MAX);
	struct authority *ret = NULL;
	struct err err = { 0 };

	assert_int_equal(authority_cert_text(a, &cert, &err), 0);
	assert_int_equal(authority_key_text(a, &key, &err), 0);
	if (authority_load(buf_view(&cert), buf_view(&key), &ret, &err) < 0)
		fail_msg("%s", err.msg);
	return ret;
}

static int days_left(const struct authority *a)
{
	X509 *cert = cert_of(a);
	int days = 0, seconds = 0;

	assert_int_equal(ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)), 1);
	X509_free(cert);
	return days;
}

static void both_survive_as_texts(void **state)
{
	static const char *const hosts[] = { "api.example.com" };
	struct authority *root = new_root(), *root2 = again(root);
	struct authority *branch = new_branch(root2, hosts, 1), *branch2 = again(branch);
	struct identity *i = new_leaf(branch2, "api.example.com");

	(void)state;
	assert_int_equal(verdict(root, i, "api.example.com"), X509_V_OK);
	assert_in_range(days_left(root2), 3649, 3650);
	assert_in_range(days_left(branch2), 31, 32);
	identity_free(i);
	authority_free(branch);
	authority_free(branch2);
	authority_free(root);
	authority_free(root2);
}

static void must_not_load(struct bytes cert, struct bytes key)
{
	struct authority *a = NULL;
	struct err err = { 0 };

	assert_int_equal(authority_load(cert, key, &a, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_true(err.msg[0] != '\0');
	assert_null(a);
}

static void texts_that_do_not_fit_are_refused(void **state)
{
	static const char *const hosts[] = { "api.example.com" };
	static const char locked[] = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
				     "-----END ENCRYPTED PRIVATE KEY-----\n";
	struct authority *root = new_root(), *other = new_root();
	struct authority *branch = new_branch(root, hosts, 1);
	AUTO(buf_done) struct buf cert = BUF_MAX(AUTHORITY_TEXT_MAX);
	AUTO(buf_done) struct buf wrong = BUF_MAX(AUTHORITY_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_MAX(AUTHORITY_TEXT_MAX);
	struct bytes end = BYTES_LIT("-----END CERTIFICATE-----\n");
	struct bytes alone;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(authority_cert_text(branch, &cert, &err), 0);
	assert_int_equal(authority_key_text(branch, &key, &err), 0);
	assert_int_equal(authority_key_text(other, &wrong, &err), 0);
	must_not_load(buf_view(&cert), buf_view(&wrong));
	must_not_load(buf_view(&cert), (struct bytes){ 0 });
	must_not_load((struct bytes){ 0 }, buf_view(&key));
	must_not_load(buf_view(&key), buf_view(&cert));
	must_not_load(buf_view(&cert), bytes_head(buf_view(&key), key.len / 2));
	must_not_load(buf_view(&cert), BYTES_LIT(locked));
	/* a branch without the root above it, and one under another root */
	alone = buf_view(&cert);
	for (size_t i = 0; i + end.len <= cert.len; i++)
		if (memcmp(cert.ptr + i, end.ptr, end.len) == 0) {
			alone = bytes_head(alone, i + end.len);
			break;
		}
	assert_true(alone.len < cert.len);
	must_not_load(alone, buf_view(&key));
	cert.len = alone.len;
	assert_int_equal(authority_cert_text(other, &cert, &err), 0);
	must_not_load(buf_view(&cert), buf_view(&key));
	authority_free(branch);
	authority_free(root);
	authority_free(other);
}

static void hosts_of_a_branch_are_checked(void **state)
{
	static const char *const bad[] = { "10.1.2.3", "a,b.example", "", "*.*.x", "a..b" };
	struct authority *root = new_root(), *branch = NULL;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(authority_branch(root, "l", &bad[i], 1, &branch, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	assert_int_equal(authority_branch(root, "l", bad, 0, &branch, &err), -1);
	authority_free(root);
}

static void a_branch_for_any_name_is_short_lived_and_for_no_address(void **state)
{
	struct authority *root = new_root(), *branch = NULL;
	struct identity *leaf;
	struct err err = { 0 };
	X509 *cert;

	(void)state;
	assert_int_equal(authority_branch_any(root, "Hotcell pages", &branch, &err), 0);
	leaf = new_leaf(branch, "shop.example.com");
	assert_int_equal(verdict(root, leaf, "shop.example.com"), X509_V_OK);
	assert_int_not_equal(verdict(root, leaf, "example.com"), X509_V_OK);
	cert = cert_of(branch);
	assert_int_equal(X509_cmp_time(X509_get0_notAfter(cert),
				       &(time_t){ time(NULL) + AUTHORITY_ANY_DAYS * 86400 + 60 }),
			 -1);
	X509_free(cert);
	identity_free(leaf);
	authority_free(branch);
	authority_free(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_branch_speaks_for_its_hosts_and_no_others),
		cmocka_unit_test(a_leaf_is_for_its_name),
		cmocka_unit_test(long_names_have_leaves_too),
		cmocka_unit_test(both_survive_as_texts),
		cmocka_unit_test(texts_that_do_not_fit_are_refused),
		cmocka_unit_test(hosts_of_a_branch_are_checked),
		cmocka_unit_test(a_branch_for_any_name_is_short_lived_and_for_no_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
