/* browser.c - see browser.h. The gateway makes the addresses; here one is chosen. */
#include "cli/browser.h"

#include <stdio.h>

#include "cli/run.h"
#include "cli/run_session.h"
#include "cli/say.h"
#include "cli/table.h"

/* The screen, where there is one: there a person can take over. */
static const char *const kinds[] = { "novnc", "devtools" };

static const json_t *choose(const json_t *addresses)
{
	json_t *one;
	size_t at;

	for (size_t i = 0; i < COUNT(kinds); i++)
		json_array_foreach(addresses, at, one)
		{
			const char *kind = json_string_value(json_object_get(one, "kind"));

			if (kind && strcmp(kind, kinds[i]) == 0)
				return one;
		}
	return json_array_get(addresses, 0);
}

static int say_address(const struct cli *c, const json_t *told)
{
	const json_t *one = choose(json_object_get(told, "addresses"));
	struct err err;

	if (c->json)
		return cli_print_json(told);
	if (!one) {
		err_set(&err, ERR_NOT_FOUND, 0, "sandbox %s has no guarded port", c->words[0]);
		return cli_fail_fix(c, &err,
				    "make one of a template with a browser: docs/browser.md");
	}
	table_line(stdout, one, "url");
	fprintf(stderr, "hotcell: open it within five minutes; whoever has it may enter\n");
	return cli_written(CLI_FINE);
}

static int ask(struct run_session *s, json_t **ret, struct err *err)
{
	char target[RUN_ID_MAX + 32];
	const char *id = s->c->words[0];

	if (strlen(id) > RUN_ID_MAX ||
	    strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(id))
		return err_set(err, ERR_INVALID, 0, "`%.64s` is no id of a sandbox", id);
	snprintf(target, sizeof(target), "/sandboxes/%s/addresses", id);
	if (run_session_ask(s, "POST", target, NULL, err) < 0)
		return -1;
	if (json_decode(buf_view(&s->answer), RUN_ANSWER_MAX, ANSWER_DEPTH, ret, err) < 0)
		return err_wrap(err, "gateway: its answer");
	return 0;
}

int browser_run(struct cli *c)
{
	AUTO(json_decrefp) json_t *told = NULL;
	struct run_session s;
	struct err err = { 0 };
	int status;

	c->sandbox = c->words[0]; /* what a failure is about */
	if (run_session_open(&s, c, &err) < 0 || ask(&s, &told, &err) < 0)
		status = s.signo ? 128 + s.signo : cli_fail_fix(c, &err, run_fix(&s, &err));
	else
		status = say_address(c, told);
	run_session_close(&s);
	return status;
}
