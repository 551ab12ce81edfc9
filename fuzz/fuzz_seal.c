/* fuzz_seal.c - promises of seal.h: only what was sealed opens, and texts are read or refused. */
#include "fuzz/must.h"
#include "tls/authority.h"
#include "tls/seal.h"

/* Of these tests alone, so that the corpus holds texts that open. */
#define PRIVATE_KEY "d3MyVHZLTk9tWjBYcDRrUWxBc0R1YjhFZ0h5SjZSaUM="

static struct seal_key *the_key(char ret_public[SEAL_KEY_TEXT + 1])
{
	struct seal_key *k = NULL;
	struct err err;

	MUST(seal_key_load(BYTES_LIT(PRIVATE_KEY), &k, &err) == 0);
	MUST(seal_key_public(k, ret_public, &err) == 0);
	return k;
}

static void must_open_or_say_why(const struct seal_key *k, struct bytes text)
{
	AUTO(buf_done) struct buf plain = BUF_SECRET(SEAL_VALUE_MAX + 1);
	struct err err = { 0 };

	if (unseal(k, BYTES_LIT("team/name"), text, &plain, &err) < 0) {
		must_say_why(&err);
		MUST(plain.len == 0);
		return;
	}
	MUST(text.len >= SEAL_OVERHEAD && plain.len <= SEAL_VALUE_MAX);
	plain.len = 0;
	MUST(unseal(k, BYTES_LIT("team/other"), text, &plain, &err) < 0);
}

static void must_open_again(const struct seal_key *k, const char *public_text, struct bytes value)
{
	AUTO(buf_done) struct buf text = BUF_MAX(SEAL_TEXT_MAX);
	AUTO(buf_done) struct buf plain = BUF_SECRET(SEAL_VALUE_MAX + 1);
	struct err err = { 0 };

	if (seal(bytes_str(public_text), BYTES_LIT("l"), value, &text, &err) < 0) {
		must_say_why(&err);
		MUST(value.len > SEAL_VALUE_MAX && text.len == 0);
		return;
	}
	MUST(unseal(k, BYTES_LIT("l"), buf_view(&text), &plain, &err) == 0);
	MUST(bytes_eq(buf_view(&plain), value));
	if (text.len > 0) {
		text.ptr[text.len / 2] ^= 1;
		MUST(unseal(k, BYTES_LIT("l"), buf_view(&text), &plain, &err) < 0);
	}
}

/* The input as certificates and a key, one after the other in one text. */
static void must_load_or_say_why(struct bytes text)
{
	struct authority *a = NULL;
	struct err err = { 0 };

	if (authority_load(text, text, &a, &err) < 0) {
		must_say_why(&err);
		MUST(!a);
		return;
	}
	authority_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char public_text[SEAL_KEY_TEXT + 1];
	struct seal_key *k = the_key(public_text), *other = NULL;
	struct bytes in = { data, size };
	struct err err = { 0 };

	must_open_or_say_why(k, in);
	must_open_again(k, public_text, in);
	must_load_or_say_why(in);
	if (seal_key_load(in, &other, &err) < 0)
		must_say_why(&err);
	seal_key_free(other);
	seal_key_free(k);
	return 0;
}
