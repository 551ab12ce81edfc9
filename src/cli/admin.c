/* admin.c - the commands that ask the gateway: teams, keys, templates, status, confirm-lost. */
#include "cli/admin.h"

#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/table.h"

#define LIMIT_COLUMNS                                                          \
	{ "SANDBOXES", "limits.sandboxes" }, { "CPUS", "limits.vcpus" },       \
		{ "MIB", "limits.memoryMB" }, { "DISK MIB", "limits.diskMB" }, \
		{ "PAUSED", "limits.paused" }

static const struct column team_columns[] = {
	{ "TEAM", "teamID" }, { "NAME", "name" }, { "CREATED", "createdAt" }, LIMIT_COLUMNS
};
static const struct column key_columns[] = { { "KEY", "id" },
					     { "TEAM", "teamID" },
					     { "NAME", "name" },
					     { "BEGINS", "mask.maskedValuePrefix" },
					     { "ENDS", "mask.maskedValueSuffix" },
					     { "CREATED", "createdAt" },
					     { "LAST USED", "lastUsed" },
					     { "MADE BY", "maker" },
					     LIMIT_COLUMNS,
					     { "SERVICES", "services" } };
static const struct column template_columns[] = {
	{ "TEMPLATE", "templateID" }, { "ALIAS", "alias" },       { "CPUS", "cpuCount" },
	{ "MIB", "memoryMB" },        { "STATE", "buildStatus" }, { "MESSAGE", "message" }
};

/* DELETE prefix + id. Says so with one line for people. */
static int drop(const struct cli *c, const char *prefix, const char *id, const char *verb)
{
	AUTO(json_decrefp) json_t *nothing = NULL;
	char target[TARGET_MAX];
	struct err err = { 0 };

	if (cli_target(target, prefix, id, "", "", &err) < 0 ||
	    cli_ask(c, "DELETE", target, NULL, &nothing, &err) < 0) {
		err_wrap(&err, "%.64s", id);
		return cli_fail(c, &err);
	}
	if (!c->json)
		printf("%s %s\n", verb, id);
	return CLI_FINE;
}

/* With --json a command that returns nothing prints what it did, all the same. */
static int done_json(const struct cli *c, int status, const char *verb, int n, char **ids)
{
	AUTO(json_decrefp) json_t *list = NULL, *all = NULL;

	if (!c->json || status != CLI_FINE)
		return status;
	list = json_array();
	for (int i = 0; i < n; i++)
		if (!list || json_array_append_new(list, json_text(bytes_str(ids[i]))) < 0)
			return CLI_FAILED;
	all = json_pack("{s:O}", verb, list);
	return all ? cli_print_json(all) : CLI_FAILED;
}

static json_t *named(const char *name)
{
	return json_pack("{s:o}", "name", json_text(bytes_str(name)));
}

/* POST, and show one member of what was made: all a script wants. */
static int post(const struct cli *c, const char *target, const json_t *body, const char *member)
{
	AUTO(json_decrefp) json_t *made = NULL;
	struct bytes value;
	struct err err = { 0 };

	if (cli_ask(c, "POST", target, body, &made, &err) < 0)
		return cli_fail(c, &err);
	if (c->json)
		return cli_print_json(made);
	if (json_want_string(made, member, &value, &err) < 0)
		return cli_fail(c, &err);
	printf("%.*s\n", (int)value.len, (const char *)value.ptr);
	return CLI_FINE;
}

static int add(const struct cli *c, const char *target, const char *name, const char *member)
{
	AUTO(json_decrefp) json_t *body = named(name);

	return body ? post(c, target, body, member) : CLI_FAILED;
}

/* Keys are asked for team by team; each is told its team. */
static int keys_of(const struct cli *c, const char *team, json_t *all, struct err *err)
{
	AUTO(json_decrefp) json_t *keys = NULL;
	char target[TARGET_MAX];
	json_t *key;
	size_t i;

	if (cli_target(target, "/admin/teams/", team, "/keys", "", err) < 0 ||
	    cli_ask(c, "GET", target, NULL, &keys, err) < 0)
		return -1;
	json_array_foreach(
		keys, i, key) if (json_object_set_new(key, "teamID", json_string(team)) < 0 ||
				  json_array_append(all, key) <
					  0) return err_set(err, ERR_INTERNAL, 0, "out of memory");
	return 0;
}

