/* commands.c - the rows of commands.def, and which of them was typed. */
#include "cli/commands.h"

#include <limits.h>

#include "base/bytes.h"
#include "cli/admin.h"
#include "cli/browser.h"
#include "cli/copy.h"
#include "cli/doctor.h"
#include "cli/logs.h"
#include "cli/lost.h"
#include "cli/network.h"
#include "cli/run.h"
#include "cli/sandboxes.h"
#include "cli/say.h"
#include "cli/selftest.h"
#include "cli/setup.h"
#include "cli/shell.h"
#include "cli/snapshots.h"
#include "cli/support.h"
#include "cli/templates.h"
#include "cli/tls.h"
#include "cli/usage.h"

#define MANY INT_MAX

#define GROUP(title)                           { COMMAND_GROUP, title },
#define COMMAND(name, summary, more)           { COMMAND_NAME, name, summary, more },
#define FORM(run, path, words, min, max, help) { COMMAND_FORM, path, help, words, run, min, max },
#define EXAMPLE(line, help)                    { COMMAND_EXAMPLE, line, help },
#define OPTION(...)
#define VARIABLE(...)
#define STATUS(...)
const struct command_row command_rows[] = {
#include "cli/commands.def"
};
#undef GROUP
#undef COMMAND
#undef FORM
#undef EXAMPLE
#define GROUP(...)
#define COMMAND(...)
#define FORM(...)
#define EXAMPLE(...)

#undef OPTION
#define OPTION(name, kind, member, value, of, help) \
	{ name, OPTION_##kind, offsetof(struct cli, member), value, of, help },
const struct option_row option_rows[] = {
#include "cli/commands.def"
};
#undef OPTION
#define OPTION(...)

#undef VARIABLE
#define VARIABLE(name, help) { name, help },
const struct told_row variable_rows[] = {
#include "cli/commands.def"
};
#undef VARIABLE
#define VARIABLE(...)

#undef STATUS
#define STATUS(n, help) { #n, help },
const struct told_row status_rows[] = {
#include "cli/commands.def"
};

const size_t n_command_rows = COUNT(command_rows), n_option_rows = COUNT(option_rows);
const size_t n_variable_rows = COUNT(variable_rows), n_status_rows = COUNT(status_rows);
static_assert(COUNT(option_rows) <= CLI_OPTIONS_MAX, "struct cli remembers which were given");

bool command_has(const char *name, const char *path)
{
	size_t len = strlen(name);

	return strncmp(name, path, len) == 0 && (path[len] == '\0' || path[len] == ' ');
}

bool option_is_of(const struct option_row *o, const char *path)
{
	struct bytes rest = bytes_str(o->of), one;
	char name[64];

	if (rest.len == 0)
		return true;
	while (bytes_next(&rest, ',', &one))
		if (bytes_to_str(one, name, sizeof(name)) && command_has(name, path))
			return true;
	return false;
}

/* How many words of what was typed are its path, "keys limits": 2; 0: it is another. */
static int path_words(const struct cli *c, const char *path)
{
	struct bytes rest = bytes_str(path), one;
	int n = 0;

	while (bytes_next(&rest, ' ', &one)) {
		const char *typed = n == 0 ? c->command : n <= c->n_words ? c->words[n - 1] : "";

		if (!bytes_eq(one, bytes_str(typed)))
			return 0;
		n++;
	}
	return n;
}

/* The one of most words. */
static const struct command_row *find(const struct cli *c, int *ret_words)
{
	const struct command_row *best = NULL;

	*ret_words = 0;
	for (size_t i = 0; i < n_command_rows; i++) {
		int n = command_rows[i].kind == COMMAND_FORM ? path_words(c, command_rows[i].text)
							     : 0;

		if (n > *ret_words) {
			best = &command_rows[i];
			*ret_words = n;
		}
	}
	return best;
}

/* An option of another command is a mistake, not something to pass over. */
static bool options_fit(const struct cli *c, const char *path)
{
	for (size_t i = 0; i < n_option_rows; i++) {
		bool fits = !c->given[i];

		for (size_t k = i; k < n_option_rows && !fits; k++)
			fits = strcmp(option_rows[k].name, option_rows[i].name) == 0 &&
			       option_is_of(&option_rows[k], path);
		if (!fits) {
			fprintf(stderr, "hotcell: --%s is no option of `%s`\n", option_rows[i].name,
				path);
			return false;
		}
	}
	return true;
}

static bool is_command(const char *name)
{
	for (size_t i = 0; i < n_command_rows; i++)
		if (command_rows[i].kind == COMMAND_NAME && !strcmp(command_rows[i].text, name))
			return true;
	return false;
}

int commands_run(struct cli *c)
{
	const struct command_row *form;
	int words, behind;

	if (!is_command(c->command)) {
		fprintf(stderr, "hotcell: there is no command `%s`\n  fix: hotcell --help\n",
			c->command);
		return CLI_USAGE;
	}
	form = find(c, &words);
	behind = c->n_words + 1 - words;
	if (!form || behind < form->min || behind > form->max || !options_fit(c, form->text))
		return cli_usage(c);
	return form->run(c);
}
