/* fuzz_peek.c - promises of peek: what was decided of some bytes is not decided otherwise when more
 * arrive, nor when it was asked before; and a name is one. */
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

static bool same(const struct peek *a, const struct peek *b)
{
	return strcmp(a->name, b->name) == 0 && a->port == b->port && a->hides == b->hides;
}

/* Asked as the bytes come, in pieces of one or two: as if asked once. */
static void must_not_matter_how_it_comes(struct bytes in)
{
	struct peek_place kept = { 0 }, fresh;
	struct peek by_piece, at_once;
	size_t step = in.len % 2 + 1;

	for (size_t n = 0; n <= in.len && n <= PEEK_MAX; n += step) {
		enum peek_kind kind = peek_read(bytes_head(in, n), &kept, &by_piece);
		bool last = kind != PEEK_MORE || n + step > in.len;

		if (!last && n % 64 >= step) /* asked anew, it is asked now and then */
			continue;
		fresh = (struct peek_place){ 0 };
		MUST(peek_read(bytes_head(in, n), &fresh, &at_once) == kind);
		MUST(same(&by_piece, &at_once));
		if (kind != PEEK_MORE)
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct peek_place place = { 0 };
	struct peek whole, part;
	enum peek_kind kind = peek_read(in, &place, &whole), was;

	must_be_said(in, kind, &whole);
	for (size_t n = 0; n < size; n += size / 16 + 1) {
		place = (struct peek_place){ 0 };
		was = peek_read(bytes_head(in, n), &place, &part);
		must_be_said(bytes_head(in, n), was, &part);
		if (was == PEEK_MORE)
			continue;
		MUST(was == kind && same(&part, &whole));
	}
	must_not_matter_how_it_comes(in);
	return 0;
}
