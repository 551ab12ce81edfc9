/* run_event.c - see run_event.h. */
#include "cli/run_event.h"

#include "wire/json_skim.h"

/* --- lines ---------------------------------------------------------------------------------- */

/* What the last line was kept in is empty again. */
static void begin(struct run_lines *l)
{
	if (l->part.cap > RUN_LINE_KEPT)
		buf_done(&l->part);
	buf_clear(&l->part);
	l->part.max = RUN_LINE_MAX;
	l->whole = false;
}

static int keep(struct run_lines *l, struct bytes piece, struct err *err)
{
	if (buf_add(&l->part, piece, err) == 0)
		return 0;
	return err_set(err, ERR_EXHAUSTED, 0, "an event of more than %d MiB",
		       RUN_LINE_MAX / (1024 * 1024));
}

int run_lines_next(struct run_lines *l, struct bytes *in, struct bytes *ret, struct err *err)
{
	struct bytes line;

	if (l->whole || l->part.max == 0)
		begin(l);
	if (!bytes_cut(in, '\n', &line)) {
		line = *in;
		*in = (struct bytes){ 0 };
		return keep(l, line, err);
	}
	*ret = line;
	if (l->part.len == 0)
		return 1;
	if (keep(l, line, err) < 0)
		return -1;
	l->whole = true;
	*ret = buf_view(&l->part);
	return 1;
}

bool run_lines_rest(const struct run_lines *l)
{
	return !l->whole && l->part.len > 0;
}

void run_lines_done(struct run_lines *l)
{
	buf_done(&l->part);
	*l = (struct run_lines){ 0 };
}

/* --- events --------------------------------------------------------------------------------- */

static const struct {
	struct bytes name;
	enum run_type type;
} types[] = {
	{ BYTES_LIT("number_of_executions"), RUN_COUNT },
	{ BYTES_LIT("stdout"), RUN_STDOUT },
	{ BYTES_LIT("stderr"), RUN_STDERR },
	{ BYTES_LIT("result"), RUN_RESULT },
	{ BYTES_LIT("error"), RUN_ERROR },
	{ BYTES_LIT("end_of_execution"), RUN_END },
	{ BYTES_LIT("unexpected_end_of_execution"), RUN_BROKEN },
};

static const char *const names[RUN_MEMBERS] = {
	[RUN_TEXT] = "text",
	[RUN_NAME] = "name",
	[RUN_VALUE] = "value",
	[RUN_TRACEBACK] = "traceback",
	[RUN_MARKDOWN] = "markdown",
	[RUN_LATEX] = "latex",
	[RUN_JAVASCRIPT] = "javascript",
	[RUN_PNG] = "png",
	[RUN_JPEG] = "jpeg",
	[RUN_PDF] = "pdf",
	[RUN_SVG] = "svg",
	[RUN_HTML] = "html",
	[RUN_JSON] = "json",
	[RUN_CHART] = "chart",
};

static enum run_type type_of(struct bytes name)
{
	for (size_t i = 0; i < COUNT(types); i++)
		if (bytes_eq(name, types[i].name))
			return types[i].type;
	return RUN_OTHER;
}

static void take_member(const struct json_span *m, struct run_event *e)
{
	for (size_t i = 0; i < RUN_MEMBERS; i++) {
		if (!bytes_eq(m->name, bytes_str(names[i])))
			continue;
		if (i < RUN_STRINGS)
			(void)json_skim_string(m->value, &e->member[i]);
		else if (!bytes_eq(m->value, BYTES_LIT("null")))
			e->member[i] = m->value;
	}
}

int run_event_read(struct bytes line, struct run_event *ret, struct err *err)
{
	struct json_span spans[JSON_SKIM_MEMBERS_MAX];
	struct bytes type = { 0 };
	int n = json_skim(line, spans, err);

	if (n < 0)
		return err_wrap(err, "an event that is none");
	*ret = (struct run_event){ 0 };
	for (int i = 0; i < n; i++) {
		if (bytes_eq(spans[i].name, BYTES_LIT("type")))
			(void)json_skim_string(spans[i].value, &type);
		take_member(&spans[i], ret);
	}
	if (!type.ptr)
		return err_set(err, ERR_INVALID, 0, "an event that is none: it has no type");
	ret->type = type_of(type);
	return 0;
}
