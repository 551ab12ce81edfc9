/* statements.c - the SQL about teams; which statement a request is. */
#include "store/statements.h"

#include "base/clock.h"
#include "base/uuid.h"
#include "store/fact_statements.h"
#include "store/key_statements.h"
#include "store/secret_statements.h"

void store_rows_done(struct store_rows *r)
{
	free(r->teams);
	free(r->keys);
	store_secrets_done(r);
	*r = (struct store_rows){ 0 };
}

/* The room doubles: it is full when their number is a power of 2. */
void *store_rows_grow(void *rows, size_t n, size_t size, struct err *err)
{
	bool full = (n & (n - 1)) == 0;
	void *more = full ? reallocarray(rows, n ? 2 * n : 1, size) : rows;

	if (!more)
		err_set(err, ERR_EXHAUSTED, 0, "no memory for rows");
	return more;
}

void sql_bind_limits(struct sql *q, const struct store_limits *l)
{
	sql_bind_u64(q, l->sandboxes);
	sql_bind_u64(q, l->vcpus);
	sql_bind_u64(q, l->memory_mib);
	sql_bind_u64(q, l->disk_mib);
	sql_bind_u64(q, l->paused);
}

void sql_read_limits(struct sql *q, struct store_limits *ret)
{
	ret->sandboxes = (uint32_t)sql_read_u64(q);
	ret->vcpus = (uint32_t)sql_read_u64(q);
	ret->memory_mib = (uint32_t)sql_read_u64(q);
	ret->disk_mib = (uint32_t)sql_read_u64(q);
	ret->paused = (uint32_t)sql_read_u64(q);
}

int sql_read_team(struct sql *q, struct store_rows *ret, struct err *err)
{
	struct store_team *t = store_rows_grow(ret->teams, ret->n_teams, sizeof(*t), err);

	if (!t)
		return -1;
	ret->teams = t;
	t += ret->n_teams++;
	sql_read_text(q, t->id, sizeof(t->id));
	sql_read_text(q, t->name, sizeof(t->name));
	sql_read_text(q, t->slug, sizeof(t->slug));
	t->created_ns = sql_read_u64(q);
	sql_read_limits(q, &t->limits);
	return 0;
}

static const struct row_kind team = { "team", sql_read_team };

int sql_read_all(struct sql *q, const struct row_kind *k, struct store_rows *ret, struct err *err)
{
	int rc;

	while ((rc = sql_next(q, err)) == 1)
		if (k->read(q, ret, err) < 0)
			return -1;
	return rc;
}

static int no_such(const struct row_kind *k, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, 0, "no such %s", k->name);
}

int sql_read_one(struct sql *q, const struct row_kind *k, struct store_rows *ret, struct err *err)
{
	int rc = sql_next(q, err);

	if (rc < 0)
		return -1;
	return rc == 0 ? no_such(k, err) : k->read(q, ret, err);
}

int sql_change_one(struct sql *q, const struct row_kind *k, struct err *err)
{
	if (sql_next(q, err) < 0)
		return -1;
	return database_changed(q->db) == 0 ? no_such(k, err) : 0;
}

