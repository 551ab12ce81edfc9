/* statements.c - the SQL about teams; which statement a request is. */
#include "store/statements.h"

#include "base/clock.h"
#include "base/random.h"
#include "store/key_statements.h"
#include "store/secret_statements.h"

enum { ROOM_FIRST = 8 };

void store_rows_done(struct store_rows *r)
{
	free(r->teams);
	free(r->keys);
	store_secrets_done(r);
	*r = (struct store_rows){ 0 };
}

int store_rows_grow(void **rows, size_t n, size_t *room, size_t size, struct err *err)
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

	if (store_rows_grow(&rows, r->n_teams, &r->room, sizeof(*t), err) < 0)
		return -1;
	r->teams = rows;
	r->teams[r->n_teams++] = *t;
	return 0;
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

void sql_read_team(struct sql *q, struct store_team *ret)
{
	sql_read_text(q, ret->id, sizeof(ret->id));
	sql_read_text(q, ret->name, sizeof(ret->name));
	sql_read_text(q, ret->slug, sizeof(ret->slug));
	ret->created_ns = sql_read_u64(q);
	sql_read_limits(q, &ret->limits);
}

void store_make_id(char ret[static STORE_ID_SIZE])
{
	char hex[33];

	random_hex(hex, 16);
	hex[12] = '4';
	hex[16] = "89ab"[(unsigned char)hex[16] & 3];
	snprintf(ret, STORE_ID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
		 hex + 20);
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

static int team_add(struct database *d, const struct store_request *rq, struct store_rows *ret,
		    struct err *err)
{
	AUTO(sql_done) struct sql q = { 0 };
	struct store_team t = rq->team;
	uint64_t n;

	store_make_id(t.id);
	t.created_ns = clock_wall_ns();
	if (sql_count(d, "SELECT count(*) FROM teams", NULL, &n, err) < 0)
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
		sql_begin(&q, d, "SELECT " SQL_TEAM_COLUMNS " FROM teams t WHERE t.id = $1");
		sql_bind_text(&q, rq->team.id);
	} else {
		sql_begin(&q, d, "SELECT " SQL_TEAM_COLUMNS " FROM teams t WHERE t.name = $1");
		sql_bind_text(&q, rq->team.name);
	}
	rc = sql_next(&q, err);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(err, ERR_NOT_FOUND, 0, "no such team");
	sql_read_team(&q, &t);
	return add_team(ret, &t, err);
}

static int team_list(struct database *d, struct store_rows *ret, struct err *err)
{
	AUTO(sql_done) struct sql q;
	struct store_team t;
	int rc;

	sql_begin(&q, d, "SELECT " SQL_TEAM_COLUMNS " FROM teams t ORDER BY t.name");
	while ((rc = sql_next(&q, err)) == 1) {
		sql_read_team(&q, &t);
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
	case STORE_TEAM_LIMIT:
		return team_limit(d, rq, ret, err);
	case STORE_KEY_ADD:
		return sql_key_add(d, rq, ret, err);
	case STORE_KEY_LIST:
		return sql_key_list(d, rq, ret, err);
	case STORE_KEY_FIND:
		return sql_key_find(d, rq, ret, err);
	case STORE_KEY_RENAME:
		return sql_key_rename(d, rq, err);
	case STORE_KEY_REMOVE:
		return sql_key_remove(d, rq, ret, err);
	case STORE_KEY_ROTATE:
		return sql_key_rotate(d, rq, ret, err);
	case STORE_KEY_USED:
		return sql_key_used(d, rq, err);
	case STORE_KEY_GET:
		return sql_key_get(d, rq, ret, err);
	case STORE_KEY_LIMIT:
		return sql_key_limit(d, rq, ret, err);
	case STORE_KEY_SERVICES:
		return sql_key_services(d, rq, ret, err);
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
