/* options.c - what was typed: options by the table, and words. */
#include <getopt.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/commands.h"

enum {
	OPTION_FIRST = 256, /* behind every character that getopt returns */
	WORD = 1,           /* what getopt returns for what is no option */
};

static bool number(const char *text, uint64_t *ret)
{
	if (bytes_to_u64(bytes_str(text), ret) && *ret <= UINT32_MAX)
		return true;
	fprintf(stderr, "hotcell: `%s` is not a number\n", text);
	return false;
}

static bool add_env(struct cli *c, const char *given)
{
	const char *equals = strchr(given, '=');

	if (equals && equals > given && c->n_envs < CLI_ENVS_MAX) {
		c->envs[c->n_envs++] = given;
		return true;
	}
	fprintf(stderr, "hotcell: `%s` is not NAME=VALUE, or one too many\n", given);
	return false;
}

static bool take_option(struct cli *c, const struct option_row *o, const char *given)
{
	char *at = (char *)c + o->at;
	uint64_t n;

	switch (o->kind) {
	case OPTION_FLAG:
		memcpy(at, &(bool){ true }, sizeof(bool));
		return true;
	case OPTION_TEXT:
		memcpy(at, &given, sizeof(given));
		return true;
	case OPTION_NUMBER:
		if (!number(given, &n))
			return false;
		memcpy(at, &n, sizeof(n));
		return true;
	case OPTION_ENV:
		return add_env(c, given);
	}
	abort();
}

static bool is_first(size_t row) /* of its name */
{
	for (size_t i = 0; i < row; i++)
		if (strcmp(option_rows[i].name, option_rows[row].name) == 0)
			return false;
	return true;
}

/* The few that have a letter, too. */
static const char letters[] = "-fi"; /* "-": words come in their places */

static size_t row_of(const char *name)
{
	for (size_t i = 0; i < n_option_rows; i++)
		if (strcmp(option_rows[i].name, name) == 0)
			return i;
	abort();
}

static void make_known(struct option known[static CLI_OPTIONS_MAX + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < n_option_rows; i++)
		if (is_first(i))
			known[n++] = (struct option){ option_rows[i].name,
						      option_rows[i].kind == OPTION_FLAG
							      ? no_argument
							      : required_argument,
						      NULL, OPTION_FIRST + (int)i };
}

int options_take(struct cli *c, int argc, char **argv)
{
	struct option known[CLI_OPTIONS_MAX + 1] = { 0 };
	int i, n = 1; /* behind the program's name */

	make_known(known);
	/* Words are gathered at the front of argv: none is written before it was read. */
	while ((i = getopt_long(argc, argv, letters, known, NULL)) >= 0) {
		if (i == WORD) {
			argv[n++] = optarg;
			continue;
		}
		if (i == 'f')
			i = OPTION_FIRST + (int)row_of("follow");
		if (i == 'i')
			i = OPTION_FIRST + (int)row_of("stdin");
		if (i < OPTION_FIRST) {
			fprintf(stderr, "  more: hotcell --help\n");
			return CLI_USAGE;
		}
		c->given[i - OPTION_FIRST] = true;
		if (!take_option(c, &option_rows[i - OPTION_FIRST], optarg))
			return CLI_USAGE;
	}
	c->n_behind = argc - optind;
	while (optind < argc)
		argv[n++] = argv[optind++];
	c->command = n > 1 ? argv[1] : NULL;
	c->words = argv + 2;
	c->n_words = n > 1 ? n - 2 : 0;
	return -1;
}
