/* key_statements.c - the SQL about keys.
 *
 * Keys are trees: one that was made by another knows its maker, and the first of its family, whose
 * limits are those of all. Neither changes while it lives.
 */
#include "store/key_statements.h"

#include "base/clock.h"
#include "base/uuid.h"

#define KEY_COLUMNS                                                                           \
	"k.id, k.team_id, k.name, k.hash, k.mask_head, k.mask_tail, k.created, k.last_used, " \
	"k.services, k.maker, k.family, " SQL_LIMITS("f")
#define KEYS "keys k JOIN keys f ON f.id = k.family"

static int read_key(struct sql *q, struct store_rows *ret, struct err *err)
{
	struct store_key *k = store_rows_grow(ret->keys, ret->n_keys, sizeof(*k), err);

	if (!k)
		return -1;
	ret->keys = k;
	k += ret->n_keys++;
	sql_read_text(q, k->id, sizeof(k->id));
	sql_read_text(q, k->team_id, sizeof(k->team_id));
	sql_read_text(q, k->name, sizeof(k->name));
	sql_read_text(q, k->hash, sizeof(k->hash));
	sql_read_text(q, k->head, sizeof(k->head));
	sql_read_text(q, k->tail, sizeof(k->tail));
	k->created_ns = sql_read_u64(q);
	k->used_ns = sql_read_u64(q);
	sql_read_text(q, k->services, sizeof(k->services));
	sql_read_text(q, k->maker, sizeof(k->maker));
	sql_read_text(q, k->family, sizeof(k->family));
	sql_read_limits(q, &k->limits);
	return 0;
}

static const struct row_kind key = { "key", read_key };

int sql_key_get(struct database *d, const struct store_request *rq, struct store_rows *ret,
		struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d, "SELECT " KEY_COLUMNS " FROM " KEYS " WHERE k.id = $1");
	sql_bind_text(&q, rq->key.id);
	return sql_read_one(&q, &key, ret, err);
}

/* Whose limits are a new key's: those of its maker's family, or its own. */
static int find_family(struct database *d, struct store_key *k, struct err *err)
{
	AUTO(sql_done) struct sql q = { 0 };
	int rc;

	memcpy(k->family, k->id, sizeof(k->family));
	if (!k->maker[0])
		return 0;
	sql_begin(&q, d, "SELECT family FROM keys WHERE id = $1 AND team_id = $2");
	sql_bind_text(&q, k->maker);
	sql_bind_text(&q, k->team_id);
	rc = sql_next(&q, err);
	if (rc == 1)
		sql_read_text(&q, k->family, sizeof(k->family));
	else if (rc == 0) /* a new one must not outlive it */
		return err_set(err, ERR_NOT_FOUND, 0, "the key that asks for it was removed");
	return rc < 0 ? -1 : 0;
}

static int insert_key(struct database *d, const struct store_key *k, struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d,
		  "INSERT INTO keys (id, team_id, name, hash, mask_head, mask_tail, created, "
		  "last_used, maker, family) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");
	sql_bind_text(&q, k->id);
	sql_bind_text(&q, k->team_id);
	sql_bind_text(&q, k->name);
	sql_bind_text(&q, k->hash);
	sql_bind_text(&q, k->head);
	sql_bind_text(&q, k->tail);
	sql_bind_u64(&q, k->created_ns);
	sql_bind_u64(&q, 0);
	sql_bind_text(&q, k->maker[0] ? k->maker : NULL);
	sql_bind_text(&q, k->family);
	return sql_next(&q, err);
}

int sql_key_add(struct database *d, const struct store_request *rq, struct store_rows *ret,
		struct err *err)
{
	struct store_request made = *rq;
	struct store_key *k = &made.key;
	uint64_t n;

	uuid_make(k->id);
	k->created_ns = clock_wall_ns();
	if (sql_count(d, "SELECT count(*) FROM keys WHERE team_id = $1", k->team_id, &n, err) < 0)
		return -1;
	if (n >= STORE_KEYS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "the team has %d keys already",
			       STORE_KEYS_MAX);
	if (find_family(d, k, err) < 0)
		return -1;
	if (insert_key(d, k, err) < 0) {
		if (err->code == ERR_NOT_FOUND)
			return err_set(err, ERR_NOT_FOUND, 0, "no such team");
		return -1;
	}
	return sql_key_get(d, &made, ret, err);
}

