/* signature.c - see signature.h. */
#include "agent/signature.h"

#include <inttypes.h>

#include "agent/access.h"
#include "wire/base64.h"
#include "wire/sha256.h"

enum { DIGITS_MAX = 24 };

static void add_expiration(struct sha256 *s, const struct signed_url *u)
{
	char text[DIGITS_MAX];

	if (!u->has_expiration)
		return;
	snprintf(text, sizeof(text), ":%" PRId64, u->expiration);
	sha256_add(s, bytes_str(text));
}

void signature_make(const struct signed_url *u, struct bytes token,
		    char ret[static SIGNATURE_TEXT_MAX])
{
	const struct bytes parts[] = { u->path, u->operation, u->user, token };
	AUTO(buf_done) struct buf text = BUF_MAX(SIGNATURE_TEXT_MAX);
	uint8_t digest[SHA256_SIZE];
	struct sha256 s;
	struct err err;

	sha256_init(&s);
	for (size_t i = 0; i < COUNT(parts); i++) {
		if (i > 0)
			sha256_add(&s, BYTES_LIT(":"));
		sha256_add(&s, parts[i]);
	}
	add_expiration(&s, u);
	sha256_end(&s, digest);
	if (base64_encode((struct bytes){ digest, sizeof(digest) }, &text, &err) < 0)
		abort(); /* a few bytes */
	while (text.len > 0 && text.ptr[text.len - 1] == '=')
		text.len--;
	snprintf(ret, SIGNATURE_TEXT_MAX, "v1_%.*s", (int)text.len, (const char *)text.ptr);
}

int signature_check(const struct signed_url *u, struct bytes token, struct bytes given, int64_t now,
		    struct err *err)
{
	char want[SIGNATURE_TEXT_MAX];

	signature_make(u, token, want);
	if (!access_same(given, bytes_str(want)))
		return err_set(err, ERR_DENIED, 0, "invalid signature");
	if (u->has_expiration && u->expiration < now)
		return err_set(err, ERR_DENIED, 0, "signature is already expired");
	return 0;
}
