/* lost.c - `hotcell lost`: what is on the disk and in no row. */
#include "cli/lost.h"

#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/table.h"

static const struct column columns[] = {
	{ "ID", "id" },         { "KIND", "kind" },   { "SINCE", "since" },
	{ "UNTIL", "until" },   { "BYTES", "bytes" }, { "RESTORABLE", "described" },
	{ "FOLDER", "folder" },
};

static int restore_one(const struct cli *c, const char *id)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	char target[TARGET_MAX];
	struct err err = { 0 };

	if (cli_target(target, "/admin/lost/", id, "/restore", "", &err) < 0 ||
	    cli_ask(c, "POST", target, NULL, &answer, &err) < 0)
		return cli_fail(c, &err);
	return CLI_FINE;
}

static int drop_one(const struct cli *c, const char *id)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	char target[TARGET_MAX];
	struct err err = { 0 };

	if (cli_target(target, "/admin/lost/", id, "", "", &err) < 0 ||
	    cli_ask(c, "DELETE", target, NULL, &answer, &err) < 0)
		return cli_fail(c, &err);
	return CLI_FINE;
}

int lost_run(struct cli *c, int argc, char **argv)
{
	if (argc == 1 || (argc == 2 && !strcmp(argv[1], "list")))
		return cli_show(c, "/admin/lost", columns, COUNT(columns));
	if (argc >= 3 && !strcmp(argv[1], "restore"))
		return cli_each(c, argc - 2, argv + 2, "restored", restore_one);
	if (argc >= 3 && !strcmp(argv[1], "drop"))
		return cli_each(c, argc - 2, argv + 2, "dropped", drop_one);
	return cli_usage(c, "lost [list | restore ID|FOLDER... | drop ID|FOLDER...]");
}
