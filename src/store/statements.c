/* statements.c - the SQL. */
#include "store/statements.h"

#include "base/clock.h"
#include "base/random.h"
#include "store/secret_statements.h"

enum { ROOM_FIRST = 8 };

#define TEAM_COLUMNS "t.id, t.name, t.slug, t.created"
#define KEY_COLUMNS                                                                           \
	"k.id, k.team_id, k.name, k.hash, k.mask_head, k.mask_tail, k.created, k.last_used, " \
	"k.max_sandboxes, k.max_vcpus, k.max_memory, k.max_disk, k.max_paused, k.services"

void store_rows_done(struct store_rows *r)
{
	free(r->teams);
	free(r->keys);
	store_secrets_done(r);
	*r = (struct store_rows){ 0 };
}

/* Room for one more row in an array of `size` each. */
static int grow(void **rows, size_t n, size_t *room, size_t size, struct err *err)
{
	size_t want = *room ? 2 * *room : ROOM_FIRST;
	void *more;

	if (n < *room)
		return 0;
	more = reallocarray(*rows, want, size);
	if (!more)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory for rows");
	*rows = more;
	*room = want;
	return 0;
}

static int add_team(struct store_rows *r, const struct store_team *t, struct err *err)
{
	void *rows = r->teams;

	if (grow(&rows, r->n_teams, &r->room, sizeof(*t), err) < 0)
		return -1;
	r->teams = rows;
	r->teams[r->n_teams++] = *t;
	return 0;
}

static int add_key(struct store_rows *r, const struct store_key *k, struct err *err)
{
	void *rows = r->keys;

	if (grow(&rows, r->n_keys, &r->room, sizeof(*k), err) < 0)
		return -1;
	r->keys = rows;
	r->keys[r->n_keys++] = *k;
	return 0;
}

static void read_team(struct sql *q, struct store_team *ret)
{
	sql_read_text(q, ret->id, sizeof(ret->id));
	sql_read_text(q, ret->name, sizeof(ret->name));
	sql_read_text(q, ret->slug, sizeof(ret->slug));
	ret->created_ns = sql_read_u64(q);
}

static void read_key(struct sql *q, struct store_key *ret)
{
	sql_read_text(q, ret->id, sizeof(ret->id));
	sql_read_text(q, ret->team_id, sizeof(ret->team_id));
	sql_read_text(q, ret->name, sizeof(ret->name));
	sql_read_text(q, ret->hash, sizeof(ret->hash));
	sql_read_text(q, ret->head, sizeof(ret->head));
	sql_read_text(q, ret->tail, sizeof(ret->tail));
	ret->created_ns = sql_read_u64(q);
	ret->used_ns = sql_read_u64(q);
	ret->limits.sandboxes = (uint32_t)sql_read_u64(q);
	ret->limits.vcpus = (uint32_t)sql_read_u64(q);
	ret->limits.memory_mib = (uint32_t)sql_read_u64(q);
	ret->limits.disk_mib = (uint32_t)sql_read_u64(q);
	ret->limits.paused = (uint32_t)sql_read_u64(q);
	sql_read_text(q, ret->services, sizeof(ret->services));
}

/* A random UUID, version 4. */
static void make_id(char ret[static STORE_ID_SIZE])
{
	char hex[33];

	random_hex(hex, 16);
	hex[12] = '4';
	hex[16] = "89ab"[(unsigned char)hex[16] & 3];
	snprintf(ret, STORE_ID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
		 hex + 20);
}

static int count(struct database *d, const char *text, const char *value, uint64_t *ret,
		 struct err *err)
{
	AUTO(sql_done) struct sql q;
	int rc;

	sql_begin(&q, d, text);
	if (value)
		sql_bind_text(&q, value);
	rc = sql_next(&q, err);
	*ret = rc == 1 ? sql_read_u64(&q) : 0;
	return rc < 0 ? -1 : 0;
}

static int team_add(struct database *d, const struct store_request *rq, struct store_rows *ret,
		    struct err *err)
{
	AUTO(sql_done) struct sql q = { 0 };
	struct store_team t = rq->team;
	uint64_t n;

	make_id(t.id);
	t.created_ns = clock_wall_ns();
	if (count(d, "SELECT count(*) FROM teams", NULL, &n, err) < 0)
		return -1;
	if (n >= STORE_TEAMS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "there are %d teams already",
			       STORE_TEAMS_MAX);
	sql_begin(&q, d, "INSERT INTO teams (id, name, slug, created) VALUES ($1, $2, $3, $4)");
	sql_bind_text(&q, t.id);
	sql_bind_text(&q, t.name);
	sql_bind_text(&q, t.slug);
	sql_bind_u64(&q, t.created_ns);
	if (sql_next(&q, err) < 0) {
		if (err->code == ERR_EXISTS)
			return err_set(err, ERR_EXISTS, 0, "a team named '%s' exists", t.name);
		return -1;
	}
	return add_team(ret, &t, err);
}

