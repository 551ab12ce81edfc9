/* test_wire_image_ref.c - names of images, as Docker reads them. */
#include "tests/unit/check.h"

#include "wire/image_ref.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct image_defaults hub = { "registry.example", "library/" };

static const struct {
	const char *text, *whole; /* NULL: refused */
} names[] = {
	{ "debian", "registry.example/library/debian:latest" },
	{ "debian:12", "registry.example/library/debian:12" },
	{ "team/app:v1.2", "registry.example/team/app:v1.2" },
	{ "localhost/app", "localhost/app:latest" },
	{ "localhost:5000/app", "localhost:5000/app:latest" },
	{ "Registry.Example/App", NULL },
	{ "Registry.Example/app", "registry.example/app:latest" },
	{ "127.0.0.1:5000/a/b/c:x", "127.0.0.1:5000/a/b/c:x" },
	{ "[::1]:5000/app", "[::1]:5000/app:latest" },
	{ "a.b/app@sha256:" HEX, "a.b/app@sha256:" HEX },
	{ "a.b/app:1@sha256:" HEX, "a.b/app:1@sha256:" HEX },
	{ "a__b/c--d.e", "registry.example/a__b/c--d.e:latest" },
	{ "Host/app", NULL },
	{ "", NULL },
	{ "/app", NULL },
	{ "app/", NULL },
	{ "a//b", NULL },
	{ "App", NULL },
	{ "a.b/", NULL },
	{ "a.b:0/app", NULL },
	{ "a.b:65536/app", NULL },
	{ "a.b:/app", NULL },
	{ "a..b/app", NULL },
	{ "-a.b/app", NULL },
	{ "app:", NULL },
	{ "app:.x", NULL },
	{ "app:a b", NULL },
	{ "app@sha256:abc", NULL },
	{ "app@sha512:" HEX, NULL },
	{ "app@sha256:" HEX "0", NULL },
	{ "a_-b", NULL },
	{ "a___b", NULL },
	{ "a..b", NULL },
	{ "../etc/passwd", NULL },
	{ "a/../b", NULL },
	{ "app --authfile=x", NULL },
	{ "--help", NULL },
	{ "[::1/app", NULL },
	{ "[zz]/app", NULL },
};

static void test_names(void **state)
{
	char text[IMAGE_NAME_MAX + 1];
	struct image_ref r;
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		int rc = image_ref_parse(bytes_str(names[i].text), &hub, &r, &err);

		if ((rc == 0) != (names[i].whole != NULL))
			fail_msg("%s: %d", names[i].text, rc);
		if (rc < 0)
			continue;
		image_ref_text(&r, text);
		assert_string_equal(text, names[i].whole);
	}
}

static void test_without_a_default(void **state)
{
	static const struct image_defaults none = { "", "library/" };
	struct image_ref r;
	struct err err;

	(void)state;
	assert_int_equal(image_ref_parse(BYTES_LIT("debian"), &none, &r, &err), -1);
	assert_non_null(strstr(err.msg, "default_registry"));
	assert_int_equal(image_ref_parse(BYTES_LIT("a.b/debian"), &none, &r, &err), 0);
	/* others would read word/debian as a name at a registry of their own choice */
	assert_int_equal(image_ref_parse(BYTES_LIT("debian"),
					 &(struct image_defaults){ "word", "" }, &r, &err),
			 -1);
}

static void test_lengths(void **state)
{
	char text[IMAGE_REF_MAX + 2];
	struct image_ref r;
	struct err err;

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t n = 1; n < sizeof(text); n++) {
		int rc = image_ref_parse((struct bytes){ (uint8_t *)text, n }, &hub, &r, &err);

		assert_int_equal(rc, n + strlen("library/") <= IMAGE_PATH_MAX ? 0 : -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_without_a_default),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