static int all_keys(const struct cli *c, json_t *all, struct err *err)
{
	AUTO(json_decrefp) json_t *teams = NULL;
	const json_t *team;
	size_t i;

	if (cli_ask(c, "GET", "/admin/teams", NULL, &teams, err) < 0)
		return -1;
	json_array_foreach(teams, i, team)
	{
		struct bytes id;
		char name[TARGET_MAX];

		if (json_want_string(team, "teamID", &id, err) < 0)
			return -1;
		if (bytes_to_str(id, name, sizeof(name)) && keys_of(c, name, all, err) < 0)
			return -1;
	}
	return 0;
}

static int show_keys(const struct cli *c, const char *team)
{
	AUTO(json_decrefp) json_t *all = json_array();
	struct err err = { 0 };

	if ((team ? keys_of(c, team, all, &err) : all_keys(c, all, &err)) < 0)
		return cli_fail(c, &err);
	if (c->json)
		return cli_print_json(all);
	table_print(stdout, all, key_columns, COUNT(key_columns));
	return CLI_FINE;
}

static int said_once(const struct cli *c, int status)
{
	if (status == CLI_FINE && !c->json)
		fprintf(stderr, "This key is shown once and never again.\n");
	return status;
}

static int add_key(const struct cli *c, const char *team, const char *name)
{
	char target[TARGET_MAX];
	struct err err = { 0 };

	if (cli_target(target, "/admin/teams/", team, "/keys", "", &err) < 0)
		return cli_fail(c, &err);
	return said_once(c, add(c, target, name, "key"));
}

static int rotate_key(const struct cli *c, const char *key)
{
	char target[TARGET_MAX];
	struct err err = { 0 };

	if (cli_target(target, "/admin/keys/", key, "/rotate", "", &err) < 0)
		return cli_fail(c, &err);
	return said_once(c, post(c, target, NULL, "key"));
}

static const struct {
	const char *option, *member;
} limits[CLI_LIMITS] = {
	[LIMIT_SANDBOXES] = { "--sandboxes", "sandboxes" }, [LIMIT_VCPUS] = { "--vcpus", "vcpus" },
	[LIMIT_MEMORY] = { "--memory", "memoryMB" },        [LIMIT_DISK] = { "--disk", "diskMB" },
	[LIMIT_PAUSED] = { "--paused", "paused" },
};

