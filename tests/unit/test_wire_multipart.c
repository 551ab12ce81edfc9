/* test_wire_multipart.c - parts come out as they went in, however the input is cut. */
#include "tests/unit/check.h"

#include "wire/multipart.h"

#define TYPE       "multipart/form-data; boundary=B"
#define PART(name) "--B\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"

enum { TEXT_MAX = 64 * 1024 };

static void add(struct buf *out, struct bytes b)
{
	struct err err = { 0 };

	assert_int_equal(buf_add(out, b, &err), 0);
}

static void tell(const struct multipart_piece *p, struct buf *out)
{
	switch (p->kind) {
	case MULTIPART_PART:
		add(out, BYTES_LIT("<"));
		add(out, p->name);
		add(out, p->has_filename ? BYTES_LIT("@") : BYTES_LIT(""));
		add(out, p->filename);
		add(out, BYTES_LIT(":"));
		break;
	case MULTIPART_DATA:
		assert_true(p->data.len > 0);
		add(out, p->data);
		break;
	case MULTIPART_PART_END:
		add(out, BYTES_LIT(">"));
		break;
	case MULTIPART_END: /* comes as often as it is asked for */
		if (out->len == 0 || out->ptr[out->len - 1] != '.')
			add(out, BYTES_LIT("."));
		break;
	}
}

/* In pieces of `piece` bytes; what is told of it goes to `out`. */
static enum decode parse(const char *type, struct bytes in, size_t piece, struct buf *out,
			 struct err *err)
{
	AUTO(multipart_done) struct multipart m = { 0 };
	enum decode d = DECODE_MORE;

	assert_int_equal(multipart_init(&m, bytes_str(type), err), 0);
	while (in.len > 0) {
		struct bytes part = bytes_head(in, piece);
		struct multipart_piece p;

		in = bytes_tail(in, piece);
		while (part.len > 0 && (d = multipart_next(&m, &part, &p, err)) == DECODE_OK)
			tell(&p, out);
		if (d == DECODE_BAD)
			return d;
	}
	return d;
}

static void expect(const char *type, struct bytes in, const char *want)
{
	for (size_t piece = 1; piece <= in.len; piece++) {
		AUTO(buf_done) struct buf out = BUF_MAX(TEXT_MAX);
		struct err err = { 0 };

		assert_int_not_equal(parse(type, in, piece, &out, &err), DECODE_BAD);
		add(&out, BYTES_LIT("\0"));
		assert_string_equal((char *)out.ptr, want);
	}
}

static void what_is_read(void **state)
{
	static const struct {
		const char *name, *type, *in, *want;
	} rows[] = {
		{ "one", TYPE, PART("a") "text\r\n--B--\r\n", "<a:text>." },
		{ "no line end at the end", TYPE, PART("a") "text\r\n--B--x", "<a:text>." },
		{ "empty", TYPE, PART("a") "\r\n--B--x", "<a:>." },
		{ "two", TYPE, PART("a") "1\r\n" PART("b") "2\r\n--B--x", "<a:1><b:2>." },
		{ "none", TYPE, "--B--x", "." },
		{ "an epilogue", TYPE, PART("a") "1\r\n--B--\r\nand more", "<a:1>." },
		{ "nearly a boundary", TYPE, PART("a") "\r\n--\r\r\n--A\r\n-\r\n\r\n--B--x",
		  "<a:\r\n--\r\r\n--A\r\n-\r\n>." },
		{ "longer than the boundary", "multipart/form-data; boundary=BB",
		  "--BB\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--B\r\n--BB--x",
		  "<a:\r\n--B>." },
		{ "a filename", TYPE,
		  "--B\r\ncontent-disposition:form-data;name=file;filename=\"d/e f.txt\"\r\n"
		  "Content-Type: text/plain\r\n\r\nx\r\n--B--x",
		  "<file@d/e f.txt:x>." },
		{ "escapes", TYPE,
		  "--B\r\nContent-Disposition: form-data; filename=\"a\\\"b\\\\c\\d;\xc3\xbc\" ; "
		  "name=\"f\"; other=1;\r\n\r\nx\r\n--B--x",
		  "<f@a\"b\\c\\d;\xc3\xbc:x>." },
		{ "an empty filename", TYPE,
		  "--B\r\nContent-Disposition: form-data; name=\"\"; filename=\"\"\r\n\r\n\r\n"
		  "--B--x",
		  "<@:>." },
		{ "a quoted boundary", "Multipart/Form-Data; charset=x; Boundary=\"a b:c\"",
		  "--a b:c\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--a b:c--x",
		  "<a:x>." },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		expect(row->type, bytes_str(row->in), row->want);
	}
}

