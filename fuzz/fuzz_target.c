/* fuzz_target.c - promises of the request target: nothing lost in cutting, nothing in decoding. */
#include "fuzz/must.h"
#include "wire/target.h"

enum { LIMIT = 64 * 1024 };

/* Escape every byte: the longest spelling, which must mean the same. */
static void escape(struct bytes plain, struct buf *out)
{
	struct err err = { 0 };

	for (size_t i = 0; i < plain.len; i++)
		MUST(buf_printf(out, &err, "%%%02x", plain.ptr[i]) == 0);
}

static void check_segment(struct bytes raw)
{
	AUTO(buf_done) struct buf plain = BUF_MAX(LIMIT), longest = BUF_MAX(LIMIT);
	AUTO(buf_done) struct buf again = BUF_MAX(LIMIT);
	struct err err = { 0 };

	if (target_decode_segment(raw, &plain, &err) < 0) {
		must_say_why(&err);
		MUST(plain.len == 0);
		return;
	}
	MUST(plain.len <= raw.len && plain.len <= TARGET_SEGMENT_MAX);
	MUST(plain.len == 0 || !memchr(plain.ptr, 0, plain.len));
	MUST(!bytes_eq(buf_view(&plain), BYTES_LIT("..")));
	MUST(!bytes_eq(buf_view(&plain), BYTES_LIT(".")));
	if (raw.len == 0 || !memchr(raw.ptr, '%', raw.len))
		MUST(bytes_eq(buf_view(&plain), raw));
	escape(buf_view(&plain), &longest);
	MUST(target_decode_segment(buf_view(&longest), &again, &err) == 0);
	MUST(bytes_eq(buf_view(&plain), buf_view(&again)));
}

/* Slash and segment, slash and segment: that is the path. */
static void check_path(struct bytes path)
{
	AUTO(buf_done) struct buf joined = BUF_MAX(LIMIT);
	struct bytes rest = path, raw;
	struct err err = { 0 };

	while (target_next_segment(&rest, &raw)) {
		MUST(inside(raw, path) && (raw.len == 0 || !memchr(raw.ptr, '/', raw.len)));
		MUST(buf_add(&joined, BYTES_LIT("/"), &err) == 0);
		MUST(buf_add(&joined, raw, &err) == 0);
		check_segment(raw);
	}
	MUST(bytes_eq(buf_view(&joined), path));
}

/* Decode every name and count: how often is it there? */
static size_t count(struct bytes query, struct bytes want, struct buf *ret_value)
{
	struct bytes raw_name, raw_value;
	struct err err = { 0 };
	size_t n = 0;

	while (target_next_param(&query, &raw_name, &raw_value)) {
		AUTO(buf_done) struct buf name = BUF_MAX(LIMIT);

		if (target_decode_param(raw_name, &name, &err) < 0 ||
		    !bytes_eq(buf_view(&name), want))
			continue;
		buf_clear(ret_value);
		if (target_decode_param(raw_value, ret_value, &err) < 0)
			must_say_why(&err);
		n++;
	}
	return n;
}

/* A name is found with its value when it is there once, and an ambiguous one is refused. */
static void check_name(struct bytes query, struct bytes want)
{
	AUTO(buf_done) struct buf got = BUF_MAX(LIMIT), value = BUF_MAX(LIMIT);
	char name[LIMIT / 8];
	struct err err = { 0 };
	bool found = false;
	size_t n = count(query, want, &value);

	if (!bytes_to_str(want, name, sizeof(name)))
		return;
	if (target_find_param(query, name, &got, &found, &err) < 0) {
		must_say_why(&err);
		MUST(!found && got.len == 0);
		return;
	}
	MUST(n <= 1 && found == (n == 1));
	MUST(!found || bytes_eq(buf_view(&got), buf_view(&value)));
}

static void check_param(struct bytes query, struct bytes raw_name)
{
	AUTO(buf_done) struct buf name = BUF_MAX(LIMIT);
	struct err err = { 0 };

	if (target_decode_param(raw_name, &name, &err) < 0) {
		must_say_why(&err);
		return;
	}
	MUST(name.len <= raw_name.len);
	check_name(query, buf_view(&name));
	check_name(query, bytes_head(buf_view(&name), name.len / 2));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_head((struct bytes){ data, size }, LIMIT / 8);
	struct bytes rest, name, value;
	struct target t = { 0 };
	struct err err = { 0 };

	if (target_split(in, &t, &err) < 0) {
		must_say_why(&err);
		return 0;
	}
	MUST(t.path.len > 0 && t.path.ptr[0] == '/' && !memchr(t.path.ptr, '?', t.path.len));
	MUST(inside(t.query, in) && t.path.len + t.query.len <= in.len + 1);
	check_path(t.path);
	rest = t.query;
	for (int i = 0; i < 4 && target_next_param(&rest, &name, &value); i++) {
		MUST(inside(name, in) && inside(value, in));
		check_param(t.query, name);
	}
	return 0;
}
