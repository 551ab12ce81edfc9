/* commands.h - the table of commands and options, of commands.def, and what it is used for. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "cli/cli.h"

enum command_kind { COMMAND_GROUP, COMMAND_NAME, COMMAND_FORM, COMMAND_EXAMPLE };

struct command_row {
	enum command_kind kind;
	const char *text; /* a title, a name, the path of a form, the line of an example */
	const char *help;
	const char *more; /* of a name: paragraphs; of a form: what stands behind its path */
	int (*run)(struct cli *c);
	int min, max; /* words behind the path */
};

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_NUMBER, OPTION_ENV };

struct option_row {
	const char *name;
	enum option_kind kind;
	size_t at;         /* in struct cli: a bool, a text, or a number */
	const char *value; /* what it is called; "": it takes none */
	const char *of;    /* paths or names, with a comma between; "": every command */
	const char *help;
};

struct told_row {
	const char *name, *help;
};

extern const struct command_row command_rows[];
extern const struct option_row option_rows[];
extern const struct told_row variable_rows[], status_rows[];
extern const size_t n_command_rows, n_option_rows, n_variable_rows, n_status_rows;

/* Is the option for this form? */
bool option_is_of(const struct option_row *o, const char *path);
/* Is `path` one of this command? "keys limits" is of "keys". */
bool command_has(const char *name, const char *path);

/* --- what was typed ------------------------------------------------------------------------- */

/* Reads argv into *c. -1: go on. Otherwise the exit status. */
int options_take(struct cli *c, int argc, char **argv);
/* The form that was typed runs; what makes no sense is said. The exit status. */
int commands_run(struct cli *c);

/* --- what is said --------------------------------------------------------------------------- */

void help_all(FILE *out); /* one line for each command */
/* One command whole. False: there is none of this name. */
bool help_one(FILE *out, const char *name);
/* How a command is written: the form that `word` behind its name chooses, or all of them. */
void help_usage(FILE *out, const char *name, const char *word);
int help_run(struct cli *c);