static int team_find(struct database *d, const struct store_request *rq, struct store_rows *ret,
		     struct err *err)
{
	AUTO(sql_done) struct sql q;
	struct store_team t;
	int rc;

	if (rq->team.id[0]) {
		sql_begin(&q, d, "SELECT " TEAM_COLUMNS " FROM teams t WHERE t.id = $1");
		sql_bind_text(&q, rq->team.id);
	} else {
		sql_begin(&q, d, "SELECT " TEAM_COLUMNS " FROM teams t WHERE t.name = $1");
		sql_bind_text(&q, rq->team.name);
	}
	rc = sql_next(&q, err);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(err, ERR_NOT_FOUND, 0, "no such team");
	read_team(&q, &t);
	return add_team(ret, &t, err);
}

static int team_list(struct database *d, struct store_rows *ret, struct err *err)
{
	AUTO(sql_done) struct sql q;
	struct store_team t;
	int rc;

	sql_begin(&q, d, "SELECT " TEAM_COLUMNS " FROM teams t ORDER BY t.name");
	while ((rc = sql_next(&q, err)) == 1) {
		read_team(&q, &t);
		if (add_team(ret, &t, err) < 0)
			return -1;
	}
	return rc;
}

static int remove_rows(struct database *d, const char *text, const char *value, struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d, text);
	sql_bind_text(&q, value);
	return sql_next(&q, err);
}

static int team_remove(struct database *d, const struct store_request *rq, struct err *err)
{
	if (remove_rows(d, "DELETE FROM secrets WHERE team_id = $1", rq->team.id, err) < 0 ||
	    remove_rows(d, "DELETE FROM keys WHERE team_id = $1", rq->team.id, err) < 0 ||
	    remove_rows(d, "DELETE FROM teams WHERE id = $1", rq->team.id, err) < 0)
		return -1;
	if (database_changed(d) == 0)
		return err_set(err, ERR_NOT_FOUND, 0, "no such team");
	return 0;
}

static int insert_key(struct database *d, const struct store_key *k, struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d,
		  "INSERT INTO keys (id, team_id, name, hash, mask_head, mask_tail, created, "
		  "last_used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
	sql_bind_text(&q, k->id);
	sql_bind_text(&q, k->team_id);
	sql_bind_text(&q, k->name);
	sql_bind_text(&q, k->hash);
	sql_bind_text(&q, k->head);
	sql_bind_text(&q, k->tail);
	sql_bind_u64(&q, k->created_ns);
	sql_bind_u64(&q, k->used_ns);
	return sql_next(&q, err);
}

static int key_add(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err)
{
	struct store_key k = rq->key;
	uint64_t n;

	make_id(k.id);
	k.created_ns = clock_wall_ns();
	k.used_ns = 0;
	k.limits = (struct store_limits){ 0 };
	k.services[0] = '\0';
	if (count(d, "SELECT count(*) FROM keys WHERE team_id = $1", k.team_id, &n, err) < 0)
		return -1;
	if (n >= STORE_KEYS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "the team has %d keys already",
			       STORE_KEYS_MAX);
	if (insert_key(d, &k, err) < 0) {
		if (err->code == ERR_NOT_FOUND)
			return err_set(err, ERR_NOT_FOUND, 0, "no such team");
		return -1;
	}
	return add_key(ret, &k, err);
}

static int key_list(struct database *d, const struct store_request *rq, struct store_rows *ret,
		    struct err *err)
{
	AUTO(sql_done) struct sql q;
	struct store_key k;
	int rc;

	sql_begin(&q, d,
		  "SELECT " KEY_COLUMNS " FROM keys k WHERE k.team_id = $1 "
		  "ORDER BY k.created, k.id");
	sql_bind_text(&q, rq->key.team_id);
	while ((rc = sql_next(&q, err)) == 1) {
		read_key(&q, &k);
		if (add_key(ret, &k, err) < 0)
			return -1;
	}
	return rc;
}

/* A key and its team are one array each: `room` counts for one only. */
static int key_find(struct database *d, const struct store_request *rq, struct store_rows *ret,
		    struct err *err)
{
	AUTO(sql_done) struct sql q;
	int rc;

	sql_begin(&q, d,
		  "SELECT " KEY_COLUMNS ", " TEAM_COLUMNS
		  " FROM keys k JOIN teams t ON t.id = k.team_id WHERE k.hash = $1");
	sql_bind_text(&q, rq->key.hash);
	rc = sql_next(&q, err);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(err, ERR_NOT_FOUND, 0, "no such key");
	ret->keys = calloc(1, sizeof(*ret->keys));
	ret->teams = calloc(1, sizeof(*ret->teams));
	if (!ret->keys || !ret->teams)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory for a key");
	read_key(&q, ret->keys);
	read_team(&q, ret->teams);
	ret->n_keys = ret->n_teams = 1;
	return 0;
}

static int changed_one(struct database *d, struct sql *q, struct err *err)
{
	if (sql_next(q, err) < 0)
		return -1;
	if (database_changed(d) == 0)
		return err_set(err, ERR_NOT_FOUND, 0, "no such key");
	return 0;
}

