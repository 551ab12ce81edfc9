/* secret_statements.c - the SQL about secrets. */
#include "store/secret_statements.h"

#include "base/clock.h"
#include "base/random.h"

enum { ID_BYTES = 16 };

#define COLUMNS "s.id, s.team_id, s.name, s.version, s.metadata, s.sealed, s.created, s.updated"

void store_secrets_done(struct store_rows *r)
{
	for (size_t i = 0; i < r->n_secrets; i++)
		store_secret_clear(&r->secrets[i]);
	free(r->secrets);
}

/* sec_ and a UUID, version 7, in the base 32 that leaves out i, l, o and u: ids sort by time. */
static void make_id(uint64_t now_ns, char ret[static STORE_SECRET_ID_SIZE])
{
	static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
	uint64_t ms = now_ns / 1000000;
	uint8_t raw[ID_BYTES];
	size_t at = 4;

	random_fill(raw, sizeof(raw));
	for (size_t i = 0; i < 6; i++)
		raw[i] = (uint8_t)(ms >> (8 * (5 - i)));
	raw[6] = (uint8_t)((raw[6] & 0x0f) | 0x70);
	raw[8] = (uint8_t)((raw[8] & 0x3f) | 0x80);
	memcpy(ret, "sec_", at);
	for (int bit = -2; bit < 8 * ID_BYTES; bit += 5) { /* 130 bits, the first two are 0 */
		unsigned int five = 0;

		for (int i = bit; i < bit + 5; i++)
			five = five << 1 | (i < 0 ? 0u : raw[i / 8] >> (7 - i % 8) & 1u);
		ret[at++] = digits[five];
	}
	ret[at] = '\0';
}

static int read_secret(struct sql *q, struct store_rows *ret, struct err *err)
{
	struct store_secret *s = store_rows_grow(ret->secrets, ret->n_secrets, sizeof(*s), err);

	if (!s)
		return -1;
	ret->secrets = s;
	s += ret->n_secrets++;
	*s = (struct store_secret){ 0 };
	sql_read_text(q, s->id, sizeof(s->id));
	sql_read_text(q, s->team_id, sizeof(s->team_id));
	sql_read_text(q, s->name, sizeof(s->name));
	s->version = sql_read_u64(q);
	s->metadata = sql_read_copy(q);
	s->sealed = sql_read_copy(q);
	s->created_ns = sql_read_u64(q);
	s->updated_ns = sql_read_u64(q);
	if (!s->metadata || !s->sealed)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory for a secret");
	return 0;
}

static const struct row_kind secret = { "secret", read_secret };

/* By its id, or else by its name; of its team alone. */
static int find_one(struct database *d, const struct store_secret *s, struct store_rows *ret,
		    struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d,
		  s->id[0] ? "SELECT " COLUMNS " FROM secrets s WHERE s.team_id = $1 AND s.id = $2"
			   : "SELECT " COLUMNS
			     " FROM secrets s WHERE s.team_id = $1 AND s.name = $2");
	sql_bind_text(&q, s->team_id);
	sql_bind_text(&q, s->id[0] ? s->id : s->name);
	return sql_read_one(&q, &secret, ret, err);
}

int sql_secret_get(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err)
{
	return find_one(d, rq->secret, ret, err);
}

static int check_room(struct database *d, const char *team_id, struct err *err)
{
	uint64_t n;

	if (sql_count(d, "SELECT count(*) FROM secrets WHERE team_id = $1", team_id, &n, err) < 0)
		return -1;
	if (n >= STORE_SECRETS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "the team has %d secrets already",
			       STORE_SECRETS_MAX);
	return 0;
}

static int insert(struct database *d, const struct store_secret *s, const char *id, uint64_t now_ns,
		  struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d,
		  "INSERT INTO secrets (id, team_id, name, version, metadata, sealed, created, "
		  "updated) VALUES ($1, $2, $3, 1, $4, $5, $6, $7)");
	sql_bind_text(&q, id);
	sql_bind_text(&q, s->team_id);
	sql_bind_text(&q, s->name);
	sql_bind_text(&q, s->metadata);
	sql_bind_text(&q, s->sealed);
	sql_bind_u64(&q, now_ns);
	sql_bind_u64(&q, now_ns);
	return sql_next(&q, err);
}

int sql_secret_add(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err)
{
	uint64_t now_ns = clock_wall_ns();
	char id[STORE_SECRET_ID_SIZE];

	make_id(now_ns, id);
	if (check_room(d, rq->secret->team_id, err) < 0)
		return -1;
	if (insert(d, rq->secret, id, now_ns, err) < 0) {
		if (err->code == ERR_EXISTS)
			return err_set(err, ERR_EXISTS, 0, "a secret of that name exists");
		return -1;
	}
	return find_one(d, rq->secret, ret, err);
}

int sql_secret_update(struct database *d, const struct store_request *rq, struct store_rows *ret,
		      struct err *err)
{
	const struct store_secret *s = rq->secret;
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d,
		  s->metadata ? "UPDATE secrets SET version = version + 1, updated = $1, "
				"sealed = $2, metadata = $3 WHERE team_id = $4 AND id = $5"
			      : "UPDATE secrets SET version = version + 1, updated = $1, "
				"sealed = $2 WHERE team_id = $3 AND id = $4");
	sql_bind_u64(&q, clock_wall_ns());
	sql_bind_text(&q, s->sealed);
	if (s->metadata)
		sql_bind_text(&q, s->metadata);
	sql_bind_text(&q, s->team_id);
	sql_bind_text(&q, s->id);
	if (sql_next(&q, err) < 0)
		return -1;
	return find_one(d, s, ret, err);
}

int sql_secret_remove(struct database *d, const struct store_request *rq, struct store_rows *ret,
		      struct err *err)
{
	AUTO(sql_done) struct sql q;

	(void)ret;
	sql_begin(&q, d, "DELETE FROM secrets WHERE team_id = $1 AND id = $2");
	sql_bind_text(&q, rq->secret->team_id);
	sql_bind_text(&q, rq->secret->id);
	return sql_change_one(&q, &secret, err);
}

int sql_secret_list(struct database *d, const struct store_request *rq, struct store_rows *ret,
		    struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d,
		  "SELECT " COLUMNS " FROM secrets s WHERE s.team_id = $1 AND s.id > $2 "
		  "ORDER BY s.id LIMIT $3");
	sql_bind_text(&q, rq->secret->team_id);
	sql_bind_text(&q, rq->secret->id);
	sql_bind_u64(&q, rq->count);
	return sql_read_all(&q, &secret, ret, err);
}

/* Those that are there: one that is not is no failure. */
int sql_secret_find(struct database *d, const struct store_request *rq, struct store_rows *ret,
		    struct err *err)
{
	struct bytes all = bytes_str(rq->secret->names), name;

	for (size_t i = 0; i < STORE_SECRETS_FOUND_MAX && bytes_next(&all, ' ', &name); i++) {
		struct store_secret one = { 0 };
		struct err why;

		memcpy(one.team_id, rq->secret->team_id, sizeof(one.team_id));
		if (!bytes_to_str(name, one.name, sizeof(one.name)))
			continue;
		if (find_one(d, &one, ret, &why) < 0 && why.code != ERR_NOT_FOUND) {
			*err = why;
			return -1;
		}
	}
	return 0;
}