/* Those that were given; NULL: one of them is no number. */
static json_t *limits_json(const struct cli *c)
{
	json_t *o = json_object();

	for (size_t i = 0; i < CLI_LIMITS; i++) {
		uint64_t n = 0;

		if (!c->limits[i])
			continue;
		if (!bytes_to_u64(bytes_str(c->limits[i]), &n) || n > UINT32_MAX ||
		    json_object_set_new(o, limits[i].member, json_integer((json_int_t)n)) < 0) {
			fprintf(stderr, "hotcell: %s `%s` is not a number\n", limits[i].option,
				c->limits[i]);
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

static int show_one(const struct cli *c, const json_t *one, const struct column *columns, size_t n)
{
	AUTO(json_decrefp) json_t *row = NULL;

	if (c->json)
		return cli_print_json(one);
	row = json_pack("[O]", one);
	table_print(stdout, row, columns, n);
	return CLI_FINE;
}

/* Of the key or team `id` below `prefix`; shows it as it is then. */
static int patch_limits(const struct cli *c, const char *prefix, const char *id,
			const struct column *columns, size_t n)
{
	AUTO(json_decrefp) json_t *body = limits_json(c), *answer = NULL;
	char target[TARGET_MAX];
	struct err err = { 0 };

	if (!body)
		return CLI_USAGE;
	if (cli_target(target, prefix, id, "/limits", "", &err) < 0 ||
	    cli_ask(c, "PATCH", target, body, &answer, &err) < 0)
		return cli_fail(c, &err);
	return show_one(c, answer, columns, n);
}

static const char teams_usage[] = "teams [add NAME | rm TEAM | limits TEAM ...]";

int teams_run(struct cli *c, int argc, char **argv)
{
	if (argc == 1)
		return cli_show(c, "/admin/teams", team_columns, COUNT(team_columns));
	if (argc == 3 && !strcmp(argv[1], "add"))
		return add(c, "/admin/teams", argv[2], "teamID");
	if (argc == 3 && !strcmp(argv[1], "rm"))
		return done_json(c, drop(c, "/admin/teams/", argv[2], "removed"), "removed", 1,
				 argv + 2);
	if (argc == 3 && !strcmp(argv[1], "limits"))
		return patch_limits(c, "/admin/teams/", argv[2], team_columns, COUNT(team_columns));
	return cli_usage(c, teams_usage);
}

/* {"services":[]} of what was typed; without a name and without --none they stay as they are. */
static json_t *services_json(const struct cli *c, int n, char **names)
{
	json_t *body = json_object(), *all;

	if (n == 0 && !c->none)
		return body;
	all = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(all, json_text(bytes_str(names[i])));
	json_object_set_new(body, "services", all);
	return body;
}

static int key_services(const struct cli *c, const char *key, int n, char **names)
{
	AUTO(json_decrefp) json_t *body = services_json(c, n, names), *answer = NULL;
	char target[TARGET_MAX];
	struct err err = { 0 };

	if (cli_target(target, "/admin/keys/", key, "/services", "", &err) < 0 ||
	    cli_ask(c, "PATCH", target, body, &answer, &err) < 0)
		return cli_fail(c, &err);
	return show_one(c, answer, key_columns, COUNT(key_columns));
}

static const char keys_usage[] =
	"keys [TEAM | add TEAM [NAME] | rm KEY | rotate KEY | limits KEY ... | services KEY ...]";

int keys_run(struct cli *c, int argc, char **argv)
{
	if (argc >= 3 && argc <= 4 && !strcmp(argv[1], "add"))
		return add_key(c, argv[2], argc == 4 ? argv[3] : "key");
	if (argc == 3 && !strcmp(argv[1], "rm"))
		return done_json(c, drop(c, "/admin/keys/", argv[2], "removed"), "removed", 1,
				 argv + 2);
	if (argc == 3 && !strcmp(argv[1], "rotate"))
		return rotate_key(c, argv[2]);
	if (argc == 3 && !strcmp(argv[1], "limits"))
		return patch_limits(c, "/admin/keys/", argv[2], key_columns, COUNT(key_columns));
	if (argc >= 3 && !strcmp(argv[1], "services") && (argc == 3 || !c->none))
		return key_services(c, argv[2], argc - 3, argv + 3);
	if (argc <= 2)
		return show_keys(c, argc == 2 ? argv[1] : NULL);
	return cli_usage(c, keys_usage);
}

int templates_run(struct cli *c, int argc, char **argv)
{
	(void)argv;
	if (argc != 1)
		return cli_usage(c, "templates");
	return cli_show(c, "/admin/templates", template_columns, COUNT(template_columns));
}

static void print_members(const json_t *object, int indent)
{
	json_t *v;
	const char *name;

	json_object_foreach((json_t *)(uintptr_t)object, name, v)
	{
		AUTO(auto_free) char *text = NULL;

		if (json_is_object(v)) {
			printf("%*s%s\n", indent, "", name);
			print_members(v, indent + 2);
			continue;
		}
		text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
		printf("%*s%-24s %s\n", indent, "", name, text ? text : "?");
	}
}

int status_run(struct cli *c, int argc, char **argv)
{
	AUTO(json_decrefp) json_t *status = NULL;
	struct err err = { 0 };

	(void)argv;
	if (argc != 1)
		return cli_usage(c, "status");
	if (cli_ask(c, "GET", "/admin/status", NULL, &status, &err) < 0)
		return cli_fail(c, &err);
	if (c->json)
		return cli_print_json(status);
	print_members(status, 0);
	return CLI_FINE;
}

int confirm_lost_run(struct cli *c, int argc, char **argv)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	struct err err = { 0 };

	(void)argv;
	if (argc != 1)
		return cli_usage(c, "confirm-lost");
	if (cli_ask(c, "POST", "/admin/confirm-lost", NULL, &answer, &err) < 0)
		return cli_fail(c, &err);
	if (c->json)
		return cli_print_json(answer);
	printf("%lld sandboxes are ended: their VMs are lost\n",
	       (long long)json_integer_value(json_object_get(answer, "sandboxes")));
	return CLI_FINE;
}
