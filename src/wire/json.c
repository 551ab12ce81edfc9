/* json.c - text to values and back, within limits; members of a type. */
#include "wire/json.h"

#include <assert.h>
#include <inttypes.h>

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

	/* jansson does not look at what became of the names of members: so that is looked at here
	 */
	if (json_dump_callback(v, sink_add, &s, JSON_COMPACT | JSON_ENCODE_ANY) == 0 &&
	    why.code == ERR_NONE)
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

/* Typed members of an object, under either of their two names. */

/* lowerCamelCase to snake_case. False when both are the same word. */
static bool snake(const char *camel, char ret[static 2 * JSON_NAME_MAX])
{
	size_t n = 0;
	bool differs = false;

	assert(strlen(camel) < JSON_NAME_MAX);
	for (size_t i = 0; camel[i]; i++) {
		bool upper = camel[i] >= 'A' && camel[i] <= 'Z';

		if (upper)
			ret[n++] = '_';
		ret[n++] = upper ? (char)(camel[i] - 'A' + 'a') : camel[i];
		differs = differs || upper;
	}
	ret[n] = '\0';
	return differs;
}

/* *ret is NULL when the member is absent or null, which proto3 takes for the same. */
static int lookup(const json_t *obj, const char *name, json_t **ret, struct err *err)
{
	char other[2 * JSON_NAME_MAX];
	json_t *v, *w = NULL;

	if (!json_is_object(obj))
		return err_set(err, ERR_INVALID, 0, "expected an object with %s", name);
	v = json_object_get(obj, name);
	if (snake(name, other))
		w = json_object_get(obj, other);
	if (v && w)
		return err_set(err, ERR_INVALID, 0, "both %s and %s are given", name, other);
	v = v ? v : w;
	*ret = json_is_null(v) ? NULL : v;
	return 0;
}

/* The same, and it must be there when it is required. */
static int find(const json_t *obj, const char *name, bool required, json_t **ret, struct err *err)
{
	if (lookup(obj, name, ret, err) < 0)
		return -1;
	return *ret || !required ? 0 : err_set(err, ERR_INVALID, 0, "%s is missing", name);
}

static int must_be(const char *name, const char *what, struct err *err)
{
	return err_set(err, ERR_INVALID, 0, "%s must be %s", name, what);
}

static int get_string(const json_t *obj, const char *name, bool required, struct bytes *ret,
		      struct err *err)
{
	json_t *v = NULL;

	if (find(obj, name, required, &v, err) < 0)
		return -1;
	if (v && !json_is_string(v))
		return must_be(name, "a string", err);
	if (v)
		*ret = json_bytes(v);
	return 0;
}

int json_want_string(const json_t *obj, const char *name, struct bytes *ret, struct err *err)
{
	return get_string(obj, name, true, ret, err);
}

int json_may_string(const json_t *obj, const char *name, struct bytes *ret, struct err *err)
{
	return get_string(obj, name, false, ret, err);
}

static bool string_to_int(struct bytes text, int64_t *ret)
{
	bool negative = bytes_starts(text, BYTES_LIT("-"));
	uint64_t v;

	if (!bytes_to_u64(bytes_tail(text, negative), &v) || v > (uint64_t)INT64_MAX + negative)
		return false;
	*ret = negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

static bool to_int(const json_t *v, int64_t *ret)
{
	if (json_is_string(v))
		return string_to_int(json_bytes(v), ret);
	if (!json_is_integer(v))
		return false;
	*ret = json_integer_value(v);
	return true;
}

struct range {
	int64_t min, max;
};

/* `v` may be NULL: it is not there. */
static int take_int(const json_t *v, const char *name, struct range in, int64_t *ret,
		    struct err *err)
{
	int64_t n;

	if (!v)
		return 0;
	if (!to_int(v, &n) && in.min == INT64_MIN && in.max == INT64_MAX)
		return err_set(err, ERR_INVALID, 0, "%s must be a whole number", name);
	if (!to_int(v, &n) || n < in.min || n > in.max)
		return err_set(err, ERR_INVALID, 0,
			       "%s must be a whole number from %" PRId64 " to %" PRId64, name,
			       in.min, in.max);
	*ret = n;
	return 0;
}

int json_want_int(const json_t *obj, const char *name, int64_t min, int64_t max, int64_t *ret,
		  struct err *err)
{
	json_t *v = NULL;

	if (find(obj, name, true, &v, err) < 0)
		return -1;
	return take_int(v, name, (struct range){ min, max }, ret, err);
}

int json_may_int(const json_t *obj, const char *name, int64_t min, int64_t max, int64_t *ret,
		 struct err *err)
{
	json_t *v = NULL;

	if (find(obj, name, false, &v, err) < 0)
		return -1;
	return take_int(v, name, (struct range){ min, max }, ret, err);
}

static int get_bool(const json_t *obj, const char *name, bool required, bool *ret, struct err *err)
{
	json_t *v = NULL;

	if (find(obj, name, required, &v, err) < 0)
		return -1;
	if (v && !json_is_boolean(v))
		return must_be(name, "true or false", err);
	if (v)
		*ret = json_is_true(v);
	return 0;
}

int json_want_bool(const json_t *obj, const char *name, bool *ret, struct err *err)
{
	return get_bool(obj, name, true, ret, err);
}

int json_may_bool(const json_t *obj, const char *name, bool *ret, struct err *err)
{
	return get_bool(obj, name, false, ret, err);
}

static int get_object(const json_t *obj, const char *name, bool required, json_t **ret,
		      struct err *err)
{
	json_t *v = NULL;

	if (find(obj, name, required, &v, err) < 0)
		return -1;
	if (v && !json_is_object(v))
		return must_be(name, "an object", err);
	*ret = v ? v : *ret;
	return 0;
}

int json_want_object(const json_t *obj, const char *name, json_t **ret, struct err *err)
{
	return get_object(obj, name, true, ret, err);
}

int json_may_object(const json_t *obj, const char *name, json_t **ret, struct err *err)
{
	return get_object(obj, name, false, ret, err);
}

static int get_array(const json_t *obj, const char *name, bool required, json_t **ret,
		     struct err *err)
{
	json_t *v = NULL;

	if (find(obj, name, required, &v, err) < 0)
		return -1;
	if (v && !json_is_array(v))
		return must_be(name, "an array", err);
	*ret = v ? v : *ret;
	return 0;
}

int json_want_array(const json_t *obj, const char *name, json_t **ret, struct err *err)
{
	return get_array(obj, name, true, ret, err);
}

int json_may_array(const json_t *obj, const char *name, json_t **ret, struct err *err)
{
	return get_array(obj, name, false, ret, err);
}
