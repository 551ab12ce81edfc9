/* help.c - what --help and wrong usage print: all of it out of the table of commands. */
#include <string.h>

#include "base/bytes.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/say.h"

enum {
	WIDTH = 100,
	NAME_WIDTH = 13, /* of a command, in the overview */
	FORM_WIDTH = 36,
	LEFT_WIDTH = 26,   /* of an option, a variable */
	OPTIONS_SHOWN = 7, /* in one line of usage; more: [OPTIONS] */
};

/* `left`, then `text` in lines that begin `indent` columns from the edge. */
static void hang(FILE *out, const char *left, size_t indent, const char *text)
{
	struct bytes rest = bytes_str(text), word;
	size_t at = strlen(left);

	if (at > indent)
		fprintf(out, "%s\n%*s", left, (int)indent, "");
	else
		fprintf(out, "%-*s", (int)indent, left);
	at = indent;
	while (bytes_next(&rest, ' ', &word)) {
		if (at > indent && at + 1 + word.len > WIDTH) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			fprintf(out, " ");
			at++;
		}
		fprintf(out, "%.*s", (int)word.len, (const char *)word.ptr);
		at += word.len;
	}
	fprintf(out, "\n");
}

static bool is_form_of(const struct command_row *r, const char *name)
{
	return r->kind == COMMAND_FORM && command_has(name, r->text);
}

/* --- usage ---------------------------------------------------------------------------------- */

static void add_options(char *at, size_t size, const char *path)
{
	size_t n = 0, used = 0;

	for (size_t i = 0; i < n_option_rows; i++)
		n += *option_rows[i].of && option_is_of(&option_rows[i], path);
	if (n > OPTIONS_SHOWN) {
		snprintf(at, size, " [OPTIONS]");
		return;
	}
	for (size_t i = 0; i < n_option_rows && used < size; i++) {
		const struct option_row *o = &option_rows[i];

		if (*o->of && option_is_of(o, path))
			used += (size_t)snprintf(at + used, size - used, " [--%s%s%s]", o->name,
						 *o->value ? " " : "", o->value);
	}
}

static void say_form(FILE *out, const char *lead, const struct command_row *form)
{
	char options[512] = "", line[1024];

	add_options(options, sizeof(options), form->text);
	snprintf(line, sizeof(line), "%s%s%s%s", form->text, *form->more ? " " : "", form->more,
		 options);
	hang(out, lead, strlen(lead), line);
}

void help_usage(FILE *out, const char *name, const char *word)
{
	const char *lead = "usage: hotcell ";
	char chosen[128];
	bool one = false;

	snprintf(chosen, sizeof(chosen), "%s %s", name, word);
	for (size_t i = 0; i < n_command_rows && *word; i++)
		one = one || (command_rows[i].kind == COMMAND_FORM &&
			      strcmp(command_rows[i].text, chosen) == 0);
	for (size_t i = 0; i < n_command_rows; i++) {
		const struct command_row *r = &command_rows[i];

		if (!is_form_of(r, name) || (one && strcmp(r->text, chosen) != 0))
			continue;
		say_form(out, lead, r);
		lead = "       hotcell ";
	}
}

/* --- all commands --------------------------------------------------------------------------- */

/* "list them (add, rm)" of the words that its forms have behind its name. */
static void say_name(FILE *out, const struct command_row *name)
{
	AUTO(buf_done) struct buf text = BUF_MAX(1024);
	const char *between = " (";
	char left[64];
	struct err err;
	int rc = buf_printf(&text, &err, "%s", name->help);

	for (size_t i = 0; i < n_command_rows && rc == 0; i++) {
		const struct command_row *r = &command_rows[i];

		if (!is_form_of(r, name->text) || !r->text[strlen(name->text)])
			continue;
		rc = buf_printf(&text, &err, "%s%s", between, r->text + strlen(name->text) + 1);
		between = ", ";
	}
	if (rc == 0 && *between == ',')
		rc = buf_printf(&text, &err, ")");
	if (rc == 0)
		rc = buf_add(&text, (struct bytes){ (const uint8_t *)"", 1 }, &err);
	snprintf(left, sizeof(left), "  %s", name->text);
	hang(out, left, 2 + NAME_WIDTH, rc == 0 ? (const char *)text.ptr : name->help);
}

