/* target.c - path segments and query parameters: cut first, decoded after. */
#include "wire/target.h"

#include "wire/http1_chars.h"

/* Take one byte off the front of *raw, decoded: 1 to 255; 0 is a NUL, -1 a broken escape. */
static int take_byte(struct bytes *raw, bool plus)
{
	uint8_t c = raw->ptr[0];
	int high, low;

	if (c != '%') {
		*raw = bytes_tail(*raw, 1);
		return plus && c == '+' ? ' ' : c;
	}
	high = raw->len >= 3 ? hex_value(raw->ptr[1]) : -1;
	low = raw->len >= 3 ? hex_value(raw->ptr[2]) : -1;
	*raw = bytes_tail(*raw, 3);
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static int bad_byte(int value, struct err *err)
{
	return err_set(err, ERR_INVALID, 0, "%s in the target",
		       value < 0 ? "broken escape" : "NUL");
}

/* Append `raw` decoded. On failure `out` is as it was. */
static int decode(struct bytes raw, bool plus, struct buf *out, struct err *err)
{
	size_t before = out->len;

	while (raw.len > 0) {
		int value = take_byte(&raw, plus);
		uint8_t byte = (uint8_t)value;

		if (value <= 0) {
			out->len = before;
			return bad_byte(value, err);
		}
		if (buf_add(out, (struct bytes){ &byte, 1 }, err) < 0) {
			out->len = before;
			return err_wrap(err, "decode the target");
		}
	}
	return 0;
}

int target_split(struct bytes target, struct target *ret, struct err *err)
{
	size_t scheme = scheme_len(target);
	struct bytes rest = scheme ? bytes_tail(target, authority_end(target, scheme)) : target;
	struct bytes path;

	if (scheme && (rest.len == 0 || rest.ptr[0] == '?')) { /* no path: the root is meant */
		*ret = (struct target){ BYTES_LIT("/"), bytes_tail(rest, 1) };
		return 0;
	}
	if (rest.len == 0 || rest.ptr[0] != '/')
		return err_set(err, ERR_INVALID, 0, "target without a path");
	if (bytes_cut(&rest, '?', &path))
		*ret = (struct target){ path, rest };
	else
		*ret = (struct target){ rest, { 0 } };
	return 0;
}

bool target_next_segment(struct bytes *path, struct bytes *ret)
{
	struct bytes rest;
	size_t n = 0;

	if (path->len == 0)
		return false;
	rest = bytes_tail(*path, 1); /* each segment brings its slash */
	while (n < rest.len && rest.ptr[n] != '/')
		n++;
	*ret = bytes_head(rest, n);
	*path = bytes_tail(rest, n);
	return true;
}

int target_decode_segment(struct bytes raw, struct buf *out, struct err *err)
{
	size_t before = out->len;
	struct bytes got;

	if (raw.len > 3 * TARGET_SEGMENT_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "path segment over %d bytes",
			       TARGET_SEGMENT_MAX);
	if (decode(raw, false, out, err) < 0)
		return -1;
	got = bytes_tail(buf_view(out), before);
	if (got.len <= TARGET_SEGMENT_MAX && !bytes_eq(got, BYTES_LIT(".")) &&
	    !bytes_eq(got, BYTES_LIT("..")))
		return 0;
	out->len = before;
	if (got.len > TARGET_SEGMENT_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "path segment over %d bytes",
			       TARGET_SEGMENT_MAX);
	return err_set(err, ERR_INVALID, 0, "dots as a path segment");
}

bool target_next_param(struct bytes *query, struct bytes *ret_name, struct bytes *ret_value)
{
	struct bytes pair;

	if (query->len == 0)
		return false;
	if (!bytes_cut(query, '&', &pair)) {
		pair = *query;
		*query = (struct bytes){ 0 };
	}
	if (!bytes_cut(&pair, '=', ret_name)) {
		*ret_name = pair;
		pair = (struct bytes){ 0 };
	}
	*ret_value = pair;
	return true;
}

int target_decode_param(struct bytes raw, struct buf *out, struct err *err)
{
	return decode(raw, true, out, err);
}

/* Does `raw`, decoded, spell `want`? Every escape in it is looked at, match or not. */
static int is_param(struct bytes raw, struct bytes want, bool *ret, struct err *err)
{
	bool same = true;
	size_t n = 0;

	while (raw.len > 0) {
		int value = take_byte(&raw, true);

		if (value <= 0)
			return bad_byte(value, err);
		same = same && n < want.len && want.ptr[n] == value;
		n++;
	}
	*ret = same && n == want.len;
	return 0;
}

int target_find_param(struct bytes query, const char *name, struct buf *out, bool *ret_found,
		      struct err *err)
{
	struct bytes want = bytes_str(name), raw_name, raw_value, value = { 0 };
	size_t n = 0;
	bool found = false;

	while (target_next_param(&query, &raw_name, &raw_value)) {
		bool match = false;

		if (n++ == TARGET_PARAMS_MAX)
			return err_set(err, ERR_EXHAUSTED, 0, "more than %d query parameters",
				       TARGET_PARAMS_MAX);
		if (is_param(raw_name, want, &match, err) < 0)
			return -1;
		if (match && found)
			return err_set(err, ERR_INVALID, 0, "query parameter %s is given twice",
				       name);
		if (match)
			value = raw_value;
		found = found || match;
	}
	if (found && target_decode_param(value, out, err) < 0)
		return err_wrap(err, "query parameter %s", name);
	*ret_found = found;
	return 0;
}

int target_param(struct bytes query, const char *name, struct buf *out, struct err *err)
{
	bool found = false;

	buf_clear(out);
	if (target_find_param(query, name, out, &found, err) < 0)
		return err_wrap(err, "%s", name);
	return 0;
}