int sql_count(struct database *d, const char *text, const char *value, uint64_t *ret,
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

static int team_find(struct database *d, const struct store_request *rq, struct store_rows *ret,
		     struct err *err)
{
	AUTO(sql_done) struct sql q;
	bool by_id = rq->team.id[0];

	sql_begin(&q, d,
		  by_id ? "SELECT " SQL_TEAM_COLUMNS " FROM teams t WHERE t.id = $1"
			: "SELECT " SQL_TEAM_COLUMNS " FROM teams t WHERE t.name = $1");
	sql_bind_text(&q, by_id ? rq->team.id : rq->team.name);
	return sql_read_one(&q, &team, ret, err);
}

static int team_add(struct database *d, const struct store_request *rq, struct store_rows *ret,
		    struct err *err)
{
	AUTO(sql_done) struct sql q = { 0 };
	struct store_request made = *rq;
	struct store_team *t = &made.team;
	uint64_t n;

	uuid_make(t->id);
	if (sql_count(d, "SELECT count(*) FROM teams", NULL, &n, err) < 0)
		return -1;
	if (n >= STORE_TEAMS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "there are %d teams already",
			       STORE_TEAMS_MAX);
	sql_begin(&q, d, "INSERT INTO teams (id, name, slug, created) VALUES ($1, $2, $3, $4)");
	sql_bind_text(&q, t->id);
	sql_bind_text(&q, t->name);
	sql_bind_text(&q, t->slug);
	sql_bind_u64(&q, clock_wall_ns());
	if (sql_next(&q, err) < 0) {
		if (err->code == ERR_EXISTS)
			return err_set(err, ERR_EXISTS, 0, "a team named '%s' exists", t->name);
		return -1;
	}
	return team_find(d, &made, ret, err);
}

static int team_list(struct database *d, const struct store_request *rq, struct store_rows *ret,
		     struct err *err)
{
	AUTO(sql_done) struct sql q;

	(void)rq;
	sql_begin(&q, d, "SELECT " SQL_TEAM_COLUMNS " FROM teams t ORDER BY t.name");
	return sql_read_all(&q, &team, ret, err);
}

static int remove_rows(struct database *d, const char *text, const char *value, struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d, text);
	sql_bind_text(&q, value);
	return sql_next(&q, err);
}

static int team_remove(struct database *d, const struct store_request *rq, struct store_rows *ret,
		       struct err *err)
{
	AUTO(sql_done) struct sql q = { 0 };

	(void)ret;
	if (remove_rows(d, "DELETE FROM secrets WHERE team_id = $1", rq->team.id, err) < 0 ||
	    remove_rows(d, "DELETE FROM keys WHERE team_id = $1", rq->team.id, err) < 0)
		return -1;
	sql_begin(&q, d, "DELETE FROM teams WHERE id = $1");
	sql_bind_text(&q, rq->team.id);
	return sql_change_one(&q, &team, err);
}

static int team_limit(struct database *d, const struct store_request *rq, struct store_rows *ret,
		      struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d, "UPDATE teams SET " SQL_SET_LIMITS " WHERE id = $6");
	sql_bind_limits(&q, &rq->team.limits);
	sql_bind_text(&q, rq->team.id);
	if (sql_next(&q, err) < 0)
		return -1;
	return team_find(d, rq, ret, err);
}

static const struct {
	statement_fn *run;
	bool writes;
} verbs[STORE_VERBS] = {
	[STORE_TEAM_ADD] = { team_add, true },
	[STORE_TEAM_FIND] = { team_find, false },
	[STORE_TEAM_LIST] = { team_list, false },
	[STORE_TEAM_REMOVE] = { team_remove, true },
	[STORE_TEAM_LIMIT] = { team_limit, true },
	[STORE_KEY_ADD] = { sql_key_add, true },
	[STORE_KEY_LIST] = { sql_key_list, false },
	[STORE_KEY_FIND] = { sql_key_find, false },
	[STORE_KEY_RENAME] = { sql_key_rename, true },
	[STORE_KEY_REMOVE] = { sql_key_remove, true },
	[STORE_KEY_ROTATE] = { sql_key_rotate, true },
	[STORE_KEY_USED] = { sql_key_used, true },
	[STORE_KEY_GET] = { sql_key_get, false },
	[STORE_KEY_LIMIT] = { sql_key_limit, true },
	[STORE_KEY_SERVICES] = { sql_key_services, true },
	[STORE_SECRET_ADD] = { sql_secret_add, true },
	[STORE_SECRET_GET] = { sql_secret_get, false },
	[STORE_SECRET_UPDATE] = { sql_secret_update, true },
	[STORE_SECRET_REMOVE] = { sql_secret_remove, true },
	[STORE_SECRET_LIST] = { sql_secret_list, false },
	[STORE_SECRET_FIND] = { sql_secret_find, false },
	[STORE_UPLOAD_KEY] = { sql_upload_key, true },
};

int statements_run(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err)
{
	if (!verbs[rq->verb].writes)
		return verbs[rq->verb].run(d, rq, ret, err);
	if (database_begin(d, err) < 0)
		return -1;
	if (verbs[rq->verb].run(d, rq, ret, err) < 0 || database_commit(d, err) < 0) {
		database_rollback(d);
		return -1;
	}
	return 0;
}