static void what_is_refused(void **state)
{
#define HEAD(lines) "--B\r\n" lines "\r\n\r\nx\r\n--B--x"
	static const struct {
		const char *name, *in;
	} rows[] = {
		{ "a preamble", "x\r\n--B--" },
		{ "an empty line first", "\r\n--B--" },
		{ "another boundary", "--C--" },
		{ "junk after a boundary", "--Bx" },
		{ "a blank after a boundary", "--B \r\n" },
		{ "one dash", "--B-x" },
		{ "a bare line end after a boundary", "--B\n" },
		{ "no head", "--B\r\n\r\nx\r\n--B--" },
		{ "no disposition", HEAD("Content-Type: text/plain") },
		{ "no name", HEAD("Content-Disposition: form-data; filename=x") },
		{ "not a form", HEAD("Content-Disposition: attachment; name=x") },
		{ "two names", HEAD("Content-Disposition: form-data; name=x; name=y") },
		{ "two filenames",
		  HEAD("Content-Disposition: form-data; name=x; filename=a; filename=b") },
		{ "two dispositions", HEAD("Content-Disposition: form-data; name=x\r\n"
					   "Content-Disposition: form-data; name=y") },
		{ "no closing quote", HEAD("Content-Disposition: form-data; name=\"x") },
		{ "no value", HEAD("Content-Disposition: form-data; name=") },
		{ "no equals sign", HEAD("Content-Disposition: form-data; name") },
		{ "junk after a quote", HEAD("Content-Disposition: form-data; name=\"x\"y") },
		{ "a bare line end", HEAD("Content-Disposition: form-data; name=x\nA: b") },
		{ "a control character", HEAD("Content-Disposition: form-data; name=\"\x01\"") },
		{ "a folded line", HEAD("Content-Disposition: form-data;\r\n name=x") },
		{ "a line without a name", HEAD(": x\r\nContent-Disposition: form-data; name=x") },
		{ "quoted-printable", HEAD("Content-Disposition: form-data; name=x\r\n"
					   "Content-Transfer-Encoding: quoted-printable") },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct bytes in = bytes_str(row->in);

		for (size_t piece = 1; piece <= in.len; piece++) {
			AUTO(buf_done) struct buf out = BUF_MAX(TEXT_MAX);
			struct err err = { 0 };

			assert_int_equal(parse(TYPE, in, piece, &out, &err), DECODE_BAD);
			assert_int_equal(err.code, ERR_INVALID);
		}
	}
}

static void boundaries_that_are_none(void **state)
{
	static const struct {
		const char *name, *type;
	} rows[] = {
		{ "none", "multipart/form-data" },
		{ "empty", "multipart/form-data; boundary=\"\"" },
		{ "two", "multipart/form-data; boundary=a; boundary=b" },
		{ "a blank at its end", "multipart/form-data; boundary=\"a \"" },
		{ "a bad character", "multipart/form-data; boundary=\"a*\"" },
		{ "71 characters",
		  "multipart/form-data; boundary="
		  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct multipart m;
		struct err err = { 0 };

		assert_int_equal(multipart_init(&m, bytes_str(row->type), &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

static void a_head_has_a_limit(void **state)
{
	AUTO(buf_done) struct buf in = BUF_MAX(TEXT_MAX), out = BUF_MAX(TEXT_MAX);
	struct err err = { 0 };

	(void)state;
	add(&in, BYTES_LIT("--B\r\nX: "));
	for (size_t i = 0; i < MULTIPART_HEAD_MAX; i++)
		add(&in, BYTES_LIT("x"));
	assert_int_equal(parse(TYPE, buf_view(&in), 4096, &out, &err), DECODE_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_read),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(boundaries_that_are_none),
		cmocka_unit_test(a_head_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
