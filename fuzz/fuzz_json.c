/* fuzz_json.c - promises of the wall around jansson: depth holds, writing inverts reading. */
#include "fuzz/must.h"
#include "wire/json.h"

enum { DEPTH = 8, LIMIT = 1 << 20 };

static unsigned int depth_of(json_t *v)
{
	unsigned int most = 0, n;
	const char *key;
	json_t *member;
	size_t i;

	json_object_foreach(v, key, member)
	{
		n = depth_of(member);
		most = n > most ? n : most;
	}
	json_array_foreach(v, i, member)
	{
		n = depth_of(member);
		most = n > most ? n : most;
	}
	return json_is_object(v) || json_is_array(v) ? most + 1 : 0;
}

/* A getter succeeds with the right type, or says why not. */
static void check_members(const json_t *v)
{
	struct bytes text = { 0 };
	json_t *tree = NULL;
	struct err err = { 0 };
	int64_t n = 0;
	bool flag = false;

	if (json_may_string(v, "aB", &text, &err) < 0)
		must_say_why(&err);
	if (json_may_int(v, "aB", -5, 5, &n, &err) < 0)
		must_say_why(&err);
	MUST(n >= -5 && n <= 5);
	if (json_may_bool(v, "aB", &flag, &err) < 0)
		must_say_why(&err);
	if (json_want_object(v, "aB", &tree, &err) == 0)
		MUST(json_is_object(tree));
	if (json_want_array(v, "aB", &tree, &err) == 0)
		MUST(json_is_array(tree));
}

static void must_invert(json_t *v)
{
	AUTO(buf_done) struct buf once = BUF_MAX(LIMIT), twice = BUF_MAX(LIMIT);
	AUTO(json_decrefp) json_t *again = NULL;
	struct err err = { 0 };

	MUST(json_encode(v, &once, &err) == 0);
	MUST(json_decode(buf_view(&once), once.len, DEPTH, &again, &err) == 0);
	MUST(json_equal(v, again));
	MUST(json_encode(again, &twice, &err) == 0);
	MUST(bytes_eq(buf_view(&once), buf_view(&twice)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_head((struct bytes){ data, size }, LIMIT / 32);
	AUTO(json_decrefp) json_t *v = NULL, *text = json_text(in), *none = NULL;
	struct err err = { 0 };

	MUST(json_string_length(text) == in.len);
	if (in.len > 0)
		MUST(json_decode(in, in.len - 1, DEPTH, &none, &err) < 0);
	if (json_decode(in, in.len, DEPTH, &v, &err) < 0) {
		must_say_why(&err);
		MUST(!v);
		return 0;
	}
	MUST(depth_of(v) >= 1 && depth_of(v) <= DEPTH);
	MUST(json_decode(in, in.len, depth_of(v) - 1, &none, &err) < 0 && !none);
	MUST(json_decode(in, in.len, depth_of(v), &none, &err) == 0);
	check_members(v);
	must_invert(v);
	return 0;
}
