/* json.c - text to values and back, within limits. */
#include "wire/json.h"

#include <assert.h>

#include "base/wipe.h"

/* The nesting of the text, counted without understanding it: brackets outside strings. jansson
 * recurses per level, so the limit must hold before it sees the text. */
static unsigned int deepest(struct bytes in, unsigned int enough)
{
	unsigned int depth = 0, most = 0;
	bool string = false;

	for (size_t i = 0; i < in.len && most <= enough; i++) {
		uint8_t c = in.ptr[i];

		if (string && c == '\\')
			i++;
		else if (c == '"')
			string = !string;
		else if (!string && (c == '{' || c == '['))
			most = ++depth > most ? depth : most;
		else if (!string && (c == '}' || c == ']') && depth > 0)
			depth--;
	}
	return most;
}

void json_wipe_freed(void)
{
	json_set_alloc_funcs(malloc, wipe_free);
}

int json_decode(struct bytes in, size_t max_bytes, unsigned int max_depth, json_t **ret,
		struct err *err)
{
	json_error_t why;
	json_t *v;

	assert(max_depth <= JSON_DEPTH_MAX);
	if (in.len > max_bytes)
		return err_set(err, ERR_EXHAUSTED, 0, "JSON of %zu bytes, limit is %zu", in.len,
			       max_bytes);
	if (deepest(in, max_depth) > max_depth)
		return err_set(err, ERR_EXHAUSTED, 0, "JSON nested deeper than %u", max_depth);
	v = json_loadb(in.len ? (const char *)in.ptr : "", in.len, JSON_REJECT_DUPLICATES, &why);
	if (!v)
		return err_set(err, ERR_INVALID, 0, "JSON, line %d column %d: %s", why.line,
			       why.column, why.text);
	*ret = v;
	return 0;
}

struct sink {
	struct buf *out;
	struct err *err;
};

static int sink_add(const char *text, size_t n, void *sink)
{
	const struct sink *s = sink;

	return buf_add(s->out, (struct bytes){ (const uint8_t *)text, n }, s->err);
}

int json_encode(const json_t *v, struct buf *out, struct err *err)
{
	struct err why = { 0 };
	struct sink s = { out, &why };
	size_t before = out->len;

	if (json_dump_callback(v, sink_add, &s, JSON_COMPACT | JSON_ENCODE_ANY) == 0)
		return 0;
	out->len = before;
	if (why.code == ERR_NONE)
		return err_set(err, ERR_INTERNAL, 0, "value has no JSON form");
	*err = why;
	return err_wrap(err, "write JSON");
}

json_t *json_text(struct bytes text)
{
	AUTO(buf_done) struct buf plain = BUF_MAX(text.len);
	json_t *v = text.len > 0 && memchr(text.ptr, 0, text.len)
			    ? NULL
			    : json_stringn(text.len ? (const char *)text.ptr : "", text.len);
	struct err err;

	if (v)
		return v;
	if (buf_add(&plain, text, &err) < 0)
		return NULL;
	for (size_t i = 0; i < plain.len; i++)
		if (plain.ptr[i] == 0 || plain.ptr[i] > 127)
			plain.ptr[i] = '?';
	return json_stringn((const char *)plain.ptr, plain.len);
}
