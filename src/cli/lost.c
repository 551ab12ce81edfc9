/* lost.c - `hotcell lost`: what is on the disk and in no row. */
#include "cli/lost.h"

#include <limits.h>

#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/table.h"

static const struct column columns[] = {
	{ "ID", "id" },
	{ "KIND", "kind" },
	{ "SINCE", "since" },
	{ "UNTIL", "until" },
	{ "SIZE", "bytes", .kind = COLUMN_BYTES },
	{ "RESTORABLE", "described" },
	{ "FOLDER", "folder" },
};

int lost_run(struct cli *c)
{
	if (c->n_words == 0 || cli_says(c, "list", 0, 0))
		return cli_show(c, &(struct cli_request){ .path = "/admin/lost" }, columns,
				COUNT(columns));
	if (cli_says(c, "restore", 1, INT_MAX))
		return cli_each(
			c, 1, "restored",
			(struct cli_request){ "POST", "/admin/lost/", .suffix = "/restore" });
	if (cli_says(c, "drop", 1, INT_MAX))
		return cli_each(c, 1, "dropped", (struct cli_request){ "DELETE", "/admin/lost/" });
	return cli_usage(c);
}
