/* test_wire_oci.c - indexes, manifests and configurations, good ones and hostile ones. */
#include "tests/unit/check.h"

#include "wire/oci.h"

#define HEX  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BLOB "{\"digest\":\"sha256:" HEX "\",\"size\":7}"

static struct err err;

static void test_kinds(void **state)
{
	enum oci_kind kind;

	(void)state;
	assert_int_equal(oci_kind(BYTES_LIT("{\"manifests\":[]}"), &kind, &err), 0);
	assert_int_equal(kind, OCI_INDEX);
	assert_int_equal(oci_kind(BYTES_LIT("{\"layers\":[]}"), &kind, &err), 0);
	assert_int_equal(kind, OCI_MANIFEST);
	assert_int_equal(oci_kind(BYTES_LIT("{\"fsLayers\":[]}"), &kind, &err), -1);
	assert_non_null(strstr(err.msg, "first format"));
	assert_int_equal(oci_kind(BYTES_LIT("{}"), &kind, &err), -1);
	assert_int_equal(oci_kind(BYTES_LIT("[]"), &kind, &err), -1);
}

static int choose(const char *manifests, struct oci_blob *ret)
{
	char text[1024];

	snprintf(text, sizeof(text), "{\"manifests\":[%s]}", manifests);
	return oci_choose(bytes_str(text), ret, &err);
}

#define OF(os, arch)                                                           \
	"{\"digest\":\"sha256:" HEX "\",\"size\":7,\"platform\":{\"os\":\"" os \
	"\",\"architecture\":\"" arch "\"}}"

static void test_platforms(void **state)
{
	struct oci_blob b;

	(void)state;
	assert_int_equal(choose(OF("linux", "arm64") "," OF("linux", "amd64"), &b), 0);
	assert_string_equal(b.digest, "sha256:" HEX);
	assert_int_equal(b.size, 7);
	assert_int_equal(choose(BLOB, &b), 0);
	assert_int_equal(choose(BLOB "," BLOB, &b), -1);
	assert_int_equal(choose("", &b), -1);
	err.code = ERR_NONE;
	assert_int_equal(choose("7", &b), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(
		choose(OF("linux", "arm64") "," OF("win\\n", "amd64") "," OF("unknown", "unknown"),
		       &b),
		-1);
	assert_int_equal(err.code, ERR_MISMATCH);
	assert_string_equal(err.msg, "no image for linux/amd64; there is: linux/arm64, win?/amd64");
}

static void test_manifest(void **state)
{
	static struct oci_manifest m;

	(void)state;
	assert_int_equal(
		oci_manifest(BYTES_LIT("{\"config\":" BLOB ",\"layers\":[" BLOB "," BLOB "]}"), &m,
			     &err),
		0);
	assert_int_equal(m.n_layers, 2);
	assert_int_equal(oci_total(&m), 14);
	assert_int_equal(oci_manifest(BYTES_LIT("{\"config\":" BLOB ",\"layers\":[]}"), &m, &err),
			 -1);
	assert_int_equal(oci_manifest(BYTES_LIT("{\"layers\":[" BLOB "]}"), &m, &err), -1);
	assert_int_equal(
		oci_manifest(BYTES_LIT("{\"config\":" BLOB ",\"layers\":[{\"digest\":\"../../x\","
				       "\"size\":1}]}"),
			     &m, &err),
		-1);
	assert_int_equal(
		oci_manifest(BYTES_LIT("{\"config\":" BLOB ",\"layers\":[{\"digest\":\"sha256:" HEX
				       "\",\"size\":-1}]}"),
			     &m, &err),
		-1);
	assert_int_equal(
		oci_manifest(BYTES_LIT("{\"config\":" BLOB ",\"layers\":[{\"digest\":\"sha256:" HEX
				       "\",\"size\":99999999999999}]}"),
			     &m, &err),
		-1);
}

static void test_too_many_layers(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(64 * 1024);
	static struct oci_manifest m;

	(void)state;
	for (size_t n = OCI_LAYERS_MAX; n <= OCI_LAYERS_MAX + 1; n++) {
		buf_clear(&text);
		assert_int_equal(buf_printf(&text, &err, "{\"config\":" BLOB ",\"layers\":[" BLOB),
				 0);
		for (size_t i = 1; i < n; i++)
			assert_int_equal(buf_add(&text, BYTES_LIT("," BLOB), &err), 0);
		assert_int_equal(buf_add(&text, BYTES_LIT("]}"), &err), 0);
		assert_int_equal(oci_manifest(buf_view(&text), &m, &err),
				 n == OCI_LAYERS_MAX ? 0 : -1);
	}
	assert_int_equal(err.code, ERR_EXHAUSTED);
}

static void config_is(const char *text, const char *want)
{
	AUTO(buf_done) struct buf out = BUF_MAX(4096);
	int rc = oci_config(bytes_str(text), &out, &err);

	assert_int_equal(rc, want ? 0 : -1);
	if (want)
		assert_true(bytes_eq(buf_view(&out), bytes_str(want)));
}

static void test_config(void **state)
{
	(void)state;
	config_is("{\"os\":\"linux\",\"architecture\":\"amd64\",\"config\":{\"Env\":[\"A=1\"],"
		  "\"User\":\"u\",\"WorkingDir\":\"/w\",\"Cmd\":[\"c\"],\"Entrypoint\":null}}",
		  "{\"workingDir\":\"/w\",\"user\":\"u\",\"env\":[\"A=1\"],\"entrypoint\":[],"
		  "\"cmd\":[\"c\"]}");
	config_is("{}", "{\"workingDir\":\"\",\"user\":\"\",\"env\":[],\"entrypoint\":[],"
			"\"cmd\":[]}");
	config_is("{\"config\":{\"Env\":[7]}}", NULL);
	config_is("{\"os\":\"windows\"}", NULL);
	config_is("[", NULL);
}

static void test_archive(void **state)
{
	static struct oci_archive a;
	struct oci_blob ids[2];

	(void)state;
	assert_int_equal(
		oci_archive(BYTES_LIT("[{\"Config\":\"c\",\"Layers\":[\"a\",\"b\"]}]"), &a, &err),
		0);
	assert_int_equal(a.n_layers, 2);
	assert_string_equal(a.layers[1], "b");
	assert_int_equal(oci_archive(BYTES_LIT("[]"), &a, &err), -1);
	assert_int_equal(oci_archive(BYTES_LIT("[{\"Config\":\"c\"}]"), &a, &err), -1);
	assert_int_equal(oci_archive(BYTES_LIT("[{\"Layers\":[\"a\"]}]"), &a, &err), -1);
	assert_int_equal(oci_archive(BYTES_LIT("[{\"Config\":\"c\",\"Layers\":[1]}]"), &a, &err),
			 -1);
	assert_int_equal(oci_diff_ids(BYTES_LIT("{\"rootfs\":{\"diff_ids\":[\"sha256:" HEX "\"]}}"),
				      1, ids, &err),
			 0);
	assert_int_equal(oci_diff_ids(BYTES_LIT("{\"rootfs\":{\"diff_ids\":[]}}"), 1, ids, &err),
			 -1);
	assert_int_equal(
		oci_diff_ids(BYTES_LIT("{\"rootfs\":{\"diff_ids\":[\"x\"]}}"), 1, ids, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),    cmocka_unit_test(test_platforms),
		cmocka_unit_test(test_manifest), cmocka_unit_test(test_too_many_layers),
		cmocka_unit_test(test_config),   cmocka_unit_test(test_archive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
