/* logs.c - what happened to a sandbox, and, if that is wanted, what happens to it from now on. */
#include "cli/logs.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/table.h"
#include "wire/rfc3339.h"

enum { LOGS_POLL_MS = 1000, NSEC_PER_MS = 1000000 };

struct reader {
	const struct cli *c;
	uint64_t last_ns; /* of what was printed; 0: nothing was */
};

/* "2026-01-02T03:04:05Z info  Sandbox paused"; with --json the entry on one line. */
static void say_entry(const struct cli *c, const json_t *entry)
{
	static const struct column columns[] = { { "", "timestamp" }, { "", "level" } };
	AUTO(auto_free) char *text = NULL;

	if (!c->json) {
		table_cells(stdout, entry, columns, COUNT(columns));
		table_line(stdout, entry, "message");
		return;
	}
	text = json_dumps(entry, JSON_COMPACT | JSON_ENSURE_ASCII);
	printf("%s\n", text ? text : "{}");
}

/* A request names a millisecond, and all of it comes: what was printed of it is passed over. */
static void say_new(struct reader *r, const json_t *entries)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry)
	{
		const json_t *time = json_object_get(entry, "timestamp");
		struct err ignored;
		uint64_t ns = 0;

		if (!json_is_string(time) || rfc3339_parse(json_bytes(time), &ns, &ignored) < 0 ||
		    ns <= r->last_ns)
			continue;
		say_entry(r->c, entry);
		r->last_ns = ns;
	}
	fflush(stdout);
}

static int read_more(struct reader *r, struct err *err)
{
	char cursor[32];
	const struct cli_request rq = { .path = "/admin/sandboxes/",
					.id = r->c->words[0],
					.suffix = "/logs?direction=forward&cursor=",
					.value = cursor };
	AUTO(json_decrefp) json_t *answer = NULL;

	snprintf(cursor, sizeof(cursor), "%" PRIu64, r->last_ns / NSEC_PER_MS);
	if (cli_ask(r->c, &rq, &answer, err) < 0)
		return -1;
	say_new(r, json_object_get(answer, "logs"));
	return 0;
}

/* False: who reads it is gone. */
static bool wait_a_while(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return poll(&out, 1, LOGS_POLL_MS) <= 0 || !(out.revents & (POLLERR | POLLHUP));
}

/* One that is followed and ends is told of, and nothing failed. */
int logs_run(struct cli *c)
{
	struct reader r = { .c = c };
	struct err err = { 0 };
	bool begun = false;

	do {
		if (begun && !wait_a_while())
			return CLI_CLOSED;
		if (read_more(&r, &err) < 0) {
			if (!begun || err.code != ERR_NOT_FOUND)
				return cli_fail(c, &err);
			fprintf(stderr, "hotcell: the sandbox is no more: hotcell why %s\n",
				c->words[0]);
			return CLI_FINE;
		}
		begun = true;
	} while (c->follow && !ferror(stdout));
	return CLI_FINE;
}
