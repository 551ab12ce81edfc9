/* output_lines.c - bytes in, lines out. */
#include "node/build/output_lines.h"

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Progress bars write over their own line: what was written last is what is seen. */
static struct bytes seen(struct bytes line)
{
	while (line.len > 0 && is_blank(line.ptr[line.len - 1]))
		line.len--;
	for (size_t i = line.len; i > 0; i--)
		if (line.ptr[i - 1] == '\r') {
			line = bytes_tail(line, i);
			break;
		}
	while (line.len > 0 && is_blank(line.ptr[0]))
		line = bytes_tail(line, 1);
	return line;
}

static void tell(struct output_lines *o, output_line_fn *on_line, void *context)
{
	struct bytes line = seen((struct bytes){ o->line, o->len });

	if (line.len > 0)
		on_line(context, line);
	o->len = 0;
}

/* In the middle of a character nothing is cut: its first byte says how long it is. */
static size_t whole_characters(const uint8_t *line, size_t len)
{
	size_t at = len;

	while (at > 0 && len - at < 4 && (line[at - 1] & 0xc0) == 0x80)
		at--;
	return at > 0 && line[at - 1] >= 0xc0 ? at - 1 : len;
}

static void tell_long(struct output_lines *o, output_line_fn *on_line, void *context)
{
	size_t whole = whole_characters(o->line, o->len);
	size_t rest = whole > 0 ? o->len - whole : 0;
	uint8_t kept[4];

	memcpy(kept, o->line + o->len - rest, rest);
	o->len -= rest;
	tell(o, on_line, context);
	memcpy(o->line, kept, rest);
	o->len = rest;
}

void output_lines_add(struct output_lines *o, struct bytes piece, output_line_fn *on_line,
		      void *context)
{
	for (size_t i = 0; i < piece.len; i++) {
		if (piece.ptr[i] == '\n') {
			tell(o, on_line, context);
			continue;
		}
		if (o->len == OUTPUT_LINE_MAX)
			tell_long(o, on_line, context);
		o->line[o->len++] = piece.ptr[i];
	}
}

void output_lines_end(struct output_lines *o, output_line_fn *on_line, void *context)
{
	tell(o, on_line, context);
}
