/* fact_statements.c - facts by name: drawn by whoever needs one first, then the same for all. */
#include "store/fact_statements.h"

static const char name[] = "upload_key";

static int read_fact(struct sql *q, struct store_rows *ret, struct err *err)
{
	struct store_key *k = store_rows_grow(ret->keys, ret->n_keys, sizeof(*k), err);

	if (!k)
		return -1;
	ret->keys = k;
	k += ret->n_keys++;
	*k = (struct store_key){ 0 };
	sql_read_text(q, k->hash, sizeof(k->hash));
	return 0;
}

static const struct row_kind fact = { "fact", read_fact };

static int add(struct database *d, const char *value, struct err *err)
{
	AUTO(sql_done) struct sql q;

	sql_begin(&q, d,
		  "INSERT INTO facts (name, value) VALUES ($1, $2) "
		  "ON CONFLICT (name) DO NOTHING");
	sql_bind_text(&q, name);
	sql_bind_text(&q, value);
	return sql_next(&q, err) < 0 ? -1 : 0;
}

int sql_upload_key(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err)
{
	AUTO(sql_done) struct sql q = { 0 };

	if (add(d, rq->key.hash, err) < 0)
		return -1;
	sql_begin(&q, d, "SELECT value FROM facts WHERE name = $1");
	sql_bind_text(&q, name);
	return sql_read_one(&q, &fact, ret, err);
}
