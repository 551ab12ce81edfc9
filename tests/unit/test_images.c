/* test_images.c - the images daemon's pure parts: settings for skopeo, its words, requests. */
#include "tests/unit/check.h"

#include "images/fetch_error.h"
#include "images/nft.h"
#include "images/registries.h"
#include "images/request.h"
#include "images/unpack.h"

static struct err err;
static struct config_value set[SETTINGS];

static void configure(const char *text)
{
	assert_int_equal(config_parse(settings_table, SETTINGS, bytes_str(text), "test", set, &err),
			 0);
}

static void conf_is(const char *settings, const char *want)
{
	AUTO(buf_done) struct buf out = BUF_MAX(REGISTRIES_TEXT_MAX);

	configure(settings);
	if (!want) {
		assert_int_equal(registries_conf(set, &out, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		return;
	}
	assert_int_equal(registries_conf(set, &out, &err), 0);
	assert_int_equal(buf_add(&out, BYTES_LIT("\0"), &err), 0);
	assert_string_equal(strchr(strchr((char *)out.ptr, '\n') + 1, '\n') + 1, want);
}

static void test_registries_conf(void **state)
{
	(void)state;
	conf_is("", "");
	conf_is("map = a.b=c.d:5000/hub\ninsecure = c.d:5000\n",
		"[[registry]]\nprefix = \"a.b\"\nlocation = \"c.d:5000/hub\"\ninsecure = true\n"
		"[[registry]]\nprefix = \"c.d:5000\"\nlocation = \"c.d:5000\"\ninsecure = true\n");
	conf_is("mirrors = a.b=m.one a.b=m.two/x\n",
		"[[registry]]\nprefix = \"a.b\"\nlocation = \"a.b\"\n"
		"[[registry.mirror]]\nlocation = \"m.one\"\n"
		"[[registry.mirror]]\nlocation = \"m.two/x\"\n");
	conf_is("map = a.b\n", NULL);
	conf_is("map = a.b=c.d a.b=e.f\n", NULL);
	conf_is("map = a.b=\"c.d\n", NULL);
	conf_is("mirrors = a.b=c.d/\n", NULL);
	conf_is("insecure = a.b/c\n", NULL);
	conf_is("default_registry = a.b/c\n", NULL);
	conf_is("default_registry = word\n", NULL);
}

static void host_is(const char *host, const char *path, const char *want)
{
	char got[IMAGE_HOST_MAX + 1];
	struct image_ref r = { 0 };

	snprintf(r.host, sizeof(r.host), "%s", host);
	snprintf(r.path, sizeof(r.path), "%s", path);
	registries_host(set, &r, got);
	assert_string_equal(got, want);
}

static void test_whose_credentials(void **state)
{
	(void)state;
	configure("map = a.b=c.d:5000/hub a.b/team=e.f\n");
	host_is("a.b", "x", "c.d:5000");
	host_is("a.b", "team/x", "e.f");
	host_is("a.b", "teams/x", "c.d:5000");
	host_is("z.z", "x", "z.z");
}

static void test_auth(void **state)
{
	static const char *const bad[] = { "", "{}", "{\"username\":\"u\"}",
					   "{\"username\":\"a:b\",\"password\":\"p\"}",
					   "{\"username\":\"\",\"password\":\"p\"}" };
	AUTO(buf_done) struct buf out = BUF_SECRET(4096);

	(void)state;
	assert_int_equal(registries_auth("a.b:1",
					 BYTES_LIT("{\"username\":\"u\",\"password\":\"p\"}"), &out,
					 &err),
			 0);
	assert_true(bytes_eq(buf_view(&out),
			     BYTES_LIT("{\"auths\":{\"a.b:1\":{\"auth\":\"dTpw\"}}}\n")));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(registries_auth("a.b", bytes_str(bad[i]), &out, &err), -1);
}

static void test_errors(void **state)
{
	static const struct {
		const char *said;
		enum err_code code;
		const char *has;
	} cases[] = {
		{ "reading manifest 1 in a/b: manifest unknown: x", ERR_NOT_FOUND, "a.b/x:1" },
		{ "unauthorized: authentication required", ERR_DENIED, "registry a.b" },
		{ "denied: requested access to the resource is denied", ERR_DENIED, "a.b" },
		{ "dial tcp 10.0.0.1:443: connect: connection refused", ERR_UNAVAILABLE,
		  "networks" },
		{ "lookup a.b on 10.0.0.53:53: no such host", ERR_UNAVAILABLE, "no address" },
		{ "http: server gave HTTP response to HTTPS client", ERR_UNAVAILABLE, "insecure" },
		{ "x509: certificate signed by unknown authority", ERR_UNAVAILABLE, "extra_ca" },
		{ "toomanyrequests: You have reached", ERR_UNAVAILABLE, "later" },
		{ "write /x: file too large", ERR_INVALID, "larger" },
		{ "no space left on device", ERR_NO_SPACE, "room" },
		{ "", ERR_UNAVAILABLE, "log" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(fetch_error(bytes_str(cases[i].said), "a.b/x:1", "a.b", &err), -1);
		assert_int_equal(err.code, cases[i].code);
		assert_non_null(strstr(err.msg, cases[i].has));
		assert_null(strstr(err.msg, "10.0.0"));
	}
}

static void test_unpack_words(void **state)
{
	struct unpack_said said;

	(void)state;
	assert_int_equal(unpack_line(BYTES_LIT("{\"progress\":{\"layer\":1,\"layers\":2,"
					       "\"entries\":3,\"bytes\":4194304}}"),
				     &said, &err),
			 0);
	assert_string_equal(said.text, "Layer 1 of 2: 3 entries, 4 MiB so far");
	assert_int_equal(
		unpack_line(BYTES_LIT("{\"ok\":{\"added\":[\"/etc/passwd\",\"b\"]}}"), &said, &err),
		0);
	assert_string_equal(said.text, "Added what the image lacks: /etc/passwd, b");
	assert_int_equal(unpack_line(BYTES_LIT("{\"error\":{\"code\":\"no_space\",\"message\":"
					       "\"full\\u001b\"}}"),
				     &said, &err),
			 0);
	assert_int_equal(said.code, ERR_NO_SPACE);
	assert_string_equal(said.text, "full?");
	assert_int_equal(
		unpack_line(BYTES_LIT("{\"error\":{\"code\":\"not_found\"}}"), &said, &err), 0);
	assert_int_equal(said.code, ERR_INVALID); /* the image is there, and of no use */
	assert_int_equal(unpack_line(BYTES_LIT("{\"error\":{}}"), &said, &err), 0);
	assert_true(said.code == ERR_INVALID && said.text[0]);
	assert_int_equal(unpack_line(BYTES_LIT("{\"ok\":1}"), &said, &err), -1);
	assert_int_equal(unpack_line(BYTES_LIT("x"), &said, &err), -1);
}

static void test_nft(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NFT_RULES_MAX);

	(void)state;
	configure("networks = 10.1.2.0/24 fd00::1\nproxy = 192.168.1.1:3128\n");
	assert_int_equal(nft_rules(7, set, BYTES_LIT("# x\nnameserver 127.0.0.53\nnameserver x\n"),
				   &out, &err),
			 0);
	assert_int_equal(buf_add(&out, BYTES_LIT("\0"), &err), 0);
	assert_non_null(strstr((char *)out.ptr, "ip daddr 10.1.2.0/24 meta l4proto tcp accept"));
	assert_non_null(strstr((char *)out.ptr, "ip6 daddr fd00::1/128 meta l4proto tcp accept"));
	assert_non_null(strstr((char *)out.ptr, "ip daddr 192.168.1.1/32 tcp dport 3128 accept"));
	assert_non_null(strstr((char *)out.ptr, "ip daddr 127.0.0.53/32 meta l4proto"));
	assert_non_null(strstr((char *)out.ptr, "meta skuid 7 goto locked"));
	configure("networks = 10.1.2.3/24\n");
	assert_int_equal(nft_rules(7, set, (struct bytes){ 0 }, &out, &err), -1);
}

static void test_requests(void **state)
{
	struct images_request rq = { .tag = 1 };

	(void)state;
	assert_int_equal(images_request_check(&rq, 1, &err), 0);
	assert_int_equal(images_request_check(&rq, 0, &err), -1);
	rq.flags = IMAGES_DISK;
	assert_int_equal(images_request_check(&rq, 2, &err), -1);
	rq.disk_mib = 64;
	assert_int_equal(images_request_check(&rq, 2, &err), 0);
	rq.flags |= IMAGES_ARCHIVE;
	assert_int_equal(images_request_check(&rq, 3, &err), 0);
	rq.flags |= 4;
	assert_int_equal(images_request_check(&rq, 3, &err), -1);
	rq = (struct images_request){ .tag = 1, .verb = IMAGES_CANCEL };
	assert_int_equal(images_request_check(&rq, 0, &err), -1);
	rq.of = 7;
	assert_int_equal(images_request_check(&rq, 0, &err), 0);
	rq.tag = 0;
	assert_int_equal(images_request_check(&rq, 0, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registries_conf),
		cmocka_unit_test(test_whose_credentials),
		cmocka_unit_test(test_auth),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_unpack_words),
		cmocka_unit_test(test_nft),
		cmocka_unit_test(test_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
