/* fuzz_json_skim.c - promises of json_skim: it accepts what jansson accepts and nothing else, finds
 * the same members with the same values, and how a string is cut into pieces changes nothing.
 */
#include <jansson.h>

#include "fuzz/must.h"
#include "wire/json_skim.h"

/* jansson refuses more: numbers that do not fit its types, and NUL in a name. */
static bool is_more(const json_error_t *why)
{
	enum json_error_code code = json_error_code(why);

	return code == json_error_numeric_overflow || code == json_error_null_byte_in_key;
}

static void whole(struct bytes text, size_t step, struct buf *out)
{
	struct err err = { 0 };
	uint8_t piece[64];
	size_t n;

	while ((n = json_skim_take(&text, piece, step)) > 0) {
		MUST(n <= step);
		MUST(buf_add(out, (struct bytes){ piece, n }, &err) == 0);
	}
	MUST(text.len == 0);
}

static void must_be_string(struct bytes raw, const json_t *want)
{
	AUTO(buf_done) struct buf all = BUF_MAX(raw.len), slow = BUF_MAX(raw.len);
	struct bytes text;

	MUST(json_skim_string(raw, &text) && inside(text, raw));
	whole(text, 64, &all);
	whole(text, JSON_SKIM_CHARACTER, &slow);
	MUST(bytes_eq(buf_view(&all), buf_view(&slow)));
	MUST(all.len == json_string_length(want));
	MUST(memcmp(all.len ? all.ptr : (const uint8_t *)"", json_string_value(want), all.len) ==
	     0);
}

static void must_be_value(struct bytes raw, const json_t *want)
{
	AUTO(json_decrefp)
	json_t *v =
		json_loadb((const char *)raw.ptr, raw.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	MUST(json_equal(v, want));
	if (json_is_string(want))
		must_be_string(raw, want);
}

/* Of names that are written in two ways the last counts for jansson. */
static void must_be_members(const struct json_span *m, size_t n, const json_t *want)
{
	size_t size = json_object_size(want);

	MUST(n >= size);
	for (size_t i = 0; n == size && i < n; i++) {
		AUTO(buf_done) struct buf name = BUF_MAX(m[i].name.len);
		const json_t *v;

		whole(m[i].name, 64, &name);
		v = json_object_getn(want, name.len ? (const char *)name.ptr : "", name.len);
		MUST(v);
		must_be_value(m[i].value, v);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct json_span m[JSON_SKIM_MEMBERS_MAX];
	struct err err = { 0 };
	json_error_t why;
	AUTO(json_decrefp)
	json_t *want = json_loadb(size ? (const char *)data : "", size, JSON_ALLOW_NUL, &why);
	int n = json_skim(in, m, &err);

	if (n < 0) {
		must_say_why(&err);
		MUST(!json_is_object(want) || err.code == ERR_EXHAUSTED ||
		     strstr(err.msg, "given twice") || memchr(data, 0, size));
		return 0;
	}
	MUST(!memchr(data, 0, size)); /* jansson passes over one behind a number */
	for (int i = 0; i < n; i++)
		MUST(inside(m[i].name, in) && inside(m[i].value, in) && m[i].value.len > 0);
	MUST(want || is_more(&why));
	if (want)
		must_be_members(m, (size_t)n, want);
	return 0;
}
