/* fuzz_interp_bundle.c - promises about a MIME bundle as the result that clients are told.
 *
 * The input is the `data` of a message, as JSON; its first byte is how large the buffer for the
 * line is. Every type is told under its name, with its value, or in `extra`; nothing else is in the
 * line; and a line that does not fit is not there at all, behind what was there before.
 */
#include "fuzz/interp_lines.h"

static const char *const known[][2] = {
	{ "text/plain", "text" },        { "text/html", "html" },
	{ "text/markdown", "markdown" }, { "image/svg+xml", "svg" },
	{ "image/png", "png" },          { "image/jpeg", "jpeg" },
	{ "application/pdf", "pdf" },    { "text/latex", "latex" },
	{ "application/json", "json" },  { "application/javascript", "javascript" },
	{ "e2b/data", "data" },          { "e2b/chart", "chart" },
};

/* Or, of a string, without the quotes that Python puts around it. */
static bool is_same(const json_t *value, const json_t *told, bool text)
{
	struct bytes a, b;

	if (json_equal(value, told))
		return true;
	if (!text || !json_is_string(value) || !json_is_string(told))
		return false;
	a = json_bytes(value);
	b = json_bytes(told);
	return a.len == b.len + 2 && a.ptr[0] == a.ptr[a.len - 1] &&
	       (a.ptr[0] == '\'' || a.ptr[0] == '"') &&
	       bytes_eq(bytes_head(bytes_tail(a, 1), b.len), b);
}

static void must_tell_all(const json_t *data, json_t *line)
{
	json_t *extra = json_object_get(line, "extra"), *value;
	size_t in_line = 3, in_extra = 0; /* type, is_main_result, extra */
	const char *mime;

	MUST(json_is_object(extra) && json_is_boolean(json_object_get(line, "is_main_result")));
	json_object_foreach((json_t *)(uintptr_t)data, mime, value)
	{
		const char *name = NULL;

		for (size_t i = 0; i < COUNT(known); i++)
			if (strcmp(mime, known[i][0]) == 0)
				name = known[i][1];
		if (!name) {
			MUST(json_equal(value, json_object_get(extra, mime)));
			in_extra++;
		} else if (!json_is_null(value)) {
			MUST(is_same(value, json_object_get(line, name),
				     strcmp(name, "text") == 0));
			in_line++;
		}
	}
	MUST(json_object_size(line) == in_line && json_object_size(extra) == in_extra);
}

static void check(const struct kernel_message *m, const json_t *data, size_t room)
{
	const struct bytes before = BYTES_LIT("{\"type\":\"before\"}\n");
	AUTO(buf_done) struct buf out = BUF_MAX(EVENT_LINE_MAX);
	AUTO(buf_done) struct buf small = BUF_MAX(before.len + room);
	AUTO(json_decrefp) json_t *line = NULL;
	struct err err = { 0 };
	bool error;

	MUST(event_of_message(m, false, &out, &error, &err) == 0 && !error);
	MUST(must_be_lines(buf_view(&out)) == 1);
	line = json_loadb((const char *)out.ptr, out.len, JSON_ALLOW_NUL, NULL);
	must_tell_all(data, line);

	MUST(buf_add(&small, before, &err) == 0);
	if (event_of_message(m, false, &small, &error, &err) < 0) {
		must_say_why(&err);
		MUST(out.len > room && bytes_eq(buf_view(&small), before));
	} else {
		MUST(bytes_eq(bytes_tail(buf_view(&small), before.len), buf_view(&out)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size }, text = bytes_tail(in, 1);
	AUTO(json_decrefp)
	json_t *bundle =
		text.len ? json_loadb((const char *)text.ptr, text.len, JSON_ALLOW_NUL, NULL)
			 : NULL;
	struct kernel_message m = { .type = "execute_result" };

	if (!json_is_object(bundle))
		return 0;
	m.content = json_pack("{s:O}", "data", bundle);
	check(&m, bundle, (size_t)in.ptr[0] * 2);
	snprintf(m.type, sizeof(m.type), "display_data");
	check(&m, bundle, (size_t)in.ptr[0] * 2);
	kernel_message_done(&m);
	return 0;
}
