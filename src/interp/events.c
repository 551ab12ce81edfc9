/* events.c - see events.h. */
#include "interp/events.h"

#include "base/clock.h"
#include "interp/json_write.h"
#include "wire/rfc3339.h"

enum { TRACEBACK_MAX = 16 * 1024 * 1024, MOST_RUNS = 1 << 30, TIME_SIZE = RFC3339_SIZE + 8 };

static const struct {
	const char *mime, *key;
} keys[] = {
	{ "text/plain", "text" },        { "text/html", "html" },
	{ "text/markdown", "markdown" }, { "image/svg+xml", "svg" },
	{ "image/png", "png" },          { "image/jpeg", "jpeg" },
	{ "application/pdf", "pdf" },    { "text/latex", "latex" },
	{ "application/json", "json" },  { "application/javascript", "javascript" },
	{ "e2b/data", "data" },          { "e2b/chart", "chart" },
};

/* Takes `v`; NULL is "out of memory". A line is added as a whole or not at all. */
static int add_line(json_t *v, struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *owned = v;
	size_t before = out->len;

	if (json_write(owned, JSON_COMPACT | JSON_ENSURE_ASCII, out, err) == 0 &&
	    buf_add(out, BYTES_LIT("\n"), err) == 0)
		return 0;
	out->len = before;
	return -1;
}

/* A string without the quotes around it, if they are the same: what Python prints of a string. */
static json_t *unquoted(json_t *text)
{
	struct bytes b = json_bytes(text);

	if (b.len > 1 && b.ptr[0] == b.ptr[b.len - 1] && (b.ptr[0] == '\'' || b.ptr[0] == '"'))
		return json_stringn((const char *)b.ptr + 1, b.len - 2);
	return json_incref(text);
}

static const char *key_of(const char *mime)
{
	for (size_t i = 0; i < COUNT(keys); i++)
		if (strcmp(mime, keys[i].mime) == 0)
			return keys[i].key;
	return NULL;
}

static int add_result(const json_t *content, bool main, struct buf *out, struct err *err)
{
	json_t *line = json_pack("{s:s, s:b}", "type", "result", "is_main_result", main);
	json_t *extra = json_object(), *value;
	const char *mime;

	json_object_foreach(json_object_get(content, "data"), mime, value)
	{
		const char *key = key_of(mime);

		if (!key)
			json_object_set(extra, mime, value);
		else if (strcmp(key, "text") == 0 && json_is_string(value))
			json_object_set_new(line, key, unquoted(value));
		else if (!json_is_null(value))
			json_object_set(line, key, value);
	}
	if (json_object_set_new(line, "extra", extra) < 0) {
		json_decref(line);
		line = NULL;
	}
	return add_line(line, out, err);
}

static json_t *text_of(const json_t *object, const char *name)
{
	json_t *v = json_object_get(object, name);

	return json_is_string(v) ? json_incref(v) : json_string("");
}

static int add_output(const char *type, struct bytes text, const char *when, struct buf *out,
		      struct err *err)
{
	return add_line(json_pack("{s:s, s:o, s:s}", "type", type, "text",
				  json_stringn(text.len ? (const char *)text.ptr : "", text.len),
				  "timestamp", when),
			out, err);
}

/* In UTC, as Python's isoformat() writes it: what reads it need not know of "Z". */
static void put_time(const char *date, char ret[static TIME_SIZE])
{
	char utc[RFC3339_SIZE];
	struct err err;
	uint64_t ns;

	if (rfc3339_parse(bytes_str(date), &ns, &err) < 0)
		ns = clock_wall_ns();
	rfc3339_put(ns, 6, utc);
	snprintf(ret, TIME_SIZE, "%.*s+00:00", (int)strcspn(utc, "Z"), utc);
}

