/* commands_json.c - prints commands.def as JSON, for tools/manual; a program of the build, not
 * installed. */
#include <stdio.h>

#include "base/bytes.h"
#include "cli/cli.h"
#include "wire/json.h"

#define MANY 0 /* no bound */

#define GROUP(title)                                { "group", title, "", "" },
#define COMMAND(name, summary, more)                { "command", name, summary, more },
#define FORM(run, path, words, min, max, help)      { "form", path, help, words },
#define EXAMPLE(line, help)                         { "example", line, help, "" },
#define OPTION(name, kind, member, value, of, help) { "option", name, help, value, of },
#define VARIABLE(name, help)                        { "variable", name, help, "" },
#define STATUS(n, help)                             { "status", #n, help, "" },
static const struct {
	const char *kind, *text, *help, *more, *of;
} rows[] = {
#include "cli/commands.def"
};

int main(void)
{
	AUTO(json_decrefp) json_t *all = json_array();

	for (size_t i = 0; i < COUNT(rows); i++)
		json_array_append_new(all,
				      json_pack("{s:s, s:s, s:s, s:s, s:s*}", "kind", rows[i].kind,
						"text", rows[i].text, "help", rows[i].help, "more",
						rows[i].more, "of", rows[i].of));
	return json_dumpf(all, stdout, JSON_INDENT(1)) < 0;
}
