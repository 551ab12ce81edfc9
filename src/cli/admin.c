/* admin.c - the commands that ask the gateway: teams, keys, status, confirm-lost. */
#include "cli/admin.h"

#include <limits.h>

#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/teams.h"

#define LIMIT_COLUMNS                                                    \
	{ "SANDBOXES", "limits.sandboxes" }, { "CPUS", "limits.vcpus" }, \
		{ "MEMORY", "limits.memoryMB", .kind = COLUMN_MIB },     \
		{ "DISK", "limits.diskMB", .kind = COLUMN_MIB }, { "PAUSED", "limits.paused" }

static const struct column team_columns[] = {
	{ "TEAM", "teamID" }, { "NAME", "name" }, { "CREATED", "createdAt" }, LIMIT_COLUMNS
};
static const struct column key_columns[] = { { "KEY", "id" },
					     { "TEAM", "team", 14 },
					     { "NAME", "name" },
					     { "BEGINS", "mask.maskedValuePrefix" },
					     { "ENDS", "mask.maskedValueSuffix" },
					     { "CREATED", "createdAt" },
					     { "LAST USED", "lastUsed" },
					     { "MADE BY", "maker" },
					     LIMIT_COLUMNS,
					     { "SERVICES", "services" } };
static const struct column pool_columns[] = {
	{ "POOL OF", "name" },      { "ID", "templateID" },
	{ "TEAM", "team", 14 },     { "READY", "ready" },
	{ "STARTING", "starting" }, { "WANTED", "wanted" },
	{ "ALLOWED", "allowed" },   { "MEMORY", "memoryMB", .kind = COLUMN_MIB },
};

/* POST, and show one member of what was made: all a script wants. `taken`: what helps when
 * something has that name; NULL: nothing in particular. */
static int post(const struct cli *c, struct cli_request rq, const char *member, const char *taken)
{
	AUTO(json_decrefp) json_t *made = NULL;
	struct bytes value;
	struct err err = { 0 };

	rq.method = "POST";
	if (cli_ask(c, &rq, &made, &err) < 0)
		return err.code == ERR_EXISTS && taken ? cli_fail_fix(c, &err, taken)
						       : cli_fail(c, &err);
	if (c->json)
		return cli_print_json(made);
	if (json_want_string(made, member, &value, &err) < 0)
		return cli_fail(c, &err);
	printf("%.*s\n", (int)value.len, (const char *)value.ptr);
	return CLI_FINE;
}

static int add(const struct cli *c, struct cli_request rq, const char *name, const char *member)
{
	AUTO(json_decrefp) json_t *body = json_pack("{s:o}", "name", json_text(bytes_str(name)));

	rq.body = body;
	return body ? post(c, rq, member, "choose another name: hotcell teams lists them")
		    : CLI_FAILED;
}

/* Keys are asked for team by team; each is told its team. */
static int keys_of(const struct cli *c, const char *team, json_t *all, struct err *err)
{
	const struct cli_request rq = { .path = "/admin/teams/", .id = team, .suffix = "/keys" };
	AUTO(json_decrefp) json_t *keys = NULL;
	json_t *key;
	size_t i;

	if (cli_ask(c, &rq, &keys, err) < 0)
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

	if (cli_ask(c, &(struct cli_request){ .path = "/admin/teams" }, &teams, err) < 0)
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
	if (!c->json)
		teams_name(c, all);
	return cli_show_rows(c, all, key_columns, COUNT(key_columns));
}

static int said_once(const struct cli *c, int status)
{
	if (status == CLI_FINE && !c->json)
		fprintf(stderr, "This key is shown once and never again.\n");
	return status;
}

static int add_key(const struct cli *c, const char *team, const char *name)
{
	const struct cli_request rq = { .path = "/admin/teams/", .id = team, .suffix = "/keys" };

	return said_once(c, add(c, rq, name, "key"));
}

