/* signature.c - see signature.h. */
#include "wire/signature.h"

#include <inttypes.h>

#include "wire/base64.h"

enum { DIGITS_MAX = 24 };

#define PREFIX "v1_"

void signature_begin(const struct signed_url *u, struct sha256 *ret)
{
	const struct bytes parts[] = { u->path, u->operation, u->user };

	sha256_init(ret);
	for (size_t i = 0; i < COUNT(parts); i++) {
		sha256_add(ret, parts[i]);
		sha256_add(ret, BYTES_LIT(":"));
	}
}

static void add_expiration(struct sha256 *s, const struct signed_url *u)
{
	char text[DIGITS_MAX];

	if (!u->has_expiration)
		return;
	snprintf(text, sizeof(text), ":%" PRId64, u->expiration);
	sha256_add(s, bytes_str(text));
}

void signature_end(const struct sha256 *begun, const struct signed_url *u, struct bytes token,
		   char ret[static SIGNATURE_TEXT_MAX])
{
	AUTO(buf_done) struct buf text = BUF_MAX(SIGNATURE_TEXT_MAX);
	uint8_t digest[SHA256_SIZE];
	struct sha256 s = *begun;
	struct err err;

	sha256_add(&s, token);
	add_expiration(&s, u);
	sha256_end(&s, digest);
	if (base64_encode((struct bytes){ digest, sizeof(digest) }, &text, &err) < 0)
		abort(); /* a few bytes */
	while (text.len > 0 && text.ptr[text.len - 1] == '=')
		text.len--;
	snprintf(ret, SIGNATURE_TEXT_MAX, PREFIX "%.*s", (int)text.len, (const char *)text.ptr);
}

void signature_make(const struct signed_url *u, struct bytes token,
		    char ret[static SIGNATURE_TEXT_MAX])
{
	struct sha256 begun;

	signature_begin(u, &begun);
	signature_end(&begun, u, token, ret);
}

bool signature_is_shaped(struct bytes given)
{
	return given.len == SIGNATURE_LEN && bytes_starts(given, BYTES_LIT(PREFIX));
}

int signature_check(const struct signed_url *u, struct bytes token, struct bytes given, int64_t now,
		    struct err *err)
{
	char want[SIGNATURE_TEXT_MAX];

	signature_make(u, token, want);
	if (!bytes_eq_secret(given, bytes_str(want)))
		return err_set(err, ERR_DENIED, 0, SIGNATURE_INVALID);
	if (u->has_expiration && u->expiration < now)
		return err_set(err, ERR_DENIED, 0, "signature is already expired");
	return 0;
}