int sql_key_list(struct database *d, const struct store_request *rq, struct store_rows *ret,
		 struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d,
		  "SELECT " KEY_COLUMNS " FROM " KEYS " WHERE k.team_id = $1 "
		  "ORDER BY k.created, k.id");
	sql_bind_text(&q, rq->key.team_id);
	return sql_read_all(&q, &key, ret, err);
}

int sql_key_find(struct database *d, const struct store_request *rq, struct store_rows *ret,
		 struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d,
		  "SELECT " KEY_COLUMNS ", " SQL_TEAM_COLUMNS " FROM " KEYS
		  " JOIN teams t ON t.id = k.team_id WHERE k.hash = $1");
	sql_bind_text(&q, rq->key.hash);
	if (sql_read_one(&q, &key, ret, err) < 0)
		return -1;
	return sql_read_team(&q, ret, err);
}

int sql_key_rename(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err)
{
	AUTO(sql_done) struct sql q;

	(void)ret;
	sql_begin(&q, d, "UPDATE keys SET name = $1 WHERE id = $2 AND team_id = $3");
	sql_bind_text(&q, rq->key.name);
	sql_bind_text(&q, rq->key.id);
	sql_bind_text(&q, rq->key.team_id);
	return sql_change_one(&q, &key, err);
}

/* With all that it made, and that these made. */
int sql_key_remove(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err)
{
	AUTO(sql_done) struct sql q = { 0 };

	if (sql_key_get(d, rq, ret, err) < 0)
		return -1;
	if (rq->key.team_id[0] && strcmp(rq->key.team_id, ret->keys[0].team_id) != 0)
		return err_set(err, ERR_NOT_FOUND, 0, "no such key");
	sql_begin(&q, d,
		  "DELETE FROM keys WHERE id IN (WITH RECURSIVE gone (id) AS ("
		  "SELECT id FROM keys WHERE id = $1 UNION "
		  "SELECT k.id FROM keys k JOIN gone g ON k.maker = g.id) SELECT id FROM gone)");
	sql_bind_text(&q, rq->key.id);
	return sql_change_one(&q, &key, err);
}

/* What it is called and may do stays, so does what it made: only who knew it knows it no more. */
int sql_key_rotate(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d,
		  "UPDATE keys SET hash = $1, mask_head = $2, mask_tail = $3, created = $4, "
		  "last_used = 0 WHERE id = $5");
	sql_bind_text(&q, rq->key.hash);
	sql_bind_text(&q, rq->key.head);
	sql_bind_text(&q, rq->key.tail);
	sql_bind_u64(&q, clock_wall_ns());
	sql_bind_text(&q, rq->key.id);
	if (sql_change_one(&q, &key, err) < 0)
		return -1;
	return sql_key_get(d, rq, ret, err);
}

int sql_key_used(struct database *d, const struct store_request *rq, struct store_rows *ret,
		 struct err *err)
{
	AUTO(sql_done) struct sql q;

	(void)ret;
	sql_begin(&q, d, "UPDATE keys SET last_used = $1 WHERE id = $2");
	sql_bind_u64(&q, rq->key.used_ns);
	sql_bind_text(&q, rq->key.id);
	return sql_next(&q, err);
}

int sql_key_limit(struct database *d, const struct store_request *rq, struct store_rows *ret,
		  struct err *err)
{
	AUTO(sql_done) struct sql q = { 0 };

	if (sql_key_get(d, rq, ret, err) < 0)
		return -1;
	if (ret->keys[0].maker[0])
		return err_set(err, ERR_EXISTS, 0,
			       "a key made by a key has the limits of the first of them: set "
			       "those of key %s",
			       ret->keys[0].family);
	ret->keys[0].limits = rq->key.limits;
	sql_begin(&q, d, "UPDATE keys SET " SQL_SET_LIMITS " WHERE id = $6");
	sql_bind_limits(&q, &rq->key.limits);
	sql_bind_text(&q, rq->key.id);
	return sql_change_one(&q, &key, err);
}

int sql_key_services(struct database *d, const struct store_request *rq, struct store_rows *ret,
		     struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d, "UPDATE keys SET services = $1 WHERE id = $2");
	sql_bind_text(&q, rq->key.services);
	sql_bind_text(&q, rq->key.id);
	if (sql_change_one(&q, &key, err) < 0)
		return -1;
	return sql_key_get(d, rq, ret, err);
}
