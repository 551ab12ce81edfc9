/* fuzz_tls_hello.c - promises of tls_hello: a verdict that was given stays when more arrives, and a
 * name is one that rules can have; whether it can be given is known without reading twice. */
#include "fuzz/must.h"
#include "wire/tls_hello.h"

static void must_have_been_open(struct bytes in, size_t end)
{
	struct tls_hello before;

	for (size_t n = 0; n < end; n += 1 + n / 8)
		MUST(tls_hello_read(bytes_head(in, n), &before) == TLS_HELLO_MORE);
}

/* What is found out piece by piece is what is read. */
static void must_be_settled_then(struct bytes in)
{
	struct tls_hello_place place = { 0 };
	struct tls_hello h;
	size_t step = in.len / 64 + 1;

	for (size_t n = 1; n <= in.len; n += step) {
		bool more = tls_hello_read(bytes_head(in, n), &h) == TLS_HELLO_MORE;

		MUST(tls_hello_settled(bytes_head(in, n), &place) == !more);
		if (more)
			continue;
		if (tls_hello_read(bytes_head(in, n), &h) == TLS_HELLO_WHOLE)
			MUST(tls_hello_arrived(&place));
		return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct tls_hello h, same;
	char normal[DOMAIN_SIZE];

	must_be_settled_then(in);
	switch (tls_hello_read(in, &h)) {
	case TLS_HELLO_MORE:
		MUST(size < TLS_HELLO_MAX);
		must_have_been_open(in, size);
		return 0;
	case TLS_HELLO_WHOLE:
		MUST(data[0] == 22 && memchr(h.name, 0, sizeof(h.name)));
		MUST(h.name[0] == '\0' ||
		     (domain_normal(bytes_str(h.name), normal) && strcmp(h.name, normal) == 0));
		for (size_t n = 0; n < size; n++) { /* once whole, whole with the same name */
			enum tls_hello_verdict v = tls_hello_read(bytes_head(in, n), &same);

			MUST(v == TLS_HELLO_MORE ||
			     (v == TLS_HELLO_WHOLE && strcmp(h.name, same.name) == 0));
		}
		return 0;
	case TLS_HELLO_OTHER:
		MUST(data[0] != 22);
		return 0;
	case TLS_HELLO_BROKEN:
		MUST(data[0] == 22);
		return 0;
	}
	abort(); /* a verdict of its own */
}