static int key_rename(struct database *d, const struct store_request *rq, struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d, "UPDATE keys SET name = $1 WHERE id = $2 AND team_id = $3");
	sql_bind_text(&q, rq->key.name);
	sql_bind_text(&q, rq->key.id);
	sql_bind_text(&q, rq->key.team_id);
	return changed_one(d, &q, err);
}

static int key_remove(struct database *d, const struct store_request *rq, struct err *err)
{
	AUTO(sql_done) struct sql q;
	bool any = rq->key.team_id[0] == '\0';

	sql_begin(&q, d,
		  any ? "DELETE FROM keys WHERE id = $1"
		      : "DELETE FROM keys WHERE id = $1 AND team_id = $2");
	sql_bind_text(&q, rq->key.id);
	if (!any)
		sql_bind_text(&q, rq->key.team_id);
	return changed_one(d, &q, err);
}

static int key_used(struct database *d, const struct store_request *rq, struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d, "UPDATE keys SET last_used = $1 WHERE id = $2");
	sql_bind_u64(&q, rq->key.used_ns);
	sql_bind_text(&q, rq->key.id);
	return sql_next(&q, err);
}

static int key_get(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err)
{
	AUTO(sql_done) struct sql q;
	struct store_key k;
	int rc;

	sql_begin(&q, d, "SELECT " KEY_COLUMNS " FROM keys k WHERE k.id = $1");
	sql_bind_text(&q, rq->key.id);
	rc = sql_next(&q, err);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(err, ERR_NOT_FOUND, 0, "no such key");
	read_key(&q, &k);
	return add_key(ret, &k, err);
}

static int key_limit(struct database *d, const struct store_request *rq, struct err *err)
{
	const struct store_limits *l = &rq->key.limits;
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d,
		  "UPDATE keys SET max_sandboxes = $1, max_vcpus = $2, max_memory = $3, "
		  "max_disk = $4, max_paused = $5 WHERE id = $6");
	sql_bind_u64(&q, l->sandboxes);
	sql_bind_u64(&q, l->vcpus);
	sql_bind_u64(&q, l->memory_mib);
	sql_bind_u64(&q, l->disk_mib);
	sql_bind_u64(&q, l->paused);
	sql_bind_text(&q, rq->key.id);
	return changed_one(d, &q, err);
}

static int key_services(struct database *d, const struct store_request *rq, struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d, "UPDATE keys SET services = $1 WHERE id = $2");
	sql_bind_text(&q, rq->key.services);
	sql_bind_text(&q, rq->key.id);
	return changed_one(d, &q, err);
}

static int run(struct database *d, const struct store_request *rq, struct store_rows *ret,
	       struct err *err)
{
	switch (rq->verb) {
	case STORE_TEAM_ADD:
		return team_add(d, rq, ret, err);
	case STORE_TEAM_FIND:
		return team_find(d, rq, ret, err);
	case STORE_TEAM_LIST:
		return team_list(d, ret, err);
	case STORE_TEAM_REMOVE:
		return team_remove(d, rq, err);
	case STORE_KEY_ADD:
		return key_add(d, rq, ret, err);
	case STORE_KEY_LIST:
		return key_list(d, rq, ret, err);
	case STORE_KEY_FIND:
		return key_find(d, rq, ret, err);
	case STORE_KEY_RENAME:
		return key_rename(d, rq, err);
	case STORE_KEY_REMOVE:
		return key_remove(d, rq, err);
	case STORE_KEY_USED:
		return key_used(d, rq, err);
	case STORE_KEY_GET:
		return key_get(d, rq, ret, err);
	case STORE_KEY_LIMIT:
		return key_limit(d, rq, err);
	case STORE_KEY_SERVICES:
		return key_services(d, rq, err);
	case STORE_SECRET_ADD:
		return sql_secret_add(d, rq, ret, err);
	case STORE_SECRET_GET:
		return sql_secret_get(d, rq, ret, err);
	case STORE_SECRET_UPDATE:
		return sql_secret_update(d, rq, ret, err);
	case STORE_SECRET_REMOVE:
		return sql_secret_remove(d, rq, err);
	case STORE_SECRET_LIST:
		return sql_secret_list(d, rq, ret, err);
	case STORE_SECRET_FIND:
		return sql_secret_find(d, rq, ret, err);
	case STORE_VERBS:
		break;
	}
	abort();
}

static bool only_reads(enum store_verb v)
{
	return v == STORE_TEAM_FIND || v == STORE_TEAM_LIST || v == STORE_KEY_LIST ||
	       v == STORE_KEY_FIND || v == STORE_KEY_GET || v == STORE_SECRET_GET ||
	       v == STORE_SECRET_LIST || v == STORE_SECRET_FIND;
}

int statements_run(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err)
{
	if (only_reads(rq->verb))
		return run(d, rq, ret, err);
	if (database_begin(d, err) < 0)
		return -1;
	if (run(d, rq, ret, err) < 0 || database_commit(d, err) < 0) {
		database_rollback(d);
		return -1;
	}
	return 0;
}