static bool is_of_command(const struct option_row *o, const char *name)
{
	for (size_t i = 0; i < n_command_rows; i++)
		if (is_form_of(&command_rows[i], name) && option_is_of(o, command_rows[i].text))
			return true;
	return false;
}

static void say_options(FILE *out, const char *title, const char *command)
{
	for (size_t i = 0; i < n_option_rows; i++) {
		const struct option_row *o = &option_rows[i];
		char left[64];

		if (command ? !*o->of || !is_of_command(o, command) : *o->of != '\0')
			continue;
		if (title)
			fprintf(out, "\n%s\n", title);
		title = NULL;
		snprintf(left, sizeof(left), "  --%s%s%s", o->name, *o->value ? " " : "", o->value);
		hang(out, left, 2 + LEFT_WIDTH, o->help);
	}
}

void help_all(FILE *out)
{
	fprintf(out, "usage: hotcell [OPTIONS] COMMAND\n");
	for (size_t i = 0; i < n_command_rows; i++) {
		if (command_rows[i].kind == COMMAND_GROUP)
			fprintf(out, "\n%s\n", command_rows[i].text);
		else if (command_rows[i].kind == COMMAND_NAME)
			say_name(out, &command_rows[i]);
	}
	say_options(out, "Options of every command", NULL);
	fprintf(out, "\nmore: hotcell COMMAND --help, man hotcell\n");
}

/* --- one ------------------------------------------------------------------------------------ */

static void say_paragraphs(FILE *out, const char *text)
{
	struct bytes rest = bytes_str(text), one;

	while (bytes_next(&rest, '\n', &one)) {
		char line[2048];

		fprintf(out, "\n");
		if (bytes_to_str(one, line, sizeof(line)))
			hang(out, "", 0, line);
	}
}

static void say_forms(FILE *out, const char *name)
{
	fprintf(out, "\n");
	for (size_t i = 0; i < n_command_rows; i++) {
		const struct command_row *r = &command_rows[i];
		char left[256];

		if (!is_form_of(r, name))
			continue;
		snprintf(left, sizeof(left), "  %s%s%s", r->text, *r->more ? " " : "", r->more);
		hang(out, left, 2 + FORM_WIDTH, r->help);
	}
}

/* Those between its row and the next command's. */
static void say_examples(FILE *out, const struct command_row *name)
{
	const char *title = "\nExamples\n";

	for (const struct command_row *r = name + 1; r < command_rows + n_command_rows; r++) {
		if (r->kind == COMMAND_NAME || r->kind == COMMAND_GROUP)
			return;
		if (r->kind != COMMAND_EXAMPLE)
			continue;
		fprintf(out, "%s  %s\n      %s\n", title, r->text, r->help);
		title = "";
	}
}

/* What asks as clients do has these; the others have a socket. */
static void say_variables(FILE *out, const char *more)
{
	if (!strstr(more, "E2B_"))
		return;
	fprintf(out, "\nVariables\n");
	for (size_t i = 0; i < n_variable_rows; i++) {
		char left[64];

		snprintf(left, sizeof(left), "  %s", variable_rows[i].name);
		if (strncmp(variable_rows[i].name, "HOTCELL_", strlen("HOTCELL_")) != 0)
			hang(out, left, 2 + LEFT_WIDTH, variable_rows[i].help);
	}
}

static void say_command(FILE *out, const struct command_row *name)
{
	help_usage(out, name->text, "");
	say_forms(out, name->text);
	say_paragraphs(out, name->more);
	say_options(out, "Options", name->text);
	say_options(out, "Options of every command", NULL);
	say_variables(out, name->more);
	say_examples(out, name);
}

bool help_one(FILE *out, const char *name)
{
	for (size_t i = 0; i < n_command_rows; i++)
		if (command_rows[i].kind == COMMAND_NAME &&
		    strcmp(command_rows[i].text, name) == 0) {
			say_command(out, &command_rows[i]);
			return true;
		}
	return false;
}

int help_run(struct cli *c)
{
	if (c->n_words == 0)
		help_all(stdout);
	else if (!help_one(stdout, c->words[0]))
		return cli_usage(c);
	return CLI_FINE;
}
