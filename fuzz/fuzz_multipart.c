/* fuzz_multipart.c - promises of the form reader; the first byte says how the input is split.
 *
 * Up to the first NUL: the content type. The rest: the body.
 */
#include "fuzz/must.h"
#include "wire/multipart.h"

enum { LIMIT = 256 * 1024 };

struct result {
	enum decode end;
	struct buf told; /* kinds, names and contents, one after the other */
	struct err err;
};

static void result_done(struct result *r)
{
	buf_done(&r->told);
}

static void tell(struct result *r, const char *mark, struct bytes text)
{
	struct err err = { 0 };

	MUST(buf_add(&r->told, bytes_str(mark), &err) == 0);
	MUST(buf_add(&r->told, text, &err) == 0);
}

/* Where a piece may borrow from: the input, the delimiter, the head. */
static void check_piece(const struct multipart *m, const struct multipart_piece *p,
			struct bytes part)
{
	struct bytes delimiter = { m->delimiter, m->delimiter_len }, head = buf_view(&m->head);

	MUST(p->kind != MULTIPART_DATA || p->data.len > 0);
	MUST(inside(p->data, part) || inside(p->data, delimiter));
	MUST(inside(p->name, head) && inside(p->filename, head));
	MUST(p->kind != MULTIPART_PART || p->name.ptr);
}

/* Parts begin, have content and end, one after the other, and nothing follows the end. */
static void take(struct result *r, const struct multipart_piece *p, bool *open, bool *over)
{
	MUST(!*over || p->kind == MULTIPART_END);
	MUST(*open == (p->kind == MULTIPART_DATA || p->kind == MULTIPART_PART_END));
	switch (p->kind) {
	case MULTIPART_PART:
		tell(r, "\n<", p->name);
		tell(r, p->has_filename ? "@" : "!", p->filename);
		tell(r, ":", (struct bytes){ 0 });
		break;
	case MULTIPART_DATA:
		tell(r, "", p->data);
		break;
	case MULTIPART_PART_END:
		tell(r, ">", (struct bytes){ 0 });
		break;
	case MULTIPART_END:
		tell(r, *over ? "" : ".", (struct bytes){ 0 });
		*over = true;
		break;
	}
	*open = p->kind == MULTIPART_PART || p->kind == MULTIPART_DATA;
}

static void parse(struct bytes type, struct bytes in, size_t piece, struct result *ret)
{
	AUTO(multipart_done) struct multipart m = { 0 };
	bool open = false, over = false;

	ret->end = multipart_init(&m, type, &ret->err) < 0 ? DECODE_BAD : DECODE_MORE;
	while (in.len > 0 && ret->end != DECODE_BAD) {
		struct bytes part = bytes_head(in, piece), left = part;
		struct multipart_piece p;

		in = bytes_tail(in, piece);
		while (left.len > 0 &&
		       (ret->end = multipart_next(&m, &left, &p, &ret->err)) == DECODE_OK) {
			check_piece(&m, &p, part);
			take(ret, &p, &open, &over);
		}
		MUST(ret->end == DECODE_BAD || left.len == 0);
		MUST(m.head.len <= MULTIPART_HEAD_MAX && m.matched < m.delimiter_len);
	}
	if (ret->end != DECODE_BAD)
		ret->end = over ? DECODE_OK : DECODE_MORE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_head((struct bytes){ data, size }, LIMIT / 4), type;
	AUTO(result_done) struct result whole = { .told = BUF_MAX(LIMIT) };
	AUTO(result_done) struct result split = { .told = BUF_MAX(LIMIT) };
	size_t piece = size > 0 ? (size_t)data[0] % 16 + 1 : 1;

	in = bytes_tail(in, 1);
	if (!bytes_cut(&in, 0, &type))
		return 0;
	parse(type, in, SIZE_MAX, &whole);
	parse(type, in, piece, &split);
	MUST(whole.end == split.end);
	MUST(bytes_eq(buf_view(&whole.told), buf_view(&split.told)));
	MUST(strcmp(whole.err.msg, split.err.msg) == 0);
	if (whole.end == DECODE_BAD)
		must_say_why(&whole.err);
	return 0;
}
