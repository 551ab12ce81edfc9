/* fuzz_files_query.c - promises of the query of /files: bounded, without NUL, and what was signed
 * is checked by the same signature and no other.
 */
#include "fuzz/must.h"
#include "wire/files_query.h"

static void must_fit(const struct buf *b, bool has, size_t max)
{
	MUST(b->len <= max && (has || b->len == 0));
	MUST(b->len == 0 || !memchr(b->ptr, 0, b->len));
}

static void check_signature(const struct files_query *q)
{
	const struct bytes token = BYTES_LIT("token");
	char text[SIGNATURE_TEXT_MAX];
	struct signed_url u, other;
	struct err err = { 0 };

	if (files_query_signed(q, "read", &u, &err) < 0) {
		must_say_why(&err);
		MUST(q->has_expiration);
		return;
	}
	MUST(u.expiration >= 0 && bytes_eq(u.path, buf_view(&q->path)));
	signature_make(&u, token, text);
	MUST(signature_is_shaped(bytes_str(text)));
	MUST(signature_check(&u, token, bytes_str(text), 0, &err) == 0);
	other = u;
	other.operation = BYTES_LIT("write");
	MUST(signature_check(&other, token, bytes_str(text), 0, &err) < 0);
	MUST(signature_check(&u, BYTES_LIT("other"), bytes_str(text), 0, &err) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(files_query_done) struct files_query q = { 0 };
	struct err err = { 0 };

	if (files_query_parse((struct bytes){ data, size }, &q, &err) < 0) {
		must_say_why(&err);
		return 0;
	}
	must_fit(&q.path, q.has_path, FILES_PATH_MAX);
	must_fit(&q.user, q.has_user, FILES_USER_MAX);
	must_fit(&q.signature, q.has_signature, FILES_SIGNATURE_MAX);
	must_fit(&q.expiration, q.has_expiration, FILES_NUMBER_MAX);
	check_signature(&q);
	return 0;
}
