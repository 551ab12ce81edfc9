/* test_gateway_pass.c - passes in what requests say: found, and taken out of it. */
#include "tests/unit/check.h"

#include "gateway/parse/devtools_urls.h"
#include "gateway/parse/pass_fields.h"

static void check(struct buf *out, const char *want)
{
	assert_int_equal(out->len, strlen(want));
	assert_memory_equal(out->ptr, want, out->len);
	buf_done(out);
}

static void parameters(void **state)
{
	static const struct {
		const char *path, *query, *found, *want;
	} rows[] = {
		{ "/", "", NULL, "/" },
		{ "/a", "x=1", NULL, "/a?x=1" },
		{ "/a", "e2b-traffic-access-token=T", "T", "/a" },
		{ "/a", "x=1&e2b-traffic-access-token=T&y", "T", "/a?x=1&y" },
		{ "/a", "e2b-traffic-access-token=T&x=1&e2b-traffic-access-token=U", "T",
		  "/a?x=1" },
		{ "/a", "e2b%2Dtraffic-access-token=T", "T", "/a" },
		{ "/a", "e2b-traffic-access-token", "", "/a" },
		{ "/a", "E2B-Traffic-Access-Token=T", NULL, "/a?E2B-Traffic-Access-Token=T" },
		/* a browser would go to another host */
		{ "//evil.test/", "e2b-traffic-access-token=T", "T", "/evil.test/" },
		{ "/\\evil.test/", "e2b-traffic-access-token=T", "T", "/evil.test/" },
		{ "///", "", NULL, "/" },
	};
	struct bytes found;
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct buf out = BUF_MAX(256);
		bool is = pass_in_query(bytes_str(rows[i].query), &found);

		assert_int_equal(is, rows[i].found != NULL);
		assert_true(!is || bytes_eq(found, bytes_str(rows[i].found)));
		assert_int_equal(pass_drop_param(bytes_str(rows[i].path), bytes_str(rows[i].query),
						 &out, &err),
				 0);
		check(&out, rows[i].want);
	}
}

static void cookies(void **state)
{
	static const struct {
		const char *in, *found, *left;
	} rows[] = {
		{ "", NULL, "" },
		{ "a=1; b=2", NULL, "a=1; b=2" },
		{ "hotcell-pass=P", "P", "" },
		{ "a=1; hotcell-pass=P; b=2", "P", "a=1; b=2" },
		{ "a=1;hotcell-pass=P;b=2", "P", "a=1; b=2" },
		{ "hotcell-pass=P; hotcell-pass=Q", "P", "" },
		{ "xhotcell-pass=P", NULL, "xhotcell-pass=P" },
		{ "hotcell-pass", NULL, "hotcell-pass" },
		{ "a=hotcell-pass=P", NULL, "a=hotcell-pass=P" },
		{ "__Host-hotcell-pass=P; c", NULL, "c" },
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct bytes rest = bytes_str(rows[i].in), found;
		struct buf out = BUF_MAX(256);
		bool is = pass_next_cookie(&rest, PASS_COOKIE_PLAIN, &found);

		assert_int_equal(is, rows[i].found != NULL);
		assert_true(!is || bytes_eq(found, bytes_str(rows[i].found)));
		assert_int_equal(pass_drop_cookies(bytes_str(rows[i].in), &out, &err), 0);
		check(&out, rows[i].left);
	}
}

static void origins(void **state)
{
	const struct bytes host = BYTES_LIT("9222-i1.sbx.test:8443");

	(void)state;
	assert_true(pass_same_origin(BYTES_LIT("https://9222-i1.sbx.test:8443"), true, host));
	assert_true(pass_same_origin(BYTES_LIT("http://9222-i1.SBX.test:8443"), false, host));
	assert_false(pass_same_origin(BYTES_LIT("http://9222-i1.sbx.test:8443"), true, host));
	assert_false(pass_same_origin(BYTES_LIT("https://9222-i1.sbx.test"), true, host));
	assert_false(pass_same_origin(BYTES_LIT("https://9222-i2.sbx.test:8443"), true, host));
	assert_false(pass_same_origin(BYTES_LIT("null"), true, host));
	assert_false(pass_same_origin(BYTES_LIT("https://"), true, (struct bytes){ 0 }));
}

static void names(void **state)
{
	static const struct {
		const char *host, *domain;
		bool own;
	} rows[] = {
		{ "9222-i1.sbx.test", "sbx.test", true },
		{ "9222-i1.SBX.test.:80", "sbx.test", true },
		{ "9222-i1.sbx.test:8443", "sbx.test:8443", true },
		{ "9222-i1.sbx.test", "sbx.test:8443", true },
		{ "9222-i1.evil.test", "sbx.test", false },
		{ "9222-i1.xsbx.test", "sbx.test", false },
		{ "9222-i1.sbx.test.evil", "sbx.test", false },
		{ "sbx.test", "sbx.test", false },
		{ ".sbx.test", "sbx.test", false },
		{ "9222-i1.anything", "", true },
		{ "", "", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(pass_own_name(bytes_str(rows[i].host), rows[i].domain),
				 rows[i].own);
}

/* Nothing is lost, and what is behind the limit is not looked at. */
static void addresses_behind_what_is_read(void **state)
{
	const struct bytes address = BYTES_LIT("ws://q.localhost:9/x ");
	struct devtools_urls u = { .mark = "q.localhost:9", .host = "h" };
	AUTO(buf_done) struct buf piece = BUF_MAX(1 << 16), out = BUF_MAX(1 << 17);
	size_t passed = 0;
	struct err err;

	(void)state;
	while (piece.len + address.len <= 1 << 16)
		assert_int_equal(buf_add(&piece, address, &err), 0);
	assert_int_equal(buf_add(&piece, BYTES_LIT("w"), &err), 0);
	for (; passed <= DEVTOOLS_TEXT_MAX; passed += piece.len) {
		buf_clear(&out);
		assert_int_equal(devtools_urls_pass(&u, buf_view(&piece), &out, &err), 0);
		assert_null(memmem(out.ptr, out.len, "q.local", 7));
	}
	assert_int_equal(u.n_held, 1);
	buf_clear(&out);
	assert_int_equal(devtools_urls_pass(&u, buf_view(&piece), &out, &err), 0);
	assert_int_equal(out.len, 1 + piece.len);
	assert_memory_equal(out.ptr + 1, piece.ptr, piece.len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters),
		cmocka_unit_test(cookies),
		cmocka_unit_test(origins),
		cmocka_unit_test(names),
		cmocka_unit_test(addresses_behind_what_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
