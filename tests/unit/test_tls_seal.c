/* test_tls_seal.c - what is sealed opens for one key, under one label, unchanged; else not at all.
 */
#include "tests/unit/check.h"

#include "base/random.h"
#include "tls/seal.h"

static struct seal_key *new_key(char ret_public[SEAL_KEY_TEXT + 1])
{
	struct seal_key *k = NULL;
	struct err err = { 0 };

	if (seal_key_new(&k, &err) < 0 || seal_key_public(k, ret_public, &err) < 0)
		fail_msg("%s", err.msg);
	return k;
}

static struct buf sealed(const char *public_text, const char *label, struct bytes value)
{
	struct buf text = BUF_MAX(SEAL_TEXT_MAX);
	struct err err = { 0 };

	if (seal(bytes_str(public_text), bytes_str(label), value, &text, &err) < 0)
		fail_msg("%s", err.msg);
	return text;
}

static void what_is_sealed_opens_again(void **state)
{
	const size_t lengths[] = { 0, 1, 15, 16, 17, 1000, SEAL_VALUE_MAX };
	char public_text[SEAL_KEY_TEXT + 1];
	struct seal_key *k = new_key(public_text);
	uint8_t *value = malloc(SEAL_VALUE_MAX);

	(void)state;
	assert_non_null(value);
	random_fill(value, SEAL_VALUE_MAX);
	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct bytes plain = { value, lengths[i] };
		AUTO(buf_done) struct buf text = sealed(public_text, "team/name", plain);
		AUTO(buf_done) struct buf again = BUF_SECRET(SEAL_VALUE_MAX + 1);
		struct err err = { 0 };

		assert_true(text.len <= SEAL_TEXT_MAX);
		assert_int_equal(unseal(k, BYTES_LIT("team/name"), buf_view(&text), &again, &err),
				 0);
		assert_true(bytes_eq(buf_view(&again), plain));
	}
	free(value);
	seal_key_free(k);
}

static void two_seals_of_one_value_differ(void **state)
{
	char public_text[SEAL_KEY_TEXT + 1];
	struct seal_key *k = new_key(public_text);
	AUTO(buf_done) struct buf a = sealed(public_text, "l", BYTES_LIT("value"));
	AUTO(buf_done) struct buf b = sealed(public_text, "l", BYTES_LIT("value"));

	(void)state;
	assert_int_equal(a.len, b.len);
	assert_false(bytes_eq(buf_view(&a), buf_view(&b)));
	seal_key_free(k);
}

static void a_key_survives_as_text(void **state)
{
	char public_text[SEAL_KEY_TEXT + 1], private_text[SEAL_KEY_TEXT + 1];
	char again_text[SEAL_KEY_TEXT + 1];
	struct seal_key *k = new_key(public_text), *again = NULL;
	AUTO(buf_done) struct buf text = sealed(public_text, "l", BYTES_LIT("value"));
	AUTO(buf_done) struct buf plain = BUF_SECRET(64);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(seal_key_text(k, private_text, &err), 0);
	seal_key_free(k);
	assert_int_equal(seal_key_load(bytes_str(private_text), &again, &err), 0);
	assert_int_equal(seal_key_public(again, again_text, &err), 0);
	assert_string_equal(public_text, again_text);
	assert_string_not_equal(public_text, private_text);
	assert_int_equal(unseal(again, BYTES_LIT("l"), buf_view(&text), &plain, &err), 0);
	assert_true(bytes_eq(buf_view(&plain), BYTES_LIT("value")));
	seal_key_free(again);
}

static void must_not_open(const struct seal_key *k, const char *label, struct bytes text,
			  enum err_code code)
{
	AUTO(buf_done) struct buf plain = BUF_MAX(SEAL_VALUE_MAX + 1);
	struct err err = { 0 };

	assert_int_equal(unseal(k, bytes_str(label), text, &plain, &err), -1);
	assert_int_equal(err.code, code);
	assert_int_equal(plain.len, 0);
}

static void it_opens_for_nobody_else(void **state)
{
	char mine[SEAL_KEY_TEXT + 1], theirs[SEAL_KEY_TEXT + 1];
	struct seal_key *k = new_key(mine), *other = new_key(theirs);
	AUTO(buf_done) struct buf text = sealed(mine, "team/name", BYTES_LIT("value"));

	(void)state;
	must_not_open(other, "team/name", buf_view(&text), ERR_MISMATCH);
	must_not_open(k, "team/other", buf_view(&text), ERR_INVALID);
	must_not_open(k, "", buf_view(&text), ERR_INVALID);
	must_not_open(k, "team/name", bytes_head(buf_view(&text), text.len - 4), ERR_INVALID);
	must_not_open(k, "team/name", (struct bytes){ 0 }, ERR_INVALID);
	seal_key_free(k);
	seal_key_free(other);
}

/* Every byte of it counts: changed anywhere, it does not open. */
static void what_was_changed_does_not_open(void **state)
{
	char public_text[SEAL_KEY_TEXT + 1];
	struct seal_key *k = new_key(public_text);
	AUTO(buf_done) struct buf text = sealed(public_text, "l", BYTES_LIT("some value"));

	(void)state;
	for (size_t i = 0; i < text.len; i++) {
		AUTO(buf_done) struct buf plain = BUF_MAX(SEAL_VALUE_MAX + 1);
		uint8_t was = text.ptr[i];
		struct err err = { 0 };

		text.ptr[i] = was == 'A' ? 'B' : 'A';
		assert_int_equal(unseal(k, BYTES_LIT("l"), buf_view(&text), &plain, &err), -1);
		text.ptr[i] = was;
	}
	seal_key_free(k);
}

static void what_is_no_key_is_refused(void **state)
{
	static const struct {
		const char *name, *text;
	} rows[] = {
		{ "empty", "" },
		{ "short", "AAAA" },
		{ "not base64", "!AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" },
		{ "33 bytes", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" },
		/* it looks like one, but everybody would know the shared secret */
		{ "small order", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf text = BUF_MAX(SEAL_TEXT_MAX);
		struct err err = { 0 };

		assert_int_equal(
			seal(bytes_str(row->text), BYTES_LIT("l"), BYTES_LIT("v"), &text, &err),
			-1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_int_equal(text.len, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sealed_opens_again),
		cmocka_unit_test(two_seals_of_one_value_differ),
		cmocka_unit_test(a_key_survives_as_text),
		cmocka_unit_test(it_opens_for_nobody_else),
		cmocka_unit_test(what_was_changed_does_not_open),
		cmocka_unit_test(what_is_no_key_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