static int rotate_key(const struct cli *c, const char *key)
{
	const struct cli_request rq = { .path = "/admin/keys/", .id = key, .suffix = "/rotate" };

	return said_once(c, post(c, rq, "key", NULL));
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

/* Changes a team or a key, and shows it as it is then. */
static int patch(const struct cli *c, struct cli_request rq, const struct column *columns, size_t n)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	int status;

	rq.method = "PATCH";
	status = cli_try(c, &rq, &answer);
	return status == CLI_FINE ? cli_show_one(c, answer, columns, n) : status;
}

/* Of the key or team that was typed, below `path`. */
static int patch_limits(const struct cli *c, const char *path, const struct column *columns,
			size_t n)
{
	AUTO(json_decrefp) json_t *body = limits_json(c);
	const struct cli_request rq = {
		.path = path, .id = c->words[1], .suffix = "/limits", .body = body
	};

	return body ? patch(c, rq, columns, n) : CLI_USAGE;
}

int teams_run(struct cli *c)
{
	const struct cli_request all = { .path = "/admin/teams" };

	if (c->n_words == 0)
		return cli_show(c, &all, team_columns, COUNT(team_columns));
	if (cli_says(c, "add", 1, 1))
		return add(c, all, c->words[1], "teamID");
	if (cli_says(c, "rm", 1, INT_MAX))
		return cli_each(c, 1, "removed", (struct cli_request){ "DELETE", "/admin/teams/" });
	if (cli_says(c, "limits", 1, 1))
		return patch_limits(c, "/admin/teams/", team_columns, COUNT(team_columns));
	return cli_usage(c);
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

static int key_services(const struct cli *c)
{
	AUTO(json_decrefp) json_t *body = services_json(c, c->n_words - 2, c->words + 2);
	const struct cli_request rq = {
		.path = "/admin/keys/", .id = c->words[1], .suffix = "/services", .body = body
	};

	return patch(c, rq, key_columns, COUNT(key_columns));
}

int keys_run(struct cli *c)
{
	if (cli_says(c, "add", 1, 2))
		return add_key(c, c->words[1], c->n_words == 3 ? c->words[2] : "key");
	if (cli_says(c, "rm", 1, 1))
		return cli_each(c, 1, "removed", (struct cli_request){ "DELETE", "/admin/keys/" });
	if (cli_says(c, "rotate", 1, 1))
		return rotate_key(c, c->words[1]);
	if (cli_says(c, "limits", 1, 1))
		return patch_limits(c, "/admin/keys/", key_columns, COUNT(key_columns));
	if (cli_says(c, "services", 1, c->none ? 1 : INT_MAX))
		return key_services(c);
	if (c->n_words <= 1)
		return show_keys(c, c->n_words == 1 ? c->words[0] : NULL);
	return cli_usage(c);
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

/* Node's pools follow as a table; what they take together is among the rest. */
static int say_status(const struct cli *c, const json_t *status)
{
	json_t *node = json_object_get(status, "node");
	AUTO(json_decrefp) json_t *pools = json_incref(json_object_get(node, "pools"));

	(void)json_object_del(node, "pools"); /* no node, or an old one: there are none */
	print_members(status, 0);
	if (!pools)
		return CLI_FINE;
	printf("\n");
	teams_name(c, pools);
	return cli_show_rows(c, pools, pool_columns, COUNT(pool_columns));
}

int status_run(struct cli *c)
{
	return cli_answer(c, &(struct cli_request){ .path = "/admin/status" }, say_status);
}

static int say_lost(const struct cli *c, const json_t *answer)
{
	(void)c;
	printf("%lld sandboxes are ended: their VMs are lost\n",
	       (long long)json_integer_value(json_object_get(answer, "sandboxes")));
	return CLI_FINE;
}

int confirm_lost_run(struct cli *c)
{
	return cli_answer(c, &(struct cli_request){ "POST", "/admin/confirm-lost" }, say_lost);
}
