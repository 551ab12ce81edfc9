/* fuzz_base64.c - promises of base64: each direction is the inverse of the other. */
#include "fuzz/must.h"
#include "wire/base64.h"

static void must_invert_encode(struct bytes plain)
{
	AUTO(buf_done) struct buf text = BUF_MAX(plain.len * 2 + 4), again = BUF_MAX(plain.len);
	struct err err = { 0 };

	MUST(base64_encode(plain, &text, &err) == 0);
	MUST(text.len % 4 == 0 && text.len / 4 == (plain.len + 2) / 3);
	MUST(base64_decode(buf_view(&text), &again, &err) == 0);
	MUST(bytes_eq(buf_view(&again), plain));
}

/* The one spelling of `text` that the encoder would have chosen. */
static void normalise(struct bytes text, struct buf *out)
{
	struct err err = { 0 };

	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.ptr[i];

		c = c == '-' ? '+' : c == '_' ? '/' : c;
		MUST(buf_add(out, (struct bytes){ &c, 1 }, &err) == 0);
	}
	while (out->len % 4 != 0)
		MUST(buf_add(out, BYTES_LIT("="), &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	AUTO(buf_done) struct buf plain = BUF_MAX(size), text = BUF_MAX(size + 8);
	AUTO(buf_done) struct buf normal = BUF_MAX(size + 8), small = { 0 };
	struct err err = { 0 };

	must_invert_encode(in);
	if (base64_decode(in, &plain, &err) < 0) {
		must_say_why(&err);
		MUST(plain.len == 0);
		return 0;
	}
	MUST(base64_encode(buf_view(&plain), &text, &err) == 0);
	normalise(in, &normal);
	MUST(bytes_eq(buf_view(&text), buf_view(&normal)));
	small.max = plain.len > 0 ? plain.len - 1 : 0;
	MUST(plain.len == 0 || base64_decode(in, &small, &err) < 0);
	return 0;
}
