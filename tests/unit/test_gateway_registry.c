/* test_gateway_registry.c - credentials of a private registry leave the gateway sealed, for the
 * images daemon and one team.
 */
#include "tests/unit/gateway_mock.h"

#include "images/protocol.h"
#include "tls/seal.h"

#define TARGET "/v2/templates/web/builds/00000000-0000-4000-8000-000000000000"
#define CREDENTIALS(password)                                    \
	"{\"fromImage\":\"r.example/a\",\"fromImageRegistry\":{" \
	"\"type\":\"registry\",\"username\":\"u\",\"password\":\"" password "\"}}"

struct opener { /* what a daemon would hold */
	struct seal_key *key;
	char public_text[SEAL_KEY_TEXT + 1];
};

static void opener_init(struct opener *o)
{
	struct err err = { 0 };

	if (seal_key_new(&o->key, &err) < 0 || seal_key_public(o->key, o->public_text, &err) < 0)
		fail_msg("%s", err.msg);
}

/* What comes of what node was given, with this key, under the label of that team. */
static enum err_code open_told(const struct mock *m, const struct opener *o, const char *team,
			       struct buf *ret)
{
	AUTO(json_decrefp) json_t *text = NULL;
	char label[IMAGES_TEAM_MAX + sizeof(IMAGES_SEAL_LABEL)];
	struct err err = { 0 };
	struct bytes sealed = { 0 };

	snprintf(label, sizeof(label), "%s" IMAGES_SEAL_LABEL, team);
	assert_int_equal(m->last.verb, NODE_BUILD_START);
	if (json_decode(bytes_str(m->last_text), NODE_TEXT_MAX, JSON_DEPTH_MAX, &text, &err) < 0 ||
	    json_want_string(text, "sealed", &sealed, &err) < 0)
		fail_msg("%s", err.msg);
	return unseal(o->key, bytes_str(label), sealed, ret, &err) < 0 ? err.code : ERR_NONE;
}

static void only_the_images_daemon_can_open_it(void **state)
{
	AUTO(buf_done) struct buf plain = BUF_SECRET(1024);
	struct mock *m = *state;
	struct opener images, injector;

	opener_init(&images);
	opener_init(&injector);
	m->images_key = images.public_text;
	m->seal_key = injector.public_text;
	assert_int_equal(mock_ask(m, "POST", TARGET, m->key[0], CREDENTIALS("right \\\"horse")),
			 202);
	assert_int_equal(m->body_len, 0);
	assert_string_equal(m->last.team, m->team[0]);
	assert_null(strstr(m->last_text, "horse"));
	assert_null(strstr(m->last_text, "registry"));
	assert_int_equal(open_told(m, &images, m->team[1], &plain), ERR_INVALID);
	assert_int_equal(open_told(m, &injector, m->team[0], &plain), ERR_MISMATCH);
	assert_int_equal(open_told(m, &images, m->team[0], &plain), ERR_NONE);
	assert_true(bytes_eq(buf_view(&plain),
			     BYTES_LIT("{\"username\":\"u\",\"password\":\"right \\\"horse\"}")));
	seal_key_free(images.key);
	seal_key_free(injector.key);
}

static void without_credentials_no_key_is_asked_for(void **state)
{
	struct mock *m = *state;
	size_t before = m->asked;

	assert_int_equal(mock_ask(m, "POST", TARGET, m->key[0], "{\"fromImage\":\"a\"}"), 202);
	assert_int_equal(m->asked, before + 1);
	assert_null(strstr(m->last_text, "sealed"));
}

/* Without somebody to seal for, node is told nothing. */
static void nobody_to_open_it(void **state)
{
	struct mock *m = *state;
	struct opener injector;

	opener_init(&injector);
	m->seal_key = injector.public_text;
	mock_ask(m, "POST", TARGET, m->key[0], CREDENTIALS("p"));
	mock_expect_error(m, 404);
	assert_string_equal(mock_text(m, "message"), "nobody opens it");
	assert_int_equal(m->last.verb, NODE_SEAL_KEY);
	m->images_key = "no key";
	mock_ask(m, "POST", TARGET, m->key[0], CREDENTIALS("p"));
	mock_expect_error(m, 500);
	assert_int_equal(m->last.verb, NODE_SEAL_KEY);
	seal_key_free(injector.key);
}

/* A password of the largest size, each byte of which is escaped. */
static void a_long_one_fits(void **state)
{
	AUTO(buf_done) struct buf body = BUF_MAX(64 * 1024), plain = BUF_SECRET(64 * 1024);
	struct mock *m = *state;
	struct opener images;
	struct err err = { 0 };

	opener_init(&images);
	m->images_key = images.public_text;
	assert_int_equal(
		buf_add(&body,
			BYTES_LIT("{\"fromImage\":\"a\",\"fromImageRegistry\":{\"type\":"
				  "\"registry\",\"username\":\"_json_key\",\"password\":\""),
			&err),
		0);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(buf_add(&body, BYTES_LIT("\\u0001"), &err), 0);
	assert_int_equal(buf_add(&body, BYTES_LIT("\"}}\0"), &err), 0);
	assert_int_equal(mock_ask(m, "POST", TARGET, m->key[0], (const char *)body.ptr), 202);
	assert_int_equal(open_told(m, &images, m->team[0], &plain), ERR_NONE);
	assert_true(plain.len > 6UL * 4096);
	seal_key_free(images.key);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, mock_set_up, mock_tear_down)
	static const struct CMUnitTest tests[] = {
		TEST(only_the_images_daemon_can_open_it),
		TEST(without_credentials_no_key_is_asked_for),
		TEST(nobody_to_open_it),
		TEST(a_long_one_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
