/* table.c - aligned text for people; machines take --json. */
#include "cli/table.h"

#include "cli/cli.h"
#include "cli/people.h"
#include "cli/say.h"

enum { CELL_MAX = 4200, COLUMNS_MAX = 16 }; /* a line of a log has 4096 bytes */

static const json_t *member(const json_t *row, const char *path)
{
	const char *dot = strchr(path, '.');
	char first[JSON_NAME_MAX];

	if (!dot)
		return json_object_get(row, path);
	snprintf(first, sizeof(first), "%.*s", (int)(dot - path), path);
	return json_object_get(json_object_get(row, first), dot + 1);
}

/* A list of words, as far as it fits. */
static void words(char ret[static CELL_MAX], const json_t *list)
{
	const json_t *v;
	size_t i, n = 0;

	json_array_foreach(list, i, v)
	{
		if (json_is_string(v) && n < CELL_MAX)
			n += (size_t)snprintf(ret + n, CELL_MAX - n, "%s%s", n ? " " : "",
					      json_string_value(v));
	}
}

/* Characters that a terminal obeys: those below space, DEL, and U+0080 to U+009F, which begin
 * sequences as ESC does. */
void table_clean(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p; p++) {
		bool two = *p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;

		if (two)
			p[1] = '?';
		if (two || *p < ' ' || *p == 127)
			*p = '?';
	}
}

/* How much of it goes on one line: up to a space, or cut where a character begins. */
static size_t fits(const char *text, size_t width)
{
	size_t len = strlen(text), n = width;

	if (len <= width)
		return len;
	while (n > 0 && text[n] != ' ')
		n--;
	if (n > 0)
		return n;
	for (n = width; n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
		;
	return n;
}

void table_wrap(FILE *out, const char *text, size_t indent, size_t width)
{
	AUTO(auto_free) char *copy = strdup(text);
	const char *at = copy;

	if (!copy)
		return;
	table_clean(copy);
	do {
		size_t n = fits(at, width - indent);

		fprintf(out, "%*s%.*s\n", (int)indent, "", (int)n, at);
		at += n;
		while (*at == ' ')
			at++;
	} while (*at);
}

static void cut(char *text, size_t max)
{
	if (max == 0 || strlen(text) <= max)
		return;
	for (max--; max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80; max--)
		;
	text[max] = '~';
	text[max + 1] = '\0';
}

/* Sizes, times and parts. False: it is none of these. */
static bool special(char ret[static CELL_MAX], const json_t *v, enum column_kind kind)
{
	uint64_t n = json_is_integer(v) && json_integer_value(v) > 0
			     ? (uint64_t)json_integer_value(v)
			     : 0;

	if ((kind == COLUMN_BYTES || kind == COLUMN_MIB) && json_is_integer(v))
		people_size(kind == COLUMN_MIB && n < UINT64_MAX >> 20 ? n << 20 : n, ret);
	else if (kind == COLUMN_WHEN && json_is_string(v))
		people_when(json_string_value(v), ret, CELL_MAX);
	else if (kind == COLUMN_PERCENT && json_is_number(v))
		snprintf(ret, CELL_MAX, "%.1f%%", json_number_value(v));
	else
		return false;
	return true;
}

static void cell(char ret[static CELL_MAX], const json_t *row, const struct column *column)
{
	const json_t *v = member(row, column->member);

	snprintf(ret, CELL_MAX, "-");
	if (special(ret, v, column->kind))
		;
	else if (json_is_string(v) && json_string_length(v))
		snprintf(ret, CELL_MAX, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(ret, CELL_MAX, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		snprintf(ret, CELL_MAX, "%.2f", json_real_value(v));
	else if (json_is_boolean(v))
		snprintf(ret, CELL_MAX, "%s", json_is_true(v) ? "yes" : "no");
	else if (json_is_array(v))
		words(ret, v);
	table_clean(ret);
	cut(ret, column->max);
}

static bool is_number(enum column_kind kind)
{
	return kind == COLUMN_BYTES || kind == COLUMN_MIB || kind == COLUMN_PERCENT;
}

static void print_line(FILE *out, const json_t *row, const struct column *columns, size_t n,
		       const size_t *width)
{
	char text[CELL_MAX];

	for (size_t i = 0; i < n; i++) {
		if (row)
			cell(text, row, &columns[i]);
		else
			snprintf(text, sizeof(text), "%s", columns[i].title);
		if (is_number(columns[i].kind))
			fprintf(out, "%*s%s", (int)width[i], text, i + 1 < n ? "  " : "\n");
		else if (i + 1 < n)
			fprintf(out, "%-*s  ", (int)width[i], text);
		else
			fprintf(out, "%s\n", text);
	}
}

void table_cells(FILE *out, const json_t *row, const struct column *columns, size_t n)
{
	char text[CELL_MAX];

	for (size_t i = 0; i < n; i++) {
		cell(text, row, &columns[i]);
		fprintf(out, "%-5s  ", text);
	}
}

void table_line(FILE *out, const json_t *row, const char *member)
{
	print_line(out, row, &(struct column){ "", member }, 1, &(size_t){ 0 });
}

void table_print(FILE *out, const json_t *rows, const struct column *columns, size_t n)
{
	size_t width[COLUMNS_MAX] = { 0 }, i;
	char text[CELL_MAX];
	const json_t *row;

	assert(n <= COLUMNS_MAX);
	for (size_t k = 0; k < n; k++)
		width[k] = strlen(columns[k].title);
	json_array_foreach(rows, i, row) for (size_t k = 0; k < n; k++)
	{
		cell(text, row, &columns[k]);
		if (strlen(text) > width[k])
			width[k] = strlen(text);
	}
	print_line(out, NULL, columns, n, width);
	json_array_foreach(rows, i, row) print_line(out, row, columns, n, width);
}

int cli_show_rows(const struct cli *c, const json_t *rows, const struct column *columns, size_t n)
{
	if (c->json)
		return cli_print_json(rows);
	table_print(stdout, rows, columns, n);
	return CLI_FINE;
}

int cli_show_one(const struct cli *c, const json_t *row, const struct column *columns, size_t n)
{
	AUTO(json_decrefp) json_t *rows = json_pack("[O]", row);

	return c->json ? cli_print_json(row) : cli_show_rows(c, rows, columns, n);
}

int cli_show(const struct cli *c, const struct cli_request *rq, const struct column *columns,
	     size_t n)
{
	AUTO(json_decrefp) json_t *rows = NULL;
	struct err err = { 0 };

	if (cli_list(c, rq, &rows, &err) < 0)
		return cli_fail(c, &err);
	return cli_show_rows(c, rows, columns, n);
}
