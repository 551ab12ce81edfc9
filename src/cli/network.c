/* network.c - the commands about networks: explain, egress log. */
#include "cli/network.h"

#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/table.h"

static const struct column log_columns[] = { { "AT", "at" },           { "KIND", "kind" },
					     { "VERDICT", "verdict" }, { "NAME", "name" },
					     { "ADDRESS", "address" }, { "PORT", "port" },
					     { "WHY", "why" } };
/* What holds, the operator's first: a sandbox narrows it. */
static const struct column rule_columns[] = { { "WHOSE", "whose" }, { "RULE", "rule" } };
static const struct column answer_columns[] = {
	{ "TO", "question" }, { "ALLOWED", "allowed" }, { "TLS OPENED", "opened" }, { "WHY", "why" }
};

/* ["db.hotcell.internal:5432"] of what egress says about services. */
static json_t *service_names(const json_t *services)
{
	json_t *names = json_array();
	const json_t *one;
	size_t i;

	json_array_foreach(services, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name"));

		json_array_append_new(
			names, json_sprintf("%s:%d", name ? name : "?",
					    (int)json_integer_value(json_object_get(one, "port"))));
	}
	return names;
}

/* A row for each; one without any is shown, too. */
static void add_rules(json_t *rows, const char *whose, const json_t *rules)
{
	json_t *one;
	size_t i;

	json_array_foreach(rules, i, one)
		json_array_append_new(rows, json_pack("{s:s, s:O}", "whose", whose, "rule", one));
	if (json_array_size(rules) == 0)
		json_array_append_new(rows, json_pack("{s:s}", "whose", whose));
}

static void say_rules(const json_t *told)
{
	AUTO(json_decrefp) json_t *rows = json_array(), *services = NULL, *mode = NULL;
	const json_t *ground = json_object_get(told, "operator");

	services = service_names(json_object_get(told, "services"));
	mode = json_pack("[O*]", json_object_get(ground, "mode"));
	add_rules(rows, "operator: mode", mode);
	add_rules(rows, "operator: allow", json_object_get(ground, "allow"));
	add_rules(rows, "template: packages", json_object_get(told, "packages"));
	add_rules(rows, "sandbox: allowOut", json_object_get(told, "allowOut"));
	add_rules(rows, "sandbox: denyOut", json_object_get(told, "denyOut"));
	add_rules(rows, "sandbox: rules", json_object_get(told, "opened"));
	add_rules(rows, "key: services", services);
	table_print(stdout, rows, rule_columns, COUNT(rule_columns));
}

static int say_answer(const json_t *answer)
{
	AUTO(json_decrefp) json_t *rows = json_pack("[O]", answer);

	if (!rows)
		return CLI_FAILED;
	table_print(stdout, rows, answer_columns, COUNT(answer_columns));
	return CLI_FINE;
}

int explain_run(struct cli *c, int argc, char **argv)
{
	AUTO(json_decrefp) json_t *told = NULL;
	const json_t *answer;
	char target[TARGET_MAX];
	struct err err = { 0 };

	if (argc < 2 || argc > 3)
		return cli_usage(c, "explain SANDBOX [HOST[:PORT]]");
	if (cli_target(target, "/admin/sandboxes/", argv[1],
		       argc == 3 ? "/explain?to=" : "/explain", argc == 3 ? argv[2] : "",
		       &err) < 0 ||
	    cli_ask(c, "GET", target, NULL, &told, &err) < 0)
		return cli_fail(c, &err);
	if (c->json)
		return cli_print_json(told);
	answer = json_object_get(told, "answer");
	if (answer)
		return say_answer(answer);
	say_rules(told);
	return CLI_FINE;
}

int egress_run(struct cli *c, int argc, char **argv)
{
	char target[TARGET_MAX];
	struct err err = { 0 };

	if (argc != 3 || strcmp(argv[1], "log") != 0)
		return cli_usage(c, "egress log SANDBOX");
	if (cli_target(target, "/admin/sandboxes/", argv[2], "/egress", "", &err) < 0)
		return cli_fail(c, &err);
	return cli_show(c, target, log_columns, COUNT(log_columns));
}