static int add_stream(const struct kernel_message *m, bool apart, struct buf *out, struct err *err)
{
	const json_t *name = json_object_get(m->content, "name");
	bool is_error = json_is_string(name) && strcmp(json_string_value(name), "stderr") == 0;
	struct bytes text = json_bytes(json_object_get(m->content, "text"));
	const char *type = is_error ? "stderr" : "stdout";
	char when[TIME_SIZE];

	put_time(m->date, when);
	if (!apart || text.len < 2 || text.ptr[text.len - 1] != '\n')
		return add_output(type, text, when, out, err);
	if (add_output(type, bytes_head(text, text.len - 1), when, out, err) < 0)
		return -1;
	return add_output(type, BYTES_LIT("\n"), when, out, err);
}

/* Without the colours of a terminal: ESC, '[', and up to a letter. */
static int add_uncoloured(struct bytes line, struct buf *out, struct err *err)
{
	struct bytes plain;

	while (bytes_cut(&line, '\x1b', &plain)) {
		size_t n = line.len > 0 && line.ptr[0] == '[' ? 1 : 0;

		while (n > 0 && n < line.len && (line.ptr[n] < '@' || line.ptr[n] > '~'))
			n++;
		if (buf_add(out, plain, err) < 0)
			return -1;
		line = bytes_tail(line, n > 0 ? n + 1 : 0);
	}
	return buf_add(out, line, err);
}

/* Its parts, with nothing between them: so has it E2B's server. */
static json_t *traceback_of(const json_t *content)
{
	AUTO(buf_done) struct buf all = BUF_MAX(TRACEBACK_MAX);
	const json_t *lines = json_object_get(content, "traceback");
	struct err err;
	json_t *line;
	size_t i;

	json_array_foreach(lines, i, line)
	{
		if (add_uncoloured(json_bytes(line), &all, &err) < 0)
			break;
	}
	return json_stringn(all.len ? (const char *)all.ptr : "", all.len);
}

static json_t *error_line(json_t *name, json_t *value, json_t *traceback)
{
	return json_pack("{s:s, s:o, s:o, s:o}", "type", "error", "name", name, "value", value,
			 "traceback", traceback);
}

int event_error(const char *name, const char *value, const char *why, struct buf *out,
		struct err *err)
{
	return add_line(error_line(json_string(name), json_text(bytes_str(value)),
				   json_text(bytes_str(why))),
			out, err);
}

static int add_error(const json_t *content, struct buf *out, struct err *err)
{
	json_t *name = text_of(content, "ename");

	if (json_string_length(name) == 0) {
		json_decref(name);
		name = json_string("Error");
	}
	return add_line(error_line(name, text_of(content, "evalue"), traceback_of(content)), out,
			err);
}

int event_of_reply(const json_t *content, struct buf *out, struct err *err)
{
	const json_t *status = json_object_get(content, "status");

	if (json_is_string(status) && strncmp(json_string_value(status), "abort", 5) == 0)
		return event_error("ExecutionAborted", "Execution was aborted", "", out, err);
	return add_error(content, out, err);
}

/* Floating, too, where another number of the message was too large. */
static int add_count(const json_t *content, struct buf *out, struct err *err)
{
	const json_t *count = json_object_get(content, "execution_count");
	double n = json_number_value(count);

	if (!json_is_number(count) || !(n >= 0 && n < (double)MOST_RUNS))
		return 0;
	return add_line(json_pack("{s:s, s:I}", "type", "number_of_executions", "execution_count",
				  (json_int_t)n),
			out, err);
}

static bool is_told(const char *type)
{
	static const char *const told[] = { "error", "stream", "display_data", "execute_result" };

	for (size_t i = 0; i < COUNT(told); i++)
		if (strcmp(type, told[i]) == 0)
			return true;
	return false;
}

int event_of_message(const struct kernel_message *m, bool apart, struct buf *out, bool *ret_error,
		     struct err *err)
{
	*ret_error = m->unreadable ? is_told(m->type) : strcmp(m->type, "error") == 0;
	if (*ret_error)
		return add_error(m->content, out, err);
	if (strcmp(m->type, "stream") == 0)
		return add_stream(m, apart, out, err);
	if (strcmp(m->type, "display_data") == 0)
		return add_result(m->content, false, out, err);
	if (strcmp(m->type, "execute_result") == 0)
		return add_result(m->content, true, out, err);
	if (strcmp(m->type, "execute_input") == 0)
		return add_count(m->content, out, err);
	return 0;
}
