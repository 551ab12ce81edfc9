/* setup_team.c - the first team, and its first key. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>

#include "base/wipe.h"
#include "cli/ask.h"
#include "cli/setup.h"
#include "cli/write_file.h"

#define KEY_NAME "setup"

enum { ID_SIZE = 64, KEY_FILE_MODE = 0600 };

struct team {
	char id[ID_SIZE]; /* "": there is none */
	size_t others;    /* teams that it might have been, too */
};

/* --- which one ------------------------------------------------------------------------------ */

void setup_shared_team(const struct setup *s, char ret[static CONF_VALUE_MAX])
{
	struct conf node;

	conf_read_daemon(&node, s->cli.conf_dir, "node");
	if (!conf_value(&node, "shared_team", ret))
		snprintf(ret, CONF_VALUE_MAX, "%s", "hotcell");
}

static int find_team(struct setup *s, struct team *ret, struct err *err)
{
	const struct cli_request rq = { .path = "/admin/teams", .ms = SETUP_LIST_MS };
	AUTO(json_decrefp) json_t *teams = NULL;
	char shared[CONF_VALUE_MAX];
	const json_t *t;
	size_t i;

	*ret = (struct team){ 0 };
	if (cli_list(&s->cli, &rq, &teams, err) < 0)
		return -1;
	setup_shared_team(s, shared);
	json_array_foreach(teams, i, t)
	{
		const char *name = json_string_value(json_object_get(t, "name"));
		const char *id = json_string_value(json_object_get(t, "teamID"));

		if (!name || !id || strcmp(name, s->team[0] ? s->team : name) != 0 ||
		    (!s->team[0] && strcmp(name, shared) == 0))
			continue;
		ret->others += ret->id[0] != '\0';
		snprintf(ret->id, sizeof(ret->id), "%s", id);
		snprintf(s->found_team, sizeof(s->found_team), "%s", name);
	}
	return 0;
}

static int post(const struct setup *s, struct cli_request rq, const char *name, const char *member,
		char *ret, size_t size, struct err *err)
{
	AUTO(json_decrefp)
	json_t *body = json_pack("{s:o}", "name", json_text(bytes_str(name))), *made = NULL;
	struct bytes value;

	rq.method = "POST";
	rq.body = body;
	if (cli_ask(&s->cli, &rq, &made, err) < 0 ||
	    json_want_string(made, member, &value, err) < 0)
		return -1;
	return bytes_to_str(value, ret, size)
		       ? 0
		       : err_set(err, ERR_INTERNAL, 0, "gateway: %s is too long", member);
}

static int make_team(struct setup *s, struct team *t, struct err *err)
{
	const char *name = s->team[0] ? s->team : SETUP_TEAM;

	setup_fix(s, "hotcell teams lists them; choose another name with --team");
	if (post(s, (struct cli_request){ .path = "/admin/teams" }, name, "teamID", t->id,
		 sizeof(t->id), err) < 0)
		return -1;
	snprintf(s->found_team, sizeof(s->found_team), "%s", name);
	return 0;
}

/* --- its key -------------------------------------------------------------------------------- */

static int has_keys(const struct setup *s, const char *team, bool *ret, struct err *err)
{
	const struct cli_request rq = { .path = "/admin/teams/", .id = team, .suffix = "/keys" };
	AUTO(json_decrefp) json_t *keys = NULL;

	if (cli_list(&s->cli, &rq, &keys, err) < 0)
		return -1;
	*ret = json_array_size(keys) > 0;
	return 0;
}

/* The folder of --key-file, opened, and the name in it. Before there is a key to be lost. */
static int open_place(struct setup *s, char ret_name[static SETUP_PATH_SIZE], struct err *err)
{
	char path[SETUP_PATH_SIZE], folder[SETUP_PATH_SIZE];
	int dir;

	snprintf(path, sizeof(path), "%s", s->cli.key_file);
	snprintf(folder, sizeof(folder), "%s", s->cli.key_file);
	snprintf(ret_name, SETUP_PATH_SIZE, "%s", basename(path));
	setup_fix(s, "name a file in a folder that is there: --key-file FILE");
	dir = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir >= 0 ? dir : err_set(err, ERR_NOT_FOUND, errno, "%.200s", s->cli.key_file);
}

static int keep_key(struct setup *s, int dir, const char *name, struct err *err)
{
	char line[SETUP_KEY_SIZE + 1];
	int rc;

	snprintf(line, sizeof(line), "%s\n", s->key);
	rc = write_file(dir, name, bytes_str(line),
			&(struct write_how){ KEY_FILE_MODE, geteuid(), (gid_t)-1, false }, err);
	wipe(line, sizeof(line));
	return rc;
}

static int make_key(struct setup *s, const char *team, struct err *err)
{
	const struct cli_request rq = { .path = "/admin/teams/", .id = team, .suffix = "/keys" };
	AUTO(auto_close) int dir = -1;
	char name[SETUP_PATH_SIZE];

	if (s->cli.key_file) {
		dir = open_place(s, name, err);
		if (dir < 0)
			return -1;
	}
	if (post(s, rq, KEY_NAME, "key", s->key, sizeof(s->key), err) < 0)
		return -1;
	setup_at(s, "team.key");
	return s->cli.key_file ? keep_key(s, dir, name, err) : 0;
}

/* --- the step ------------------------------------------------------------------------------- */

/* Nobody asks a server that may not be there. */
static void say_would(struct setup *s, struct setup_said *ret)
{
	struct team t;
	struct err err;

	if (find_team(s, &t, &err) == 0 && t.id[0])
		setup_said(ret, SETUP_KEPT, "there is %s", s->found_team);
	else
		setup_said(ret, SETUP_WOULD, "make the team %s and a key",
			   s->team[0] ? s->team : SETUP_TEAM);
}

int setup_team(struct setup *s, struct setup_said *ret, struct err *err)
{
	bool made = false, had_keys = false;
	struct team t;

	if (s->cli.dry_run) {
		say_would(s, ret);
		return 0;
	}
	if (find_team(s, &t, err) < 0)
		return -1;
	if (t.others > 0 && !s->cli.key_file) {
		setup_said(ret, SETUP_KEPT, "there are %zu teams", t.others + 1);
		s->found_team[0] = '\0';
		return 0;
	}
	if (!t.id[0]) {
		if (make_team(s, &t, err) < 0)
			return -1;
		made = true;
		setup_at(s, "team.made");
	}
	if (has_keys(s, t.id, &had_keys, err) < 0)
		return -1;
	/* a team without a key is what an interrupted run left */
	if (s->cli.key_file ? access(s->cli.key_file, F_OK) < 0 : !had_keys)
		if (make_key(s, t.id, err) < 0)
			return -1;
	setup_said(ret, made || s->key[0] ? SETUP_DONE : SETUP_KEPT, "%s %s%s",
		   made ? "the team" : "there is the team", s->found_team,
		   s->key[0] ? ", and a key" : "");
	return 0;
}
