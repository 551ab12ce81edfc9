/* test_store.c - teams and keys on a real database: answers, order, refusals, restarts. */
#include "tests/unit/test_net_layers.h"

#include <fcntl.h>
#include <sqlite3.h>

#include "base/folder.h"
#include "store/store.h"

struct box { /* a loop, a folder and a store in it */
	struct loop *l;
	struct store *s;
	char dir[64];
	struct store_call call;
	bool done;
	struct err err;
	struct store_team team; /* the last answer */
	struct store_key key;
	size_t n_teams, n_keys, n_secrets;
	char secret_id[STORE_SECRET_ID_SIZE], sealed[32];
	uint64_t version;
};

static void box_start(struct box *b)
{
	struct err err = { 0 };

	if (store_open(b->l, b->dir, &b->s, &err) < 0)
		fail_msg("%s", err.msg);
}

static int set_up(void **state)
{
	struct box *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->l = test_loop();
	snprintf(b->dir, sizeof(b->dir), "/tmp/hotcell-store-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	box_start(b);
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	AUTO(auto_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct box *b = *state;
	struct err err;

	store_close(b->s);
	loop_free(b->l);
	assert_int_equal(folder_remove(tmp, strrchr(b->dir, '/') + 1, &err), 0);
	free(b);
	return 0;
}

static void on_done(struct store_call *c, const struct store_result *ret, const struct err *err)
{
	struct box *b = CONTAINER_OF(c, struct box, call);

	b->done = true;
	b->err = err ? *err : (struct err){ 0 };
	b->n_teams = ret ? ret->n_teams : 0;
	b->n_keys = ret ? ret->n_keys : 0;
	b->n_secrets = ret ? ret->n_secrets : 0;
	if (b->n_secrets > 0) {
		const struct store_secret *s = &ret->secrets[b->n_secrets - 1];

		snprintf(b->secret_id, sizeof(b->secret_id), "%s", s->id);
		snprintf(b->sealed, sizeof(b->sealed), "%s", s->sealed);
		b->version = s->version;
	}
	if (b->n_teams > 0)
		b->team = ret->teams[b->n_teams - 1];
	if (b->n_keys > 0)
		b->key = ret->keys[b->n_keys - 1];
}

static enum err_code ask(struct box *b, const struct store_request *rq)
{
	struct err err = { 0 };

	b->done = false;
	if (store_ask(b->s, &b->call, rq, on_done, &err) < 0)
		fail_msg("%s", err.msg);
	assert_false(b->done);
	RUN_UNTIL(b->l, b->done);
	return b->err.code;
}

static void add_team(struct box *b, const char *name)
{
	struct store_request rq = { .verb = STORE_TEAM_ADD };

	snprintf(rq.team.name, sizeof(rq.team.name), "%s", name);
	snprintf(rq.team.slug, sizeof(rq.team.slug), "%s", name);
	assert_int_equal(ask(b, &rq), ERR_NONE);
}

static enum err_code add_key(struct box *b, const char *team_id, const char *hash)
{
	struct store_request rq = { .verb = STORE_KEY_ADD };

	snprintf(rq.key.team_id, sizeof(rq.key.team_id), "%s", team_id);
	snprintf(rq.key.hash, sizeof(rq.key.hash), "%s", hash);
	snprintf(rq.key.name, sizeof(rq.key.name), "name of %s", hash);
	return ask(b, &rq);
}

static enum err_code find_key(struct box *b, const char *hash)
{
	struct store_request rq = { .verb = STORE_KEY_FIND };

	snprintf(rq.key.hash, sizeof(rq.key.hash), "%s", hash);
	return ask(b, &rq);
}

static void teams_come_and_go(void **state)
{
	struct box *b = *state;
	struct store_request rq = { .verb = STORE_TEAM_LIST };
	char id[STORE_ID_SIZE];

	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(b->n_teams, 0);
	for (int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "team%02d", 19 - i);
		add_team(b, name);
	}
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(b->n_teams, 20);
	assert_string_equal(b->team.name, "team19"); /* by name */
	assert_int_equal(strlen(b->team.id), 36);
	assert_int_equal(b->team.id[14], '4');
	assert_true(b->team.created_ns > 0);
	snprintf(id, sizeof(id), "%s", b->team.id);

	rq = (struct store_request){ .verb = STORE_TEAM_FIND, .team.name = "team07" };
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_string_equal(b->team.name, "team07");
	snprintf(rq.team.id, sizeof(rq.team.id), "%s", id);
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_string_equal(b->team.name, "team19");
	rq.verb = STORE_TEAM_REMOVE;
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(ask(b, &rq), ERR_NOT_FOUND);
	rq.verb = STORE_TEAM_FIND;
	assert_int_equal(ask(b, &rq), ERR_NOT_FOUND);
}

static void a_name_is_taken_once(void **state)
{
	struct box *b = *state;
	struct store_request rq = { .verb = STORE_TEAM_ADD, .team = { .name = "a'; --" } };

	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(ask(b, &rq), ERR_EXISTS);
	assert_string_equal(b->err.msg, "a team named 'a'; --' exists");
	rq.team.name[0] = 'b'; /* and the failure left nothing open */
	assert_int_equal(ask(b, &rq), ERR_NONE);
}

static void keys_belong_to_a_team(void **state)
{
	struct box *b = *state;
	struct store_request rq = { 0 };
	char team[STORE_ID_SIZE], other[STORE_ID_SIZE];

	assert_int_equal(add_key(b, "nobody", "h0"), ERR_NOT_FOUND);
	add_team(b, "one");
	snprintf(team, sizeof(team), "%s", b->team.id);
	add_team(b, "two");
	snprintf(other, sizeof(other), "%s", b->team.id);
	assert_int_equal(add_key(b, team, "h1"), ERR_NONE);
	assert_int_equal(add_key(b, team, "h2"), ERR_NONE);
	assert_int_equal(add_key(b, other, "h3"), ERR_NONE);
	assert_int_equal(add_key(b, other, "h3"), ERR_EXISTS);

	assert_int_equal(find_key(b, "h2"), ERR_NONE);
	assert_string_equal(b->team.name, "one");
	assert_string_equal(b->key.name, "name of h2");
	assert_int_equal(b->key.used_ns, 0);

	rq = (struct store_request){ .verb = STORE_KEY_USED, .key.used_ns = 77 };
	snprintf(rq.key.id, sizeof(rq.key.id), "%s", b->key.id);
	assert_int_equal(ask(b, &rq), ERR_NONE);
	rq.verb = STORE_KEY_LIST;
	snprintf(rq.key.team_id, sizeof(rq.key.team_id), "%s", team);
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(b->n_keys, 2);
	assert_string_equal(b->key.hash, "h2"); /* the newest is last */
	assert_int_equal(b->key.used_ns, 77);
}

static void keys_are_renamed_and_removed_by_their_team(void **state)
{
	struct box *b = *state;
	struct store_request rq = { .verb = STORE_KEY_RENAME, .key.name = "new" };
	char team[STORE_ID_SIZE];

	add_team(b, "one");
	snprintf(team, sizeof(team), "%s", b->team.id);
	assert_int_equal(add_key(b, team, "h1"), ERR_NONE);
	snprintf(rq.key.id, sizeof(rq.key.id), "%s", b->key.id);
	snprintf(rq.key.team_id, sizeof(rq.key.team_id), "another");
	assert_int_equal(ask(b, &rq), ERR_NOT_FOUND);
	rq.verb = STORE_KEY_REMOVE;
	assert_int_equal(ask(b, &rq), ERR_NOT_FOUND);
	snprintf(rq.key.team_id, sizeof(rq.key.team_id), "%s", team);
	rq.verb = STORE_KEY_RENAME;
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(find_key(b, "h1"), ERR_NONE);
	assert_string_equal(b->key.name, "new");
	rq.verb = STORE_KEY_REMOVE;
	rq.key.team_id[0] = '\0'; /* any team */
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(find_key(b, "h1"), ERR_NOT_FOUND);
	assert_int_equal(ask(b, &rq), ERR_NOT_FOUND);
}

static void keys_have_limits(void **state)
{
	struct box *b = *state;
	struct store_request rq = { .verb = STORE_KEY_LIMIT,
				    .key.limits = { 1, 2, UINT32_MAX, 4, 5 } };

	add_team(b, "one");
	assert_int_equal(add_key(b, b->team.id, "h1"), ERR_NONE);
	memcpy(rq.key.id, b->key.id, sizeof(rq.key.id));
	assert_int_equal(find_key(b, "h1"), ERR_NONE);
	assert_int_equal(b->key.limits.sandboxes, 0);
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(find_key(b, "h1"), ERR_NONE);
	assert_memory_equal(&b->key.limits, &rq.key.limits, sizeof(rq.key.limits));
	assert_string_equal(b->team.name, "one");
	rq.verb = STORE_KEY_GET;
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(b->key.limits.disk_mib, 4);
	rq.key.id[0] = 'x';
	assert_int_equal(ask(b, &rq), ERR_NOT_FOUND);
	rq.verb = STORE_KEY_LIMIT;
	assert_int_equal(ask(b, &rq), ERR_NOT_FOUND);
}

/* By the key `maker`, of its team. */
static enum err_code add_key_by(struct box *b, const struct store_key *maker, const char *hash)
{
	struct store_request rq = { .verb = STORE_KEY_ADD };

	memcpy(rq.key.team_id, maker->team_id, sizeof(rq.key.team_id));
	memcpy(rq.key.maker, maker->id, sizeof(rq.key.maker));
	snprintf(rq.key.hash, sizeof(rq.key.hash), "%s", hash);
	return ask(b, &rq);
}

static enum err_code remove_key(struct box *b, const struct store_key *k)
{
	struct store_request rq = { .verb = STORE_KEY_REMOVE };

	memcpy(rq.key.id, k->id, sizeof(rq.key.id));
	return ask(b, &rq);
}

static void a_family_has_the_limits_of_its_first_key(void **state)
{
	struct box *b = *state;
	struct store_request rq = { .verb = STORE_KEY_LIMIT, .key.limits = { 1, 2, 3, 4, 5 } };
	struct store_key first, child;

	add_team(b, "one");
	assert_int_equal(add_key(b, b->team.id, "h1"), ERR_NONE);
	first = b->key;
	assert_string_equal(first.maker, "");
	assert_string_equal(first.family, first.id);
	assert_int_equal(add_key_by(b, &first, "h2"), ERR_NONE);
	child = b->key;
	assert_string_equal(child.maker, first.id);
	assert_string_equal(child.family, first.id);
	memcpy(rq.key.id, first.id, sizeof(rq.key.id));
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(add_key_by(b, &child, "h3"), ERR_NONE); /* with those from the beginning */
	assert_memory_equal(&b->key.limits, &rq.key.limits, sizeof(rq.key.limits));
	assert_string_equal(b->key.maker, child.id);
	assert_string_equal(b->key.family, first.id);
	assert_int_equal(find_key(b, "h2"), ERR_NONE);
	assert_memory_equal(&b->key.limits, &rq.key.limits, sizeof(rq.key.limits));
	memcpy(rq.key.id, child.id, sizeof(rq.key.id));
	assert_int_equal(ask(b, &rq), ERR_EXISTS);
	assert_non_null(strstr(b->err.msg, first.id));
	add_team(b, "two"); /* no key of one team makes one of another */
	memcpy(first.team_id, b->team.id, sizeof(first.team_id));
	assert_int_equal(add_key_by(b, &first, "h4"), ERR_NOT_FOUND);
}

/* However long the line is, and whoever joins it at the last moment. */
static void a_key_takes_what_it_made_with_it(void **state)
{
	enum { LINE = 100 };
	struct box *b = *state;
	struct store_key first, second;
	char hash[16];

	add_team(b, "one");
	assert_int_equal(add_key(b, b->team.id, "first"), ERR_NONE);
	first = b->key;
	assert_int_equal(add_key_by(b, &first, "second"), ERR_NONE);
	second = b->key;
	for (int i = 0; i < LINE; i++) {
		snprintf(hash, sizeof(hash), "h%d", i);
		assert_int_equal(add_key_by(b, &b->key, hash), ERR_NONE);
	}
	assert_int_equal(remove_key(b, &second), ERR_NONE);
	assert_string_equal(b->key.team_id, first.team_id); /* whose it was */
	assert_int_equal(find_key(b, "second"), ERR_NOT_FOUND);
	assert_int_equal(find_key(b, hash), ERR_NOT_FOUND);
	assert_int_equal(find_key(b, "h0"), ERR_NOT_FOUND);
	assert_int_equal(find_key(b, "first"), ERR_NONE);
	assert_int_equal(add_key_by(b, &second, "late"), ERR_NOT_FOUND);
	assert_int_equal(find_key(b, "late"), ERR_NOT_FOUND);
	assert_int_equal(remove_key(b, &first), ERR_NONE);
}

static void a_rotated_key_keeps_what_it_has(void **state)
{
	struct box *b = *state;
	struct store_request rq = { .verb = STORE_KEY_LIMIT, .key.limits.sandboxes = 7 };
	struct store_key first;

	add_team(b, "one");
	assert_int_equal(add_key(b, b->team.id, "h1"), ERR_NONE);
	first = b->key;
	assert_int_equal(add_key_by(b, &first, "h2"), ERR_NONE);
	memcpy(rq.key.id, first.id, sizeof(rq.key.id));
	assert_int_equal(ask(b, &rq), ERR_NONE);
	rq.verb = STORE_KEY_SERVICES;
	snprintf(rq.key.services, sizeof(rq.key.services), "db");
	assert_int_equal(ask(b, &rq), ERR_NONE);
	rq = (struct store_request){ .verb = STORE_KEY_ROTATE,
				     .key = { .hash = "h9", .head = "he", .tail = "tail" } };
	memcpy(rq.key.id, first.id, sizeof(rq.key.id));
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(find_key(b, "h1"), ERR_NOT_FOUND);
	assert_int_equal(find_key(b, "h9"), ERR_NONE);
	assert_string_equal(b->key.id, first.id);
	assert_string_equal(b->key.name, first.name);
	assert_string_equal(b->key.services, "db");
	assert_string_equal(b->key.head, "he");
	assert_int_equal(b->key.limits.sandboxes, 7);
	assert_int_equal(find_key(b, "h2"), ERR_NONE);
	assert_string_equal(b->key.maker, first.id);
	rq.key.id[0] = 'x';
	assert_int_equal(ask(b, &rq), ERR_NOT_FOUND);
}

static void teams_have_limits(void **state)
{
	struct box *b = *state;
	struct store_request rq = { .verb = STORE_TEAM_LIMIT,
				    .team.limits = { 1, 2, UINT32_MAX, 4, 5 } };

	add_team(b, "one");
	assert_int_equal(b->team.limits.sandboxes, 0);
	memcpy(rq.team.id, b->team.id, sizeof(rq.team.id));
	assert_int_equal(add_key(b, b->team.id, "h1"), ERR_NONE);
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_memory_equal(&b->team.limits, &rq.team.limits, sizeof(rq.team.limits));
	b->team = (struct store_team){ 0 };
	assert_int_equal(find_key(b, "h1"), ERR_NONE);
	assert_memory_equal(&b->team.limits, &rq.team.limits, sizeof(rq.team.limits));
	assert_int_equal(b->key.limits.sandboxes, 0);
	rq.team.id[0] = 'x';
	assert_int_equal(ask(b, &rq), ERR_NOT_FOUND);
}

static void keys_have_services(void **state)
{
	struct box *b = *state;
	struct store_request rq = { .verb = STORE_KEY_SERVICES, .key.services = "db cache" };

	add_team(b, "one");
	assert_int_equal(add_key(b, b->team.id, "h1"), ERR_NONE);
	memcpy(rq.key.id, b->key.id, sizeof(rq.key.id));
	assert_int_equal(find_key(b, "h1"), ERR_NONE);
	assert_string_equal(b->key.services, "");
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(find_key(b, "h1"), ERR_NONE);
	assert_string_equal(b->key.services, "db cache");
	assert_int_equal(b->key.limits.sandboxes, 0);
	rq.key.id[0] = 'x';
	assert_int_equal(ask(b, &rq), ERR_NOT_FOUND);
}

/* A database of the first version, with a key in it. */
static void an_older_schema_is_brought_up(void **state)
{
	static const char older[] = "DROP INDEX keys_of_maker;"
				    "ALTER TABLE keys DROP COLUMN maker;"
				    "ALTER TABLE keys DROP COLUMN family;"
				    "ALTER TABLE teams DROP COLUMN max_sandboxes;"
				    "ALTER TABLE teams DROP COLUMN max_vcpus;"
				    "ALTER TABLE teams DROP COLUMN max_memory;"
				    "ALTER TABLE teams DROP COLUMN max_disk;"
				    "ALTER TABLE teams DROP COLUMN max_paused;"
				    "ALTER TABLE keys DROP COLUMN max_sandboxes;"
				    "ALTER TABLE keys DROP COLUMN max_vcpus;"
				    "ALTER TABLE keys DROP COLUMN max_memory;"
				    "ALTER TABLE keys DROP COLUMN max_disk;"
				    "ALTER TABLE keys DROP COLUMN services;"
				    "ALTER TABLE keys DROP COLUMN max_paused;"
				    "DROP TABLE secrets;"
				    "DROP TABLE facts;"
				    "UPDATE schema_version SET version = 1";
	struct box *b = *state;
	char path[96];
	sqlite3 *db = NULL;

	add_team(b, "one");
	assert_int_equal(add_key(b, b->team.id, "h1"), ERR_NONE);
	store_close(b->s);
	b->s = NULL;
	snprintf(path, sizeof(path), "%s/store.db", b->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, older, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	box_start(b);
	assert_int_equal(find_key(b, "h1"), ERR_NONE);
	assert_string_equal(b->team.name, "one");
	assert_int_equal(b->key.limits.sandboxes, 0);
	assert_string_equal(b->key.maker, "");
	assert_string_equal(b->key.family, b->key.id);
}

static void a_team_takes_its_keys_with_it(void **state)
{
	struct box *b = *state;
	struct store_request rq = { .verb = STORE_TEAM_REMOVE };

	add_team(b, "one");
	rq.team = b->team;
	assert_int_equal(add_key(b, b->team.id, "h1"), ERR_NONE);
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_int_equal(find_key(b, "h1"), ERR_NOT_FOUND);
}

static void a_restart_forgets_nothing(void **state)
{
	struct box *b = *state;

	add_team(b, "one");
	assert_int_equal(add_key(b, b->team.id, "h1"), ERR_NONE);
	store_close(b->s);
	box_start(b);
	assert_int_equal(find_key(b, "h1"), ERR_NONE);
	assert_string_equal(b->team.name, "one");
}

static void a_newer_schema_is_refused(void **state)
{
	struct box *b = *state;
	struct err err = { 0 };
	char path[96];
	sqlite3 *db = NULL;

	store_close(b->s);
	b->s = NULL;
	snprintf(path, sizeof(path), "%s/store.db", b->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db, "UPDATE schema_version SET version = 999", NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(store_open(b->l, b->dir, &b->s, &err), -1);
	assert_int_equal(err.code, ERR_MISMATCH);
}

static void never(struct store_call *c, const struct store_result *ret, const struct err *err)
{
	(void)c;
	(void)ret;
	(void)err;
	fail_msg("told although forgotten");
}

static void forgotten_calls_are_done_all_the_same(void **state)
{
	struct box *b = *state;
	struct store_request rq = { .verb = STORE_TEAM_ADD, .team.name = "quiet" };
	struct store_call call = { 0 };
	struct err err = { 0 };

	assert_int_equal(store_ask(b->s, &call, &rq, never, &err), 0);
	store_forget(&call);
	rq.verb = STORE_TEAM_FIND; /* queued behind it */
	assert_int_equal(ask(b, &rq), ERR_NONE);
}

static enum err_code ask_secret(struct box *b, enum store_verb verb, const char *id,
				const char *name, const char *sealed)
{
	struct store_request rq = { .verb = verb,
				    .secret = store_secret_new(b->team.id),
				    .count = 100 };

	assert_non_null(rq.secret);
	snprintf(rq.secret->id, sizeof(rq.secret->id), "%s", id);
	snprintf(rq.secret->name, sizeof(rq.secret->name), "%s", name);
	rq.secret->sealed = sealed ? strdup(sealed) : NULL;
	rq.secret->metadata = verb == STORE_SECRET_ADD ? strdup("{}") : NULL;
	rq.secret->names = strdup(name);
	return ask(b, &rq);
}

static void secrets_are_kept(void **state)
{
	struct box *b = *state;
	char first[STORE_SECRET_ID_SIZE];

	add_team(b, "one");
	assert_int_equal(ask_secret(b, STORE_SECRET_ADD, "", "a", "s1"), ERR_NONE);
	assert_int_equal(b->version, 1);
	memcpy(first, b->secret_id, sizeof(first));
	assert_int_equal(ask_secret(b, STORE_SECRET_ADD, "", "a", "s1"), ERR_EXISTS);
	assert_int_equal(ask_secret(b, STORE_SECRET_ADD, "", "b", "s2"), ERR_NONE);
	assert_int_equal(ask_secret(b, STORE_SECRET_UPDATE, first, "a", "s3"), ERR_NONE);
	assert_int_equal(b->version, 2);
	store_close(b->s);
	box_start(b);
	assert_int_equal(ask_secret(b, STORE_SECRET_GET, "", "a", NULL), ERR_NONE);
	assert_string_equal(b->secret_id, first);
	assert_string_equal(b->sealed, "s3");
	assert_int_equal(ask_secret(b, STORE_SECRET_FIND, "", "x b a y", NULL), ERR_NONE);
	assert_int_equal(b->n_secrets, 2);
	assert_int_equal(ask_secret(b, STORE_SECRET_LIST, "", "", NULL), ERR_NONE);
	assert_int_equal(b->n_secrets, 2);
	assert_int_equal(ask_secret(b, STORE_SECRET_REMOVE, first, "", NULL), ERR_NONE);
	assert_int_equal(ask_secret(b, STORE_SECRET_REMOVE, first, "", NULL), ERR_NOT_FOUND);
	assert_int_equal(ask_secret(b, STORE_SECRET_UPDATE, first, "", "s4"), ERR_NOT_FOUND);
	assert_int_equal(ask_secret(b, STORE_SECRET_LIST, "", "", NULL), ERR_NONE);
	assert_int_equal(b->n_secrets, 1);
}

/* All gateways of one database sign with the same key: the first that was drawn. */
static void the_key_of_uploads_lasts(void **state)
{
	struct store_request rq = { .verb = STORE_UPLOAD_KEY, .key.hash = "first" };
	struct box *b = *state;

	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_string_equal(b->key.hash, "first");
	store_close(b->s);
	box_start(b);
	snprintf(rq.key.hash, sizeof(rq.key.hash), "second");
	assert_int_equal(ask(b, &rq), ERR_NONE);
	assert_string_equal(b->key.hash, "first");
}

static void the_queue_is_bounded(void **state)
{
	struct box *b = *state;
	struct store_request rq = { .verb = STORE_TEAM_LIST };
	struct store_call *calls = calloc(STORE_QUEUE_MAX + 1, sizeof(*calls));
	struct err err = { 0 };

	assert_non_null(calls);
	for (size_t i = 0; i < STORE_QUEUE_MAX; i++)
		assert_int_equal(store_ask(b->s, &calls[i], &rq, never, &err), 0);
	assert_int_equal(store_ask(b->s, &calls[STORE_QUEUE_MAX], &rq, never, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	store_close(b->s); /* no callback follows */
	b->s = NULL;
	free(calls);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(teams_come_and_go),
		T(a_name_is_taken_once),
		T(keys_belong_to_a_team),
		T(keys_are_renamed_and_removed_by_their_team),
		T(a_team_takes_its_keys_with_it),
		T(a_restart_forgets_nothing),
		T(keys_have_limits),
		T(a_family_has_the_limits_of_its_first_key),
		T(a_key_takes_what_it_made_with_it),
		T(a_rotated_key_keeps_what_it_has),
		T(teams_have_limits),
		T(keys_have_services),
		T(an_older_schema_is_brought_up),
		T(the_key_of_uploads_lasts),
		T(a_newer_schema_is_refused),
		T(forgotten_calls_are_done_all_the_same),
		T(secrets_are_kept),
		T(the_queue_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
