/* fuzz_peek.c - promises of peek: what was decided of some bytes is not decided otherwise when more
 * arrive, and a name is one. */
#include "egress/peek.h"

#include "fuzz/must.h"
#include "wire/http1_field.h"

static void must_be_said(struct bytes in, enum peek_kind kind, const struct peek *p)
{
	char name[DOMAIN_SIZE];

	if (p->name[0])
		MUST(domain_normal(bytes_str(p->name), name) && strcmp(name, p->name) == 0);
	MUST(kind == PEEK_TLS || kind == PEEK_HTTP || !p->name[0]);
	MUST(kind == PEEK_HTTP || p->port == 0);
	MUST(kind == PEEK_TLS || !p->hides);
	MUST(in.len < PEEK_MAX || kind != PEEK_MORE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct peek whole, part;
	enum peek_kind kind = peek_read(in, &whole), was;

	must_be_said(in, kind, &whole);
	for (size_t n = 0; n < size; n += size / 16 + 1) {
		was = peek_read(bytes_head(in, n), &part);
		must_be_said(bytes_head(in, n), was, &part);
		if (was == PEEK_MORE)
			continue;
		MUST(was == kind);
		MUST(strcmp(part.name, whole.name) == 0 && part.port == whole.port &&
		     part.hides == whole.hides);
	}
	return 0;
}
