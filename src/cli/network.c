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

/* What its name led to, where addresses decide. */
static const struct column address_columns[] = { { "ADDRESS", "address" },
						 { "ALLOWED", "allowed" },
						 { "WHY", "why" } };

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

static int say_told(const struct cli *c, const json_t *told)
{
	const json_t *answer = json_object_get(told, "answer");
	const json_t *addresses = json_object_get(answer, "addresses");
	int status;

	if (!answer) {
		say_rules(told);
		return CLI_FINE;
	}
	status = cli_show_one(c, answer, answer_columns, COUNT(answer_columns));
	if (status != CLI_FINE || json_array_size(addresses) == 0)
		return status;
	putchar('\n');
	return cli_show_rows(c, addresses, address_columns, COUNT(address_columns));
}

int explain_run(struct cli *c)
{
	struct cli_request rq = { .path = "/admin/sandboxes/",
				  .id = c->words[0],
				  .suffix = "/explain" };

	if (c->n_words == 2) {
		rq.suffix = "/explain?to=";
		rq.value = c->words[1];
	}
	return cli_answer(c, &rq, say_told);
}

int egress_run(struct cli *c)
{
	const struct cli_request rq = { .path = "/admin/sandboxes/",
					.id = c->words[1],
					.suffix = "/egress" };

	if (!cli_says(c, "log", 1, 1))
		return cli_usage(c);
	return cli_show(c, &rq, log_columns, COUNT(log_columns));
}
